package conformance

import (
	"context"
	"errors"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slotgate/slotgate/gate"
	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/edge"
	"github.com/slotgate/slotgate/gate/testbed"
	"github.com/slotgate/slotgate/gate/upstream"
	"github.com/slotgate/slotgate/rules"
)

// proxy is one of those that are compared, before a backend of its own. It runs for
// the whole test.
type proxy struct {
	name string
	own  bool // it is this gate
	addr string
	// pollsPool: see conformanceCase.chance.
	pollsPool bool
	backend   *backend
	// host is what the backend gets as Host where it does not get the client's.
	host string
	// forget drops the connections to the backend, if the proxy does not do so when
	// the backend closes them; nil: it does.
	forget func()
}

// slotgate is this gate's edge, which gates every request or none: gated ones are
// read and forwarded whole, others are streamed.
func slotgate(t *testing.T, gated bool) *proxy {
	b := startBackend(t)
	g := &admitting{url: "http://" + b.addr(), gated: gated}
	g.forget()
	server, err := edge.New(edge.Options{
		Config: rules.ServerConfig{
			MaxBody: 1 << 20, MaxHeader: 16 << 10, MaxBuffered: 64 << 20, MaxConnections: 100,
			ReadTimeout: patience, IdleTimeout: patience, Unmatched: "pass",
		},
		Gate:    g,
		Backend: g,
		Meter:   uncounted{},
		Logger:  slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	listener := listen(t)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := errors.Join(server.Shutdown(ctx), <-served); err != nil {
			t.Errorf("the edge ended with %v", err)
		}
		g.client.Load().Close()
	})
	name := map[bool]string{false: "Slotgate", true: "Slotgate, gated"}[gated]
	return &proxy{name: name, own: true, addr: listener.Addr().String(), backend: b, host: b.addr(), forget: g.forget}
}

// admitting is a gate that admits everything but, like the rules, a path that can be
// read in two ways.
type admitting struct {
	url    string
	gated  bool
	client atomic.Pointer[upstream.Client]
}

// forget takes a new client.
func (g *admitting) forget() {
	client, err := upstream.New(upstream.Options{URL: g.url, Timeout: patience, KeepAlive: time.Minute})
	if err != nil {
		panic(err) // the address of a listener
	}
	if before := g.client.Swap(client); before != nil {
		before.Close()
	}
}

func (g *admitting) Pass(r *gate.Request, body io.Reader, length int64) (*upstream.Stream, error) {
	return g.client.Load().Pass(r, body, length)
}

func (g *admitting) Upgrade(r *gate.Request, protocol string) (*upstream.Tunnel, *upstream.Stream, error) {
	return g.client.Load().Upgrade(r, protocol)
}

func (g *admitting) Route(r *gate.Request) (match rules.Match, off bool, reply *gate.Reply) {
	if !g.gated {
		return match, false, nil
	}
	if _, err := rules.NormalizePath(r.Path); err != nil && r.Path != "*" {
		return match, false, problem(decision.DecisionAmbiguous)
	}
	match.Rule = &rules.Rule{}
	return match, false, nil
}

func (g *admitting) Serve(r *gate.Request, _ rules.Match) *gate.Reply {
	body, err := r.ReadBody()
	if err != nil {
		return problem(decision.DecisionUnidentified)
	}
	r.Body = body
	a, err := g.client.Load().Forward(&gate.Forward{Request: r, SendBy: time.Now().Add(patience), Timeout: patience, Limit: 1 << 20})
	if err != nil {
		return problem(decision.DecisionUpstreamFailed)
	}
	return &gate.Reply{
		Answer:   decision.Answer{Status: a.Status, Header: a.Header, Body: a.Body},
		Decision: decision.DecisionAdmitted, Mode: gate.ModeNormal, Outcome: rules.Booked, Release: a.Release,
	}
}

func problem(d decision.Decision) *gate.Reply {
	return &gate.Reply{Answer: decision.NewProblem(d, "detail", "id").Answer(), Decision: d, Mode: gate.ModeNormal}
}

type uncounted struct{}

func (uncounted) EdgeRefusal(string) {}
func (uncounted) Tunnels(int)        {}

// reverseProxy is the standard library's, as the example of its documentation.
func reverseProxy(t *testing.T) *proxy {
	b := startBackend(t)
	target := &url.URL{Scheme: "http", Host: b.addr()}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	quiet := log.New(io.Discard, "", 0)
	server := &http.Server{
		ErrorLog: quiet,
		Handler: &httputil.ReverseProxy{
			Rewrite: func(r *httputil.ProxyRequest) {
				r.SetURL(target)
				r.SetXForwarded()
			},
			Transport: transport,
			ErrorLog:  quiet,
		},
	}
	listener := listen(t)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		_ = server.Close()
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("net/http ended with %v", err)
		}
		transport.CloseIdleConnections()
	})
	return &proxy{name: "ReverseProxy", pollsPool: true, addr: listener.Addr().String(), backend: b, host: b.addr()}
}

// nginx is the real one; see testbed.Nginx for its configuration.
func nginx(t *testing.T) (p *proxy, version string) {
	b := startBackend(t)
	server := testbed.Nginx(t, b.addr())
	version, err := server.Version()
	if err != nil {
		t.Fatal(err)
	}
	return &proxy{name: "nginx", addr: server.Addr(), backend: b, host: "backend"}, version
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return listener
}
