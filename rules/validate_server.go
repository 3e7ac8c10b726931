package rules

import (
	"encoding/base64"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

func (v *validator) server(p place) {
	s := &v.cfg.Server
	listen := p.field("listen")
	if path, unix := strings.CutPrefix(s.Listen, "unix:"); unix {
		if !strings.HasPrefix(path, "/") {
			listen.faultf("%q: write the whole path, such as unix:/run/slotgate.sock", s.Listen)
		}
	} else {
		checkListen(listen, s.Listen)
	}
	if s.MaxBody > s.MaxBuffered {
		p.field("max_body").faultf("%s is more than max_buffered, which is %s: no body of that size could be held", s.MaxBody, s.MaxBuffered)
	}
	tls := p.field("tls")
	if (s.TLS.CertFile == "") != (s.TLS.KeyFile == "") {
		tls.faultf("needs cert_file and key_file: one without the other is no use")
	}
	origins := p.field("cors").field("origins")
	for i, origin := range s.CORS.Origins {
		checkOrigin(origins.item(i), origin)
	}
}

// checkListen checks host:port to listen on; no host means every address.
func checkListen(p place, address string) (host, port string) {
	host, port, err := net.SplitHostPort(address)
	switch {
	case err != nil && portPattern.MatchString(address):
		p.faultf("%q is a port alone: write \":%s\"", address, address)
	case err != nil:
		p.faultf("%q is not an address to listen on: write host:port, such as 127.0.0.1:8080, or :8080 for every address", address)
	case !isPort(port):
		p.faultf("%q: the port must be a number from 0 to 65535", address)
	case host != "" && !isHost(host):
		p.faultf("%q: %q is neither an IP address nor a host name", address, host)
	}
	return host, port
}

var (
	portPattern = regexp.MustCompile(`^[0-9]{1,5}$`)
	hostPattern = regexp.MustCompile(`^(?i)[a-z0-9]([a-z0-9_-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9_-]*[a-z0-9])?)*\.?$`)
)

func isPort(s string) bool {
	n, err := strconv.Atoi(s)
	return portPattern.MatchString(s) && err == nil && n <= 65535
}

// isHost accepts an IP address, without the brackets of version 6, or a name.
func isHost(s string) bool {
	if _, err := netip.ParseAddr(s); err == nil {
		return true
	}
	return len(s) <= 253 && hostPattern.MatchString(s)
}

// checkOrigin checks an origin as browsers send it (RFC 6454, 6.2).
func checkOrigin(p place, origin string) {
	u, err := url.Parse(origin)
	switch {
	case origin == "*":
		p.faultf("* is not supported: list the origins of the pages that book, such as https://www.example.com")
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		p.faultf("%q is not an origin: write scheme and host, such as https://www.example.com", origin)
	case origin != u.Scheme+"://"+strings.ToLower(u.Host):
		p.faultf("%q is not as browsers send it: write %s://%s", origin, u.Scheme, strings.ToLower(u.Host))
	}
}

func (v *validator) admin(p place) {
	a := &v.cfg.Admin
	listen := p.field("listen")
	host, port := checkListen(listen, a.Listen)
	addr, err := netip.ParseAddr(host)
	loopback := host == "localhost" || err == nil && addr.Unmap().IsLoopback()
	if !loopback && a.Token == "" && !listen.broken() {
		listen.faultf("%q can be reached from other machines, and admin.token is empty: set a token, or listen on 127.0.0.1", a.Listen)
	}
	if a.Listen == v.cfg.Server.Listen && port != "0" {
		listen.faultf("%q is server.listen too: give the admin API an address of its own", a.Listen)
	}
	if strings.ContainsFunc(a.Token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		p.field("token").faultf("must be visible ASCII without blanks: it is sent in a header field")
	}
}

func (v *validator) upstream(p place) {
	at := p.field("url")
	if !at.written {
		at.faultf("is required: write the backend's address, such as http://127.0.0.1:9000")
		return
	}
	raw := v.cfg.Upstream.URL
	if path, unix := strings.CutPrefix(raw, "unix:"); unix {
		if !strings.HasPrefix(path, "/") {
			at.faultf("%q: write the whole path, such as unix:/run/booking.sock", raw)
		}
		return
	}
	u, err := url.Parse(raw)
	switch {
	case raw == "":
		at.faultf("is empty: write the backend's address, such as http://127.0.0.1:9000")
	case err != nil || strings.ContainsAny(raw, " \t\r\n"):
		at.faultf("is not a URL: write the backend's address, such as http://127.0.0.1:9000")
	case u.Scheme != "http" && u.Scheme != "https":
		at.faultf("must begin with http://, https:// or unix:, such as http://127.0.0.1:9000 or unix:/run/booking.sock")
	case u.User != nil:
		at.faultf("must not hold a user name or password: the client's own Authorization is forwarded")
	case u.Hostname() == "" || !isHost(u.Hostname()):
		at.faultf("names no host: write the backend's address, such as http://127.0.0.1:9000")
	case u.Port() != "" && (!isPort(u.Port()) || u.Port() == "0") || strings.HasSuffix(u.Host, ":"):
		at.faultf("the port must be a number from 1 to 65535")
	case u.RawQuery != "" || u.ForceQuery || strings.Contains(raw, "#"):
		at.faultf("must not hold a query or fragment: requests bring their own")
	case u.Path != "" && u.Path != "/":
		at.faultf("must not hold the path %s: requests are forwarded with the path they came with", u.Path)
	}
}

var prefixPattern = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

func (v *validator) store(p place) {
	s := &v.cfg.Store
	addresses := p.field("addresses")
	for i, address := range s.Addresses {
		host, port, err := net.SplitHostPort(address)
		if err != nil || !isHost(host) || !isPort(port) || port == "0" {
			addresses.item(i).faultf("%q is not host:port, such as 127.0.0.1:6379", address)
		} else if slices.Contains(s.Addresses[:i], address) {
			addresses.item(i).faultf("%s is listed twice: keep one", address)
		}
	}
	if s.Kind == "redis" {
		switch {
		case len(s.Addresses) == 0:
			addresses.faultf("is empty: write where Redis is, such as [\"127.0.0.1:6379\"]")
		case s.Mode == "standalone" && len(s.Addresses) > 1:
			addresses.faultf("has %d addresses, and mode standalone is one server: keep one", len(s.Addresses))
		case s.Mode == "sentinel" && s.MasterName == "":
			p.field("master_name").faultf("is required with mode sentinel")
		case s.Mode != "sentinel" && s.MasterName != "":
			p.field("master_name").faultf("is for mode sentinel, and mode is %s: take it out, or write mode: sentinel and the sentinels' addresses", s.Mode)
		case s.Mode == "cluster" && s.DB != 0:
			p.field("db").faultf("must be 0 with mode cluster: Redis Cluster has one database")
		}
	}
	if !prefixPattern.MatchString(s.Prefix) {
		p.field("prefix").faultf("%q cannot begin store keys: use 1 to 64 letters, digits, -, _ and .", s.Prefix)
	}
	checkEncryptKey(p.field("encrypt_key"), s.EncryptKey, true)
	for i, key := range s.EncryptOldKeys {
		checkEncryptKey(p.field("encrypt_old_keys").item(i), key, false)
	}
}

// checkEncryptKey never shows the key.
func checkEncryptKey(p place, key string, mayBeEmpty bool) {
	raw, err := base64.StdEncoding.DecodeString(key)
	if (key != "" || !mayBeEmpty) && (err != nil || len(raw) != 32) {
		p.faultf("must be 32 bytes in base64: make one with `openssl rand -base64 32`")
	}
}
