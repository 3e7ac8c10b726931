package edge

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/slotgate/slotgate/rules"
)

// hops is what is known about the way of a request before it came here.
type hops struct {
	peer    netip.Addr // invalid: a unix socket
	trusted bool       // what it says is believed
	chain   []string   // who it was forwarded for, from the client on, without peer
	// forwarded is the Forwarded field (RFC 7239) for the chain.
	forwarded   string
	host, proto string
}

// hopsOf reads the fields of the proxies before this one. They are believed from
// server.trusted_proxies only; a unix socket is reached by local processes only
// and counts as one of them where the list is not empty. X-Forwarded-For is read
// before Forwarded: a proxy that knows one of them only hands the other on as its
// client sent it, and most know the first.
func (s *Server) hopsOf(peer netip.Addr, fields []rules.Field, host, proto string) hops {
	h := hops{peer: peer, host: host, proto: proto}
	if len(s.config.TrustedProxies) == 0 || peer.IsValid() && !s.trusts(peer) {
		return h
	}
	h.trusted = true
	h.forwarded = joined(fields, "Forwarded")
	if list := joined(fields, "X-Forwarded-For"); list != "" {
		for hop := range strings.SplitSeq(list, ",") {
			h.chain = append(h.chain, strings.Trim(hop, " \t"))
		}
	} else {
		h.chain = forwardedFor(h.forwarded)
	}
	if h.forwarded == "" {
		var elements []string
		for _, hop := range h.chain {
			elements = append(elements, "for="+nodeName(hop))
		}
		h.forwarded = strings.Join(elements, ", ")
	}
	if told := joined(fields, "X-Forwarded-Host"); told != "" && validHost(told) {
		h.host = told
	}
	if told := strings.ToLower(joined(fields, "X-Forwarded-Proto")); told == "http" || told == "https" {
		h.proto = told
	}
	return h
}

func (s *Server) trusts(a netip.Addr) bool {
	return slices.ContainsFunc(s.config.TrustedProxies, func(p netip.Prefix) bool { return p.Contains(a) })
}

// client is the nearest hop that is no trusted proxy: what it says about those
// before it may be made up. Where all are trusted it is the first.
func (s *Server) client(h *hops) netip.Addr {
	client := h.peer
	for _, hop := range slices.Backward(h.chain) {
		addr, ok := hopAddr(hop)
		if !ok {
			break
		}
		client = addr
		if !s.trusts(addr) {
			break
		}
	}
	return client
}

// hopAddr reads an address as proxies write it: with or without port, version 6
// with or without brackets.
func hopAddr(hop string) (netip.Addr, bool) {
	if withPort, err := netip.ParseAddrPort(hop); err == nil {
		return withPort.Addr().Unmap().WithZone(""), true
	}
	addr, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(hop, "["), "]"))
	return addr.Unmap().WithZone(""), err == nil
}

// appendTo adds the fields of the hops and of this one, one line each.
func (h *hops) appendTo(fields []rules.Field, via string, here *hop) []rules.Field {
	chain := here.peer
	if len(h.chain) > 0 {
		chain = strings.Join(h.chain, ", ")
		if here.peer != "" {
			chain += ", " + here.peer
		}
	}
	if chain != "" {
		fields = append(fields, rules.Field{Name: "X-Forwarded-For", Value: chain})
	}
	if h.host != "" {
		fields = append(fields, rules.Field{Name: "X-Forwarded-Host", Value: h.host})
	}
	forwarded := here.forwarded
	if h.forwarded != "" {
		forwarded = h.forwarded + ", " + forwarded
	}
	return append(fields,
		rules.Field{Name: "X-Forwarded-Proto", Value: h.proto},
		rules.Field{Name: "Forwarded", Value: forwarded},
		rules.Field{Name: "Via", Value: via})
}

// hop is what this gate says of a connection. It is the same for most requests on it, so
// that the text is kept.
type hop struct {
	peer        string // "": a unix socket
	host, proto string
	forwarded   string // the element of Forwarded for them (RFC 7239)
}

// hopOf is the connection's for a host and protocol. For the goroutine that serves it.
func (c *conn) hopOf(host, proto string) *hop {
	h := &c.hop
	if h.forwarded != "" && h.host == host && h.proto == proto {
		return h
	}
	h.host, h.proto = strings.Clone(host), proto
	node := "unknown"
	if c.peer.IsValid() {
		h.peer = c.peer.String()
		node = nodeName(h.peer)
	}
	h.forwarded = "for=" + node
	if host != "" {
		h.forwarded += ";host=" + quoted(host)
	}
	h.forwarded += ";proto=" + proto
	return h
}

// nodeName writes a hop for Forwarded (RFC 7239 section 6); what is no address
// goes by "unknown".
func nodeName(hop string) string {
	addr, ok := hopAddr(hop)
	switch {
	case !ok:
		return "unknown"
	case addr.Is6():
		return `"[` + addr.String() + `]"`
	}
	return addr.String()
}

// quoted writes a value as a token or a quoted-string; validHost keeps quotes out.
func quoted(host string) string {
	if strings.ContainsAny(host, ":[]") {
		return `"` + host + `"`
	}
	return host
}

// forwardedFor lists the for parameters of a Forwarded field.
func forwardedFor(value string) []string {
	var list []string
	for element := range splitUnquoted(value, ',') {
		node := "unknown"
		for pair := range splitUnquoted(element, ';') {
			name, v, _ := strings.Cut(strings.Trim(pair, " \t"), "=")
			if strings.EqualFold(name, "for") {
				node = strings.Trim(v, `"`)
			}
		}
		if strings.Trim(element, " \t") != "" {
			list = append(list, node)
		}
	}
	return list
}

// splitUnquoted splits at a separator outside of quoted-strings.
func splitUnquoted(s string, separator byte) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		start, inQuotes := 0, false
		for i := 0; i < len(s); i++ {
			switch {
			case s[i] == '\\' && inQuotes:
				i++
			case s[i] == '"':
				inQuotes = !inQuotes
			case s[i] == separator && !inQuotes:
				if !yield(s[start:i]) {
					return
				}
				start = i + 1
			}
		}
		yield(s[start:])
	}
}

// viaOf adds this gate to the Via of a request (RFC 9110 section 7.6.3).
func viaOf(fields []rules.Field, http10 bool) string {
	own := "1.1 slotgate"
	if http10 {
		own = "1.0 slotgate"
	}
	if before := joined(fields, "Via"); before != "" {
		return before + ", " + own
	}
	return own
}
