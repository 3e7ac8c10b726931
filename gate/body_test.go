package gate

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

// headOnly is a configuration whose rules need nothing of a body, but for one.
const headOnly = `
upstream: { url: "http://127.0.0.1:9", timeout: 2s }
pools:
  lessons: { capacity: 1, hold_ttl: 30s }
rules:
  - name: book
    match: { methods: [POST], path: "/lessons/{lesson}/bookings" }
    action: book
    pool: lessons
    slot: path:lesson
    subject: header:X-Student
    idempotency: { fingerprint: none }
    RULE
  - name: form
    match: { methods: [POST], path: "/forms/{lesson}" }
    action: book
    pool: lessons
    slot: path:lesson
    subject: form:student
  - name: plain
    match: { methods: [POST], path: "/plain" }
    action: guard
`

// held is a request whose client waits to be asked for its body.
type held struct {
	path, student, key string
	body               func() ([]byte, error) // nil: "b"
}

// send serves the request, and tells whether the client was asked for its body.
func (f *fixture) send(h held) (reply *Reply, asked int) {
	f.t.Helper()
	req := &Request{
		Request: rules.Request{
			Method: "POST", Path: h.path, Host: "shop.test", Client: netip.MustParseAddr("192.0.2.7"),
			Header: []rules.Field{{Name: "Content-Type", Value: "text/plain"}, {Name: "X-Student", Value: h.student}, {Name: "Cookie", Value: "a=1"}},
		},
		ID:       "test",
		BodyHeld: true,
		Gone:     func() bool { return false },
		Arrived:  time.Now(),
	}
	if h.key != "" {
		req.Header = append(req.Header, rules.Field{Name: "Idempotency-Key", Value: h.key})
	}
	req.ReadBody = func() ([]byte, error) {
		asked++
		if h.body != nil {
			return h.body()
		}
		return []byte("b"), nil
	}
	m, _, reply := f.Route(req)
	if reply == nil {
		reply = f.Serve(req, m)
	}
	return reply, asked
}

const lesson1 = "/lessons/1/bookings"

// Who is refused is not asked for a body that the rule does not read; who is
// admitted is, once, and its body goes on.
func TestAHeldBodyIsAskedForOnlyWhereItIsNeeded(t *testing.T) {
	f := newFixtureYAML(t, rule(headOnly, "limits: { rule: { rate: 3/h, burst: 3 } }"))
	var got string
	f.backend.set(func(_, body string) (*BackendAnswer, error) {
		got = body
		return answers(201, "{}"), nil
	})
	reply, asked := f.send(held{path: lesson1, student: "ann", key: "k1"})
	if f.want(reply, decision.DecisionAdmitted, 201); asked != 1 || got != "b" {
		t.Fatalf("admitted: asked %d times, the backend got %q", asked, got)
	}
	for _, test := range []struct {
		request held
		want    decision.Decision
		status  int
		asked   int
	}{
		{held{path: lesson1, student: "ann", key: "k1"}, decision.DecisionReplayed, 201, 0},
		{held{path: lesson1, student: "bob"}, decision.DecisionSoldOut, 409, 0},
		{held{path: lesson1, student: "eve"}, decision.DecisionRateLimited, 429, 0},
		{held{path: lesson1}, decision.DecisionUnidentified, 400, 0},
		// Its subject is in the body.
		{held{path: "/forms/1"}, decision.DecisionAmbiguous, 400, 1},
		{held{path: "/plain"}, decision.DecisionAdmitted, 201, 1},
	} {
		reply, asked := f.send(test.request)
		if f.want(reply, test.want, test.status); asked != test.asked {
			t.Errorf("%+v: asked %d times", test.request, asked)
		}
	}
	if f.backend.count() != 2 {
		t.Fatalf("%d requests forwarded", f.backend.count())
	}
}

func rule(yaml, more string) string { return strings.ReplaceAll(yaml, "RULE", more) }

