package edge

import (
	"strings"

	"github.com/slotgate/slotgate/gate/upstream"
	"github.com/slotgate/slotgate/rules"
)

// readTarget takes the request target apart (RFC 9112 section 3.2). Proxies' form
// with scheme and host is accepted where the host is that of the Host field, as
// section 3.2.2 demands of servers, and goes on without them: backends differ in
// which of the two hosts they believe.
func (in *head) readTarget(target string) *refusal {
	if strings.IndexByte(target, '#') >= 0 {
		return refuseFragment
	}
	if target[0] != '/' && target != "*" {
		var ok bool
		if target, ok = originForm(target, in.host); !ok {
			return refuseAbsolute
		}
	}
	if target == "*" && in.method != "OPTIONS" {
		return refuseAbsolute
	}
	in.target = target
	in.path, in.query, _ = strings.Cut(target, "?")
	return nil
}

// originForm is what follows the host of an absolute target.
func originForm(target, host string) (string, bool) {
	scheme, rest, ok := strings.Cut(target, "://")
	if !ok || !strings.EqualFold(scheme, "http") && !strings.EqualFold(scheme, "https") {
		return "", false
	}
	authority, tail := rest, "/"
	if end := strings.IndexAny(rest, "/?"); end >= 0 {
		authority, tail = rest[:end], rest[end:]
		if tail[0] == '?' {
			tail = "/" + tail
		}
	}
	// An authority with a user name is no Host, so it equals none.
	return tail, authority != "" && strings.EqualFold(authority, host)
}

// readHost finds the one Host field (RFC 9112 section 3.2). HTTP/1.0 may leave it
// out.
func (in *head) readHost() *refusal {
	found := false
	for _, f := range in.fields {
		if !upstream.SameName(f.Name, "Host") {
			continue
		}
		if found || f.Value == "" || !validHost(f.Value) {
			return refuseHost
		}
		found, in.host = true, f.Value
	}
	if !found && !in.http10 {
		return refuseHost
	}
	return nil
}

// validHost accepts uri-host [":" port] (RFC 3986 section 3.2.2) without the
// sub-delims, which no host is named with: whoever finds
// another character in it may see another host.
func validHost(host string) bool {
	if address, port, ok := strings.Cut(host, "]"); ok {
		return strings.HasPrefix(address, "[") && onlyOf(address[1:], "0123456789abcdefABCDEF:.") &&
			(port == "" || port[0] == ':' && onlyOf(port[1:], "0123456789"))
	}
	name, port, _ := strings.Cut(host, ":")
	for i := range len(name) {
		if c := name[i]; c >= 0x80 || !hostBytes[c] {
			return false
		}
	}
	return onlyOf(port, "0123456789")
}

func onlyOf(s, allowed string) bool { return strings.Trim(s, allowed) == "" }

var hostBytes = func() (t [128]bool) {
	for c := range t {
		t[c] = c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
			strings.IndexByte("-._~%", byte(c)) >= 0
	}
	return t
}()

// normalize makes the target that of server.forward_path: normalized. A path
// without a normal form is refused, because it cannot be forwarded as one.
func (in *head) normalize() *refusal {
	if in.path == "*" {
		return nil
	}
	normal, err := rules.NormalizePath(in.path)
	if err != nil {
		return refusePath
	}
	in.target = normal + in.target[len(in.path):]
	return nil
}

// validEscapes reports that two hexadecimal digits follow every % of a path (RFC
// 3986 section 2.1). Servers that do not refuse others differ in what they read.
func validEscapes(path string) bool {
	for {
		_, rest, found := strings.Cut(path, "%")
		if !found {
			return true
		}
		if len(rest) < 2 || !onlyOf(rest[:2], "0123456789abcdefABCDEF") {
			return false
		}
		path = rest[2:]
	}
}
