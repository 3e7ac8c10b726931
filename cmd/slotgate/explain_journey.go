package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"github.com/slotgate/slotgate/gate"
	"github.com/slotgate/slotgate/gate/admin"
	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/edge"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/gate/store/memstore"
	"github.com/slotgate/slotgate/gate/upstream"
	"github.com/slotgate/slotgate/rules"
)

// explainTime bounds a request that announces more than it has.
const explainTime = 5 * time.Second

// rehearsal is a gate whose store admits everything and whose backend is not there: a
// request goes through it as through a running one, and what is asked of store and
// backend is noted. It takes one request.
type rehearsal struct {
	*memstore.Store
	gate    *gate.Gate
	config  *rules.Config
	set     *rules.Set
	request *gate.Request // as the edge read it
	match   rules.Match
	off     bool
	refused *gate.Reply // the gate's own answer
	decided *store.Decide
	sent    bool // to the backend, under the rule
	passed  bool // to the backend, ungated
}

// explain sends one request, as the bytes that a client would send, through the
// rehearsal of a gate.
func explain(config *rules.Config, raw []byte, client netip.Addr) (*explanation, error) {
	quiet := slog.New(slog.DiscardHandler)
	config.Store.Journal = ""
	config.Server.TLS = rules.TLSConfig{}
	set, err := rules.NewSet(config)
	if err != nil {
		return nil, err
	}
	r := &rehearsal{Store: memstore.New(memstore.Options{}), config: config, set: set}
	defer func() { _ = r.Store.Close() }()
	metrics := admin.NewMetrics(config, "", "")
	r.gate, err = gate.New(gate.Options{Config: config, Set: set, Store: r, Backend: r, Meter: metrics, Logger: quiet})
	if err != nil {
		return nil, err
	}
	over, cancel := context.WithTimeout(context.Background(), explainTime)
	defer cancel()
	defer r.gate.Close(over)
	server, err := edge.New(edge.Options{Config: config.Server, Gate: r, Backend: r, Meter: metrics, Logger: quiet})
	if err != nil {
		return nil, err
	}
	answer, body, err := exchange(over, server, raw, client)
	if err != nil {
		return nil, err
	}
	e := r.explanation(answer, body)
	e.Layers = append(e.Layers, r.pageLayers()...)
	return e, nil
}

// exchange gives the server one connection with the request, and reads the answer.
func exchange(over context.Context, server *edge.Server, raw []byte, client netip.Addr) (*http.Response, []byte, error) {
	ours, theirs := net.Pipe()
	listener := &oneConn{conn: addressed{theirs, net.TCPAddrFromAddrPort(netip.AddrPortFrom(client, 40000))}, closed: make(chan struct{})}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	defer func() {
		_ = ours.Close()
		_ = server.Shutdown(over)
		_ = listener.Close()
		<-served
	}()
	_ = ours.SetDeadline(time.Now().Add(explainTime))
	go func() { _, _ = ours.Write(raw) }() // an answer may come before all of it is read
	method, _, _ := bytes.Cut(raw, []byte(" "))
	answer, err := http.ReadResponse(bufio.NewReader(ours), &http.Request{Method: string(method)})
	if err != nil {
		return nil, nil, fmt.Errorf("the request is not complete: the gate still waited for more of it (%w)", err)
	}
	body, _ := io.ReadAll(answer.Body)
	return answer, body, nil
}

// oneConn is a listener with one connection.
type oneConn struct {
	conn   net.Conn
	given  bool
	closed chan struct{}
}

func (l *oneConn) Accept() (net.Conn, error) {
	if !l.given {
		l.given = true
		return l.conn, nil
	}
	<-l.closed
	return nil, net.ErrClosed
}

func (l *oneConn) Close() error {
	select {
	case <-l.closed:
	default:
		close(l.closed)
	}
	return nil
}

func (l *oneConn) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }

// addressed is a connection from an address of choice.
type addressed struct {
	net.Conn
	remote net.Addr
}

func (a addressed) RemoteAddr() net.Addr { return a.remote }

// Route and Serve are the edge's way into the gate.
func (r *rehearsal) Route(req *gate.Request) (rules.Match, bool, *gate.Reply) {
	r.request = req
	r.match, r.off, r.refused = r.gate.Route(req)
	return r.match, r.off, r.refused
}

func (r *rehearsal) Serve(req *gate.Request, m rules.Match) *gate.Reply {
	reply := r.gate.Serve(req, m)
	r.keep(req)
	if !r.sent {
		r.refused = reply
	}
	return reply
}

// Decide admits everything.
func (r *rehearsal) Decide(_ context.Context, d *store.Decide) (store.Decided, error) {
	asked := *d
	r.decided = &asked
	got := store.Decided{Verdict: decision.Admitted, Left: -1}
	if d.Pool != "" && d.Action == store.Book {
		got.Hold = d.ID
	}
	return got, nil
}