// A body that does not come, or is refused, takes nothing: unit and key are free
// before the client reads why, with the store and without it.
func TestAnAdmittedBodyThatDoesNotComeFreesItsUnit(t *testing.T) {
	for _, test := range []struct {
		err    error
		want   decision.Decision
		status int
	}{
		{ErrSlowBody, decision.DecisionUnidentified, 408},
		{ErrBadBody, decision.DecisionUnidentified, 400},
		{ErrClientGone, decision.DecisionUnidentified, 400},
		{ErrOverloaded, decision.DecisionBusy, 503},
		{&rules.Refusal{Kind: rules.RefuseTooLarge}, decision.DecisionTooLarge, 413},
	} {
		for _, away := range []bool{false, true} {
			t.Run(fmt.Sprint(test.err, " away ", away), func(t *testing.T) {
				f := newFixtureYAML(t, rule(headOnly, ""))
				if away {
					f.store.set(func(string) error { return &store.Error{Kind: store.KindConnection, Err: errors.New("away")} }, nil)
				}
				reply, asked := f.send(held{path: lesson1, student: "ann", key: "k1", body: func() ([]byte, error) { return nil, test.err }})
				f.want(reply, test.want, test.status)
				if asked != 1 || f.backend.count() != 0 || reply.Rule != "book" || reply.Outcome != rules.NoOutcome {
					t.Fatalf("asked %d times, %d forwarded, %+v", asked, f.backend.count(), reply)
				}
				want := decision.DecisionPassthrough
				if !away {
					want = decision.DecisionAdmitted
					if s := f.slot("1"); s.Held != 0 || s.Inflight != 0 {
						t.Fatalf("%+v", s)
					}
				}
				reply, _ = f.send(held{path: lesson1, student: "ann", key: "k1"})
				f.want(reply, want, 201)
				f.store.set(nil, nil)
				waitFor(t, func() bool {
					q, _ := f.Query("lessons", "1")
					s, err := f.store.Slot(t.Context(), q)
					return err == nil && s.Confirmed == 1 && s.Held == 0
				})
			})
		}
	}
}

// The lease bounds how long a body may keep a unit: then it is free while the client
// still sends, and the request is decided on again when its body is there.
func TestABodyThatComesLateIsDecidedOnAgain(t *testing.T) {
	for _, taken := range []bool{false, true} {
		t.Run(fmt.Sprint("taken meanwhile ", taken), func(t *testing.T) {
			f := newFixtureYAML(t, rule(headOnly, ""))
			late := func() ([]byte, error) {
				if s := f.slot("1"); s.Held != 1 {
					t.Errorf("admitted, but %d held", s.Held)
				}
				waitFor(t, func() bool { return f.slot("1").Held == 0 })
				if taken {
					reply, _ := f.send(held{path: lesson1, student: "bob"})
					f.want(reply, decision.DecisionAdmitted, 201)
				}
				return []byte("b"), nil
			}
			reply, asked := f.send(held{path: lesson1, student: "ann", key: "k1", body: late})
			if taken {
				f.want(reply, decision.DecisionSoldOut, 409)
			} else {
				f.want(reply, decision.DecisionAdmitted, 201)
			}
			if s := f.slot("1"); asked != 1 || f.backend.count() != 1 || s.Confirmed != 1 || s.Held != 0 {
				t.Fatalf("asked %d times, %d forwarded, %+v", asked, f.backend.count(), s)
			}
		})
	}
}

// A rule's own words take the place of the gate's for a slow body too.
func TestASlowBodyHasTheRulesOwnAnswer(t *testing.T) {
	f := newFixtureYAML(t, rule(headOnly, "answers: { unidentified: { status: 200, body: again } }"))
	reply, _ := f.send(held{path: lesson1, student: "ann", body: func() ([]byte, error) { return nil, ErrSlowBody }})
	if f.want(reply, decision.DecisionUnidentified, 200); string(reply.Body) != "again" {
		t.Fatalf("%s", reply.Body)
	}
}
