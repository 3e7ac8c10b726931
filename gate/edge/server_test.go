package edge

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/slotgate/slotgate/gate"
	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/upstream"
	"github.com/slotgate/slotgate/rules"
)

// fasthttp keeps a worker pool and a clock for the life of the process.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*HostClient).connsCleaner"), // the benchmark's bare proxy
	)
}

// fixture is a server before a backend, with a gate made by the test.
type fixture struct {
	*Server
	addr    string
	ln      net.Listener
	meter   *kinds
	served  chan error
	backend *upstream.Client
}

// testGate gates what begins with /book.
type testGate struct {
	serve func(*gate.Request) *gate.Reply
	route func(*gate.Request) (rules.Match, *gate.Reply)
	off   string // the path of a rule that is off
}

func (g *testGate) Route(r *gate.Request) (rules.Match, bool, *gate.Reply) {
	if g.route != nil {
		m, reply := g.route(r)
		return m, false, reply
	}
	if strings.HasPrefix(r.Path, "/book") {
		return rules.Match{Rule: &rules.Rule{}}, false, nil
	}
	return rules.Match{}, r.Path == g.off, nil
}

func (g *testGate) Serve(r *gate.Request, _ rules.Match) *gate.Reply { return g.serve(r) }

// copied is a request for a test to look at when it has its answer.
func copied(r *gate.Request) *gate.Request {
	c := *r
	c.Header = slices.Clone(r.Header)
	return &c
}

// kinds counts refusals, and knows the tunnels.
type kinds struct {
	mu      sync.Mutex
	count   map[string]int
	tunnels []int // every number that was told
}

func (k *kinds) Tunnels(open int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.tunnels = append(k.tunnels, open)
}

func (k *kinds) EdgeRefusal(kind string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.count[kind]++
}

func (k *kinds) of(kind string) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.count[kind]
}

func config() rules.ServerConfig {
	return rules.ServerConfig{
		MaxBody:        1 << 20,
		MaxHeader:      16 << 10,
		MaxBuffered:    64 << 20,
		ReadTimeout:    2 * time.Second,
		IdleTimeout:    2 * time.Second,
		MaxConnections: 1000,
		GateHeaders:    true,
		Unmatched:      "pass",
	}
}

// start runs a server before the backend at backendURL.
func start(t testing.TB, backendURL string, g *testGate, change ...func(*rules.ServerConfig)) *fixture {
	t.Helper()
	return startLogged(t, nil, backendURL, g, change...)
}

