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
			Client: clientAddr(ctx.RemoteAddr()),
		},
		Target:  in.target,
		Gone:    c.gone,
		Arrived: time.Now(),
	}
	r.Header, r.ID = clientFields(upstream.EndToEnd(in.fields))
	if r.ID == "" {
		r.ID = rand.Text()
	}
	if r.Client.IsValid() {
		r.Header = append(r.Header, rules.Field{Name: "X-Forwarded-For", Value: r.Client.String()})
	}
	if r.Host != "" {
		r.Header = append(r.Header, rules.Field{Name: "X-Forwarded-Host", Value: r.Host})
	}
	proto := "http"
	if ctx.IsTLS() {
		proto = "https"
	}
	r.Header = append(r.Header, rules.Field{Name: "X-Forwarded-Proto", Value: proto})
	return r
}

// clientFields drops what a client may not say, and finds the request id it sent:
// "" when there is none, or none that can be used, which is dropped too.
func clientFields(fields []rules.Field) (kept []rules.Field, id string) {
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
		if !reserved(f.Name) && (id != "" || !strings.EqualFold(f.Name, "X-Request-Id")) {
			kept = append(kept, f)
		}
	}
	return kept, id
}

// reserved reports the names only the gate may use, in every spelling that a
// backend folds into them.
func reserved(name string) bool {
	return hasPrefixFolded(name, "Gate-") || hasPrefixFolded(name, "X-Forwarded-") ||
		strings.EqualFold(name, "Forwarded")
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
