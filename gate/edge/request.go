package edge

import (
	"encoding/base32"
	"encoding/binary"
	"math/rand/v2"
	"net"
	"net/netip"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/slotgate/slotgate/gate"
	"github.com/slotgate/slotgate/gate/upstream"
	"github.com/slotgate/slotgate/rules"
)

// describe makes r what the rules and the backend get to see, which is the same (P6):
// the client's end-to-end fields, without those that only the gate may say, and with
// what it says about the client.
func (s *Server) describe(r *gate.Request, ctx *fasthttp.RequestCtx, in *head) {
	c := connOf(ctx.Conn())
	r.Method, r.Path, r.Query, r.Host, r.Target = in.method, in.path, in.query, in.host, in.target
	r.Gone, r.Arrived, r.Texts = c.hasGone, time.Now(), in.texts
	proto := "http"
	if ctx.IsTLS() {
		proto = "https"
	}
	before := s.hopsOf(c.peer, in.fields, in.host, proto)
	r.Client = s.client(&before)
	r.Secure = before.proto == "https"
	via := viaOf(in.fields, in.http10)
	r.Header, r.ID = clientFields(upstream.EndToEnd(in.fields), before.trusted)
	if r.ID == "" {
		r.ID = newRequestID(in.texts)
	}
	r.Header = before.appendTo(r.Header, via, c.hopOf(before.host, before.proto))
}

// newRequestID is 128 random bits. It tells requests apart in logs and is no secret, so
// that the generator of the runtime does.
func newRequestID(texts *rules.Texts) string {
	var raw [16]byte
	binary.LittleEndian.PutUint64(raw[:8], rand.Uint64())
	binary.LittleEndian.PutUint64(raw[8:], rand.Uint64())
	var text [26]byte
	idText.Encode(text[:], raw[:])
	return texts.Of(text[:])
}

var idText = base32.StdEncoding.WithPadding(base32.NoPadding)

// clientFields drops what a client may not say, and finds the request id it sent:
// "" when there is none, or none that can be used, which is dropped too.
func clientFields(fields []rules.Field, trusted bool) (kept []rules.Field, id string) {
	ids := 0
	for _, f := range fields {
		if upstream.SameName(f.Name, "X-Request-Id") {
			ids++
			id = f.Value
		}
	}
	if ids != 1 || !validID(id) {
		id = ""
	}
	kept = fields[:0]
	for _, f := range fields {
		if !reserved(f.Name, trusted) && (id != "" || !upstream.SameName(f.Name, "X-Request-Id")) {
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
	case hasPrefixFolded(name, "Gate-"), upstream.SameName(name, "Forwarded"), upstream.SameName(name, "Via"):
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