// startLogged has an access log, unless it is nil.
func startLogged(t testing.TB, access AccessLog, backendURL string, g *testGate, change ...func(*rules.ServerConfig)) *fixture {
	t.Helper()
	if backendURL == "" {
		backendURL = "http://127.0.0.1:1"
	}
	client, err := upstream.New(upstream.Options{URL: backendURL, Timeout: 2 * time.Second, KeepAlive: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	cfg := config()
	for _, f := range change {
		f(&cfg)
	}
	if g == nil {
		g = &testGate{}
	}
	if g.serve == nil {
		g.serve = forwarding(client)
	}
	meter := &kinds{count: map[string]int{}}
	s, err := New(Options{Config: cfg, Gate: g, Backend: client, Meter: meter, Logger: slog.New(slog.DiscardHandler), AccessLog: access, Discretion: new(rules.Set)})
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{Server: s, addr: ln.Addr().String(), ln: ln, meter: meter, served: make(chan error, 1), backend: client}
	go func() { f.served <- s.Serve(ln) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = s.Shutdown(ctx)
		if err := <-f.served; err != nil {
			t.Errorf("Serve: %v", err)
		}
		client.Close()
		if n := s.budget.Used(); n != 0 {
			t.Errorf("%d bytes of the budget were not given back", n)
		}
	})
	return f
}

// forwarding is a gate that admits everything.
func forwarding(client *upstream.Client) func(*gate.Request) *gate.Reply {
	return func(r *gate.Request) *gate.Reply {
		body, err := r.ReadBody()
		if err != nil {
			return refused(err)
		}
		r.Body = body
		a, err := client.Forward(&gate.Forward{Request: r, SendBy: time.Now().Add(2 * time.Second), Timeout: 2 * time.Second, Limit: 1 << 20})
		if err != nil {
			return own(decision.DecisionUpstreamFailed)
		}
		return &gate.Reply{
			Answer:   decision.Answer{Status: a.Status, Header: a.Header, Body: a.Body},
			Decision: decision.DecisionAdmitted, Mode: gate.ModeNormal, Rule: "book", Outcome: rules.Booked, Hold: "h1",
			Release: a.Release,
		}
	}
}

func refused(err error) *gate.Reply {
	var refusal *rules.Refusal
	switch {
	case errors.As(err, &refusal):
		return own(decision.Decision(refusal.Kind))
	case errors.Is(err, gate.ErrOverloaded):
		return own(decision.DecisionBusy)
	}
	reply := own(decision.DecisionUnidentified)
	if errors.Is(err, gate.ErrSlowBody) {
		reply.Status = 408
	}
	return reply
}

func own(d decision.Decision) *gate.Reply {
	return &gate.Reply{Answer: decision.NewProblem(d, "detail", "id").Answer(), Decision: d, Mode: gate.ModeNormal, Rule: "book"}
}

// client is a raw connection to the server.
type client struct {
	net.Conn
	in *bufio.Reader
	t  testing.TB
}

func dial(t testing.TB, addr string) *client {
	t.Helper()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nc.Close() })
	_ = nc.SetDeadline(time.Now().Add(20 * time.Second))
	return &client{Conn: nc, in: bufio.NewReader(nc), t: t}
}

func (c *client) send(raw string) {
	c.t.Helper()
	if _, err := io.WriteString(c, raw); err != nil {
		c.t.Fatal(err)
	}
}

// answer reads one answer with its whole body.
func (c *client) answer(method string) (*http.Response, string) {
	c.t.Helper()
	resp, err := http.ReadResponse(c.in, &http.Request{Method: method})
	if err != nil {
		c.t.Fatalf("no answer: %v", err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatalf("body: %v", err)
	}
	return resp, string(body)
}

// closed reports that the server ends the connection without another byte.
func (c *client) closed() bool {
	_, err := c.in.ReadByte()
	var ne net.Error
	return err != nil && !(errors.As(err, &ne) && ne.Timeout())
}

// ask sends one request on a connection of its own.
func ask(t testing.TB, addr, raw string) (*http.Response, string) {
	t.Helper()
	c := dial(t, addr)
	c.send(raw)
	method, _, _ := strings.Cut(raw, " ")
	return c.answer(method)
}

// echo is a backend that answers with the request as net/http read it.
func echo(t testing.TB) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Length", http.Header{"L": r.TransferEncoding}.Get("L"))
		_, _ = io.WriteString(w, r.Method+" "+r.RequestURI+" "+string(body))
	}))
	t.Cleanup(s.Close)
	return s
}

// rawBackend answers every request with the same bytes and hands over the head it
// got.
func rawBackend(t testing.TB, raw string) (url string, heads <-chan string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan string, 100)
	var wg sync.WaitGroup
	var mu sync.Mutex
	var open []net.Conn
	wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open = append(open, c)
			mu.Unlock()
			wg.Go(func() {
				defer func() { _ = c.Close() }()
				in := bufio.NewReader(c)
				for {
					var head strings.Builder
					for {
						line, err := in.ReadString('\n')
						if err != nil {
							return
						}
						head.WriteString(line)
						if line == "\r\n" {
							break
						}
					}
					got <- head.String()
					if _, err := io.WriteString(c, raw); err != nil || strings.Contains(raw, "X-Then: close") {
						return
					}
				}
			})
		}
	})
	t.Cleanup(func() {
		_ = ln.Close()
		mu.Lock()
		for _, c := range open {
			_ = c.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
	return "http://" + ln.Addr().String(), got
}