// Secret is that of the gates in operation, where the configuration has it: by another no
// one-time id is good.
func (r *rehearsal) Secret(ctx context.Context, purpose string) ([32]byte, error) {
	if secret := r.config.Store.Secret; secret != "" && r.config.Store.Kind == "redis" {
		return store.DeriveKey(secret, purpose), nil
	}
	return r.Store.Secret(ctx, purpose)
}

// Settle takes everything.
func (r *rehearsal) Settle(context.Context, *store.Settle) (store.Settled, error) {
	return store.Settled{Applied: true}, nil
}

// errNobody is what the backend of a rehearsal says.
var errNobody = errors.New("nothing is sent")

// Forward, Pass and Upgrade are the backend's side.
func (r *rehearsal) Forward(*gate.Forward) (*gate.BackendAnswer, error) {
	r.sent = true
	return nil, &gate.BackendError{Failure: gate.NotConnected, Err: errNobody}
}

func (r *rehearsal) Pass(req *gate.Request, body io.Reader, _ int64) (*upstream.Stream, error) {
	r.pass(req)
	if body != nil {
		_, _ = io.Copy(io.Discard, body)
	}
	return nil, &gate.BackendError{Failure: gate.NotConnected, Err: errNobody}
}

func (r *rehearsal) Upgrade(req *gate.Request, _ string) (*upstream.Tunnel, *upstream.Stream, error) {
	r.pass(req)
	return nil, nil, &gate.BackendError{Failure: gate.NotConnected, Err: errNobody}
}

// pass notes a request that is not gated. Where a shadow looks at it, it stays as it is.
func (r *rehearsal) pass(req *gate.Request) {
	r.passed = true
	if req.Shadow == nil {
		r.keep(req)
	}
}

// keep copies a request as it is now: the edge uses its memory again.
func (r *rehearsal) keep(req *gate.Request) {
	own := *req
	own.Header = slices.Clone(req.Header)
	r.request = &own
}

// explanation gathers what was noted.
func (r *rehearsal) explanation(answer *http.Response, body []byte) *explanation {
	e := &explanation{Verdict: "refused"}
	if r.request != nil {
		e.Request = &explainedRequest{Method: r.request.Method, Target: r.request.Path, Host: r.request.Host, Client: r.request.Client.String()}
		if r.request.Query != "" {
			e.Request.Target += "?" + r.request.Query
		}
		for _, c := range r.set.Consider(&r.request.Request) {
			e.Rules = append(e.Rules, explainedRule{Rule: c.Rule.Name, Fits: c.Fits, Why: c.Why})
		}
	}
	if r.request != nil && r.request.Shadow.Reply() != nil {
		return r.shadowed(e)
	}
	switch {
	case r.passed:
		e.Verdict = "passed on, not gated"
		if r.off {
			e.Verdict = "passed on, not gated: the rule's mode is off"
		}
	case r.sent:
		e.Verdict = "forwarded, if the store admits it"
	default:
		e.Answer = &explainedAnswer{Status: answer.StatusCode, Decision: answer.Header.Get("Gate-Decision"), Body: string(body)}
	}
	r.facts(e)
	if r.sent {
		e.Layers = layers(r.match.Rule, e.explainedFacts, r.config)
	}
	return e
}

// shadowed is the explanation of a request that its rule only counts. Nobody answered it
// here, so what enforce would have sent ended in the backend's failure.
func (r *rehearsal) shadowed(e *explanation) *explanation {
	would := r.request.Shadow.Reply().Shadow
	r.match = r.request.Shadow.Match()
	r.facts(e)
	if would != decision.DecisionUpstreamFailed {
		e.Shadow = string(would)
		e.Verdict = fmt.Sprintf("passed on, whatever the gate says of it: the rule's mode is shadow; enforce would answer %d %s", would.Status(), would)
		return e
	}
	e.Shadow = string(decision.DecisionAdmitted)
	e.Verdict = "passed on, whatever the gate says of it: the rule's mode is shadow; enforce would forward it, if the store admits it"
	e.Layers = layers(r.match.Rule, e.explainedFacts, r.config)
	return e
}

// facts fills in the rule and what it read.
func (r *rehearsal) facts(e *explanation) {
	if r.match.Rule == nil {
		return
	}
	e.Rule, e.Path = r.match.Rule.Name, r.match.Path
	for _, p := range r.match.Params.All() {
		if e.Params == nil {
			e.Params = map[string]string{}
		}
		e.Params[p.Name] = p.Value
	}
	if d := r.decided; d != nil {
		e.explainedFacts = &explainedFacts{
			Action: r.match.Rule.Action, Pool: d.Pool, Slot: d.Slot, Subject: d.Subject, Key: d.Key, Group: d.Group,
			Partition: d.Partition, Scoped: d.Scope != "", Replays: d.Scope != "" || d.BareReplay, Fingerprint: base64.RawURLEncoding.EncodeToString(d.Fingerprint[:]),
		}
		if d.Action == store.Book && d.Pool != "" {
			e.Units = d.Units
		}
		e.KeySource = keySources[rules.KeySourceOf(d.Key)]
	}
}
