package edge

import (
	"crypto/rand"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/slotgate/slotgate/gate"
	"github.com/slotgate/slotgate/gate/upstream"
	"github.com/slotgate/slotgate/rules"
)

// request makes what the rules and the backend get to see, which is the same
// (P6): the client's end-to-end fields, without those that only the gate may
// say, and with what it says about the client.
func (s *Server) request(ctx *fasthttp.RequestCtx, in *head) *gate.Request {
	c := connOf(ctx.Conn())
	r := &gate.Request{
		Request: rules.Request{
			Method: in.method,
			Path:   in.path,
			Query:  in.query,
			Host:   in.host,
		},
		Target:  in.target,
		Gone:    c.gone,
		Arrived: time.Now(),
	}
	proto := "http"
	if ctx.IsTLS() {
		proto = "https"
	}
	before := s.hopsOf(clientAddr(ctx.RemoteAddr()), in.fields, in.host, proto)
	r.Client = s.client(before)
	r.Secure = before.proto == "https"
	via := viaOf(in.fields, in.http10)
	r.Header, r.ID = clientFields(upstream.EndToEnd(in.fields), before.trusted)
	if r.ID == "" {
		r.ID = rand.Text()
	}
	r.Header = before.appendTo(r.Header, via)
	return r
}

// clientFields drops what a client may not say, and finds the request id it sent:
// "" when there is none, or none that can be used, which is dropped too.
func clientFields(fields []rules.Field, trusted bool) (kept []rules.Field, id string) {
	ids := 0
	for _, f := range fields {
		if strings.EqualFold(f.Name, "X-Request-Id") {
			ids++
			id = f.Value
		}
	}
	if ids != 1 || !validID(id) {
		id = ""
	}
	kept = fields[:0]
	for _, f := range fields {
		if !reserved(f.Name, trusted) && (id != "" || !strings.EqualFold(f.Name, "X-Request-Id")) {
			kept = append(kept, f)
		}
	}
	return kept, id
}

// reserved reports the names whose lines the gate writes itself, in every spelling
// that a backend folds into them. Other X-Forwarded-* fields pass from a trusted
// proxy.
func reserved(name string, trusted bool) bool {
	switch {
	case hasPrefixFolded(name, "Gate-"), strings.EqualFold(name, "Forwarded"), strings.EqualFold(name, "Via"):
		return true
	case !hasPrefixFolded(name, "X-Forwarded-"):
		return false
	}
	return !trusted || equalFolded(name, "X-Forwarded-For") || equalFolded(name, "X-Forwarded-Host") ||
		equalFolded(name, "X-Forwarded-Proto")
}

func hasPrefixFolded(name, prefix string) bool {
	return len(name) >= len(prefix) && equalFolded(name[:len(prefix)], prefix)
}

// validID: 1 to 128 visible ASCII characters.
func validID(id string) bool {
	for i := range len(id) {
		if id[i] <= ' ' || id[i] > '~' {
			return false
		}
	}
	return id != "" && len(id) <= 128
}

// clientAddr is the zero Addr for a client on a unix socket.
func clientAddr(a net.Addr) netip.Addr {
	if tcp, ok := a.(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}
