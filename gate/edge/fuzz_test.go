package edge

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slotgate/slotgate/gate"
	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/upstream"
	"github.com/slotgate/slotgate/rules"
)

// reading is what one side took a request for.
type reading struct{ method, target, host, body string }

// oracle is a server with a backend whose readings are kept apart from the
// edge's own.
type oracle struct {
	*Server
	client *upstream.Client
	addr   string
	// authority is the backend's address.
	authority string

	mu      sync.Mutex
	edge    []reading // accepted, whole
	backend []reading
	faults  []string
	open    int // connections to the backend
	idle    *sync.Cond
}

func newOracle(f *testing.F) *oracle {
	o := &oracle{}
	o.idle = sync.NewCond(&o.mu)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		f.Fatal(err)
	}
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			o.count(1)
			go func() {
				defer o.count(-1)
				o.play(c)
			}()
		}
	}()
	o.authority = ln.Addr().String()
	o.client, err = upstream.New(upstream.Options{URL: "http://" + o.authority})
	if err != nil {
		f.Fatal(err)
	}
	cfg := config()
	o.Server, err = New(Options{Config: cfg, Gate: &testGate{serve: o.forward, route: o.route}, Backend: o, Meter: &kinds{count: map[string]int{}}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		f.Fatal(err)
	}
	clients, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		f.Fatal(err)
	}
	o.addr = clients.Addr().String()
	served := make(chan error, 1)
	go func() { served <- o.Serve(clients) }()
	f.Cleanup(func() {
		_ = o.Shutdown(f.Context())
		<-served
		o.client.Close()
		_ = ln.Close()
		o.take()
	})
	return o
}

// play reads one request as net/http does, and whatever comes behind it.
func (o *oracle) play(c net.Conn) {
	defer func() { _ = c.Close() }()
	in := bufio.NewReader(c)
	r, err := http.ReadRequest(in)
	if err != nil {
		if err != io.EOF {
			o.fault("the backend cannot read the head: %v", err)
		}
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // cut: the edge says so too
	}
	o.mu.Lock()
	o.backend = append(o.backend, reading{r.Method, r.RequestURI, r.Host, string(body)})
	o.mu.Unlock()
	_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
	if rest, _ := io.ReadAll(in); len(rest) > 0 {
		o.fault("behind the request came %q", rest)
	}
}

func (o *oracle) count(change int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.open += change
	o.idle.Broadcast()
}

func (o *oracle) fault(format string, args ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.faults = append(o.faults, fmt.Sprintf(format, args...))
}

func (o *oracle) accept(r *gate.Request, body []byte, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err != nil {
		return // the client did not send the whole body
	}
	host := r.Host
	if host == "" { // HTTP/1.0: the backend gets its own
		host = o.authority
	}
	o.edge = append(o.edge, reading{r.Method, r.Target, host, string(body)})
}

func (o *oracle) Upgrade(*gate.Request, string) (*upstream.Tunnel, *upstream.Stream, error) {
	return nil, nil, &gate.BackendError{Failure: gate.NotConnected, Err: net.ErrClosed} // a tunnel is no request
}

func (o *oracle) Pass(r *gate.Request, body io.Reader, length int64) (*upstream.Stream, error) {
	var copied strings.Builder
	if body != nil {
		body = io.TeeReader(body, &copied)
	}
	s, err := o.client.Pass(r, body, length)
	o.accept(r, []byte(copied.String()), err)
	return s, err
}

// route gates every path that begins so, and refuses as the rules do what has no one
// reading.
func (o *oracle) route(r *gate.Request) (rules.Match, *gate.Reply) {
	switch {
	case !strings.HasPrefix(r.Path, "/book"):
		return rules.Match{}, nil
	case !validEscapes(r.Path):
		return rules.Match{}, own(decision.DecisionAmbiguous)
	}
	return rules.Match{Rule: &rules.Rule{}}, nil
}

func (o *oracle) forward(r *gate.Request) *gate.Reply {
	body, err := r.ReadBody()
	o.accept(r, body, err)
	if err != nil {
		return refused(err)
	}
	r.Body = body
	a, err := o.client.Forward(&gate.Forward{Request: r, SendBy: time.Now().Add(5 * time.Second), Timeout: 5 * time.Second, Limit: 1 << 20})
	if err != nil {
		return own(decision.DecisionUpstreamFailed)
	}
	return &gate.Reply{Answer: decision.Answer{Status: a.Status, Header: a.Header}, Decision: decision.DecisionAdmitted, Release: a.Release}
}

// take hands over what was read since the last call.
func (o *oracle) take() (edge, backend []reading, faults []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.open > 0 {
		o.idle.Wait()
	}
	edge, backend, faults = o.edge, o.backend, o.faults
	o.edge, o.backend, o.faults = nil, nil, nil
	return edge, backend, faults
}

// FuzzEdge: whatever bytes come, net/http reads on each connection to the backend
// exactly one request, the one that the edge read, and nothing behind it (P6).
func FuzzEdge(f *testing.F) {
	for _, seed := range []string{
		"GET /book?a=b HTTP/1.1\r\nHost: x\r\n\r\n",
		"GET /? HTTP/1.1\r\nHost: x\r\n\r\nGET /book HTTP/1.1\r\nHost: y\r\n\r\n",
		"POST /book HTTP/1.1\r\nHost: x:80\r\nContent-Length: 5\r\nx-A: b\r\n\r\nhello",
		"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhelloPOST /book HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2;a=b\r\nab\r\n0\r\nT: u\r\n\r\n",
		"POST /book HTTP/1.1\r\nHost: x\r\nTrailer: T\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\nT: u\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"POST /book HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nab",
		"GET http://x/book HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, A\r\nUpgrade: h2c\r\nA: b\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n",
		"HEAD /book HTTP/1.0\r\n\r\n",
		"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n",
		"GET /%00/..;/x HTTP/1.1\r\nHost: x\r\nContent-Length : 1\r\n\r\n",
	} {
		f.Add([]byte(seed))
	}
	o := newOracle(f)
	f.Fuzz(func(t *testing.T, raw []byte) {
		nc, err := net.Dial("tcp", o.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = nc.Close() }()
		_ = nc.SetDeadline(time.Now().Add(10 * time.Second))
		_, _ = nc.Write(raw)
		_ = nc.(*net.TCPConn).CloseWrite()
		var ne net.Error
		if _, err := io.Copy(io.Discard, nc); errors.As(err, &ne) && ne.Timeout() {
			t.Fatal("the edge did not end the connection")
		}
		edge, backend, faults := o.take()
		if len(faults) > 0 {
			t.Fatalf("%q\nedge %q", faults, edge)
		}
		if !slices.Equal(edge, backend) {
			t.Fatalf("the edge read    %q\nthe backend read %q", edge, backend)
		}
	})
}
