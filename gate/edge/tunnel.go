package edge

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/slotgate/slotgate/gate"
	"github.com/slotgate/slotgate/gate/upstream"
)

// upgradeAsked is the protocol for which the client asks (RFC 9110 section 7.8),
// where it may have it: what comes after the change is not looked at, so HTTP in
// another version would pass every rule by.
func (in *head) upgradeAsked() string {
	if in.http10 || in.length != 0 {
		return ""
	}
	protocol, asks := "", false
	for _, f := range in.fields {
		switch {
		case upstream.SameName(f.Name, "Upgrade"):
			if protocol != "" {
				return ""
			}
			protocol = f.Value
		case upstream.SameName(f.Name, "Connection"):
			for option := range strings.SplitSeq(f.Value, ",") {
				asks = asks || strings.EqualFold(strings.Trim(option, " \t"), "upgrade")
			}
		}
	}
	name, version, _ := strings.Cut(protocol, "/")
	if !asks || !upstream.ValidName(name) || version != "" && !upstream.ValidName(version) {
		return ""
	}
	switch strings.ToLower(name) {
	case "h2", "h2c", "h3", "http", "https", "tls":
		return ""
	}
	return protocol
}

// passUpgrade hands a request for another protocol on and, if the backend agrees,
// every byte after it, both ways.
func (s *Server) passUpgrade(ctx *fasthttp.RequestCtx, req *gate.Request, in *head) {
	tunnel, stream, err := s.backendOf(req).Upgrade(req, in.upgrade)
	switch {
	case err != nil:
		s.passFailed(ctx, req, err)
	case stream != nil:
		s.passAnswer(ctx, req, in, stream)
	default:
		text := append([]byte(nil), "HTTP/1.1 101 Switching Protocols\r\n"...)
		text = appendFields(text, tunnel.Header)
		text = s.appendShadow(text, req.Shadow)
		text = appendField(text, "Connection", "Upgrade")
		text = append(appendField(text, "Upgrade", tunnel.Protocol), '\r', '\n')
		ctx.HijackSetNoResponse(true)
		ended := lineFor(ctx).hijacked(http.StatusSwitchingProtocols)
		ctx.Hijack(func(c net.Conn) {
			defer ended(0) // what goes over a tunnel is no body
			if _, err := c.Write(text); err != nil {
				tunnel.Close()
				return
			}
			s.join(c, tunnel)
		})
	}
}

// join copies until both sides have ended, one breaks, nothing has come from
// either for idle_timeout, or the server drains.
func (s *Server) join(client net.Conn, tunnel *upstream.Tunnel) {
	defer tunnel.Close()
	j := &joint{server: s, client: client, tunnel: tunnel}
	j.heard.Store(time.Now().UnixNano())
	defer j.end()
	defer s.tunnels.add(j)()
	var ways sync.WaitGroup
	ways.Go(func() { j.copy(tunnel, client, tunnel.CloseWrite) })
	j.copy(client, tunnel, func() error { return closeWrite(client) })
	ways.Wait()
}

// joint is a client's connection joined to the backend's.
type joint struct {
	server *Server
	client net.Conn
	tunnel *upstream.Tunnel
	heard  atomic.Int64 // when a byte last came, whichever way
	ended  atomic.Bool
}

// end makes both ways end. It may be called at any time, and again.
func (j *joint) end() {
	j.ended.Store(true)
	j.tunnel.Interrupt()
	_ = j.client.SetDeadline(time.Unix(1, 0))
}

// copy is one way. Where the sender has ended, finish tells the receiver.
func (j *joint) copy(to io.Writer, from io.Reader, finish func() error) {
	defer func() {
		if fault := recover(); fault != nil {
			j.server.log.Error("the gate panicked in a tunnel; please report this", "panic", fault)
			j.end()
		}
	}()
	idle := j.server.config.IdleTimeout
	buf := make([]byte, 16<<10)
	for {
		if from == io.Reader(j.client) && j.client.SetReadDeadline(time.Now().Add(idle)) != nil || j.ended.Load() {
			j.end()
			return
		}
		n, err := from.Read(buf)
		if n > 0 {
			j.heard.Store(time.Now().UnixNano())
			if _, err := to.Write(buf[:n]); err != nil {
				j.end()
				return
			}
		}
		var late net.Error
		switch {
		case err == nil:
		case err == io.EOF && finish() == nil:
			return
		case errors.As(err, &late) && late.Timeout() && time.Since(time.Unix(0, j.heard.Load())) < idle:
			// The other way is in use.
		default:
			j.end()
			return
		}
	}
}

// closeWrite tells the client that nothing more will come.
func closeWrite(nc net.Conn) error {
	if h, ok := nc.(interface{ UnsafeConn() net.Conn }); ok {
		nc = h.UnsafeConn()
	}
	if half, ok := nc.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return io.ErrClosedPipe
}

// tunnels knows every open tunnel.
type tunnels struct {
	mu     sync.Mutex
	open   map[*joint]struct{}
	total  uint64
	closed bool
	note   func(open int)
}

// add takes a tunnel in until the returned function is called. After close it
// ends it at once.
func (t *tunnels) add(j *joint) (remove func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open == nil {
		t.open = make(map[*joint]struct{})
	}
	t.open[j] = struct{}{}
	t.total++
	t.note(len(t.open))
	if t.closed {
		j.end()
	}
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.open, j)
		t.note(len(t.open))
	}
}

func (t *tunnels) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	for j := range t.open {
		j.end()
	}
}

func (t *tunnels) count() (open int, total uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.open), t.total
}
