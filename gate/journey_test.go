package gate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

const keyed = "idempotency: { key: [header:Idempotency-Key] }"

func TestABookingIsAdmittedSettledAndReplayed(t *testing.T) {
	f := newFixture(t, "capacity: 2", keyed)
	who := []string{"Idempotency-Key: k1", "Authorization: Bearer ann"}
	first := f.want(f.book(call{fields: who}), decision.DecisionAdmitted, 201)
	if first.Outcome != rules.Booked || first.Hold == "" || first.Mode != ModeNormal || first.Rule != "book" {
		t.Fatalf("got %+v", first)
	}
	if s := f.slot("1"); s.Confirmed != 1 || s.Held != 0 {
		t.Fatalf("settled before the answer: confirmed %d, held %d", s.Confirmed, s.Held)
	}
	again := f.want(f.book(call{fields: who}), decision.DecisionReplayed, 201)
	if !bytes.Equal(again.Body, first.Body) || !again.Replayed || field(again, "Content-Type") != "application/json" {
		t.Fatalf("the replay differs: %+v", again)
	}
	if field(again, "Set-Cookie") != "" || field(first, "Set-Cookie") == "" {
		t.Fatal("Set-Cookie belongs to the first answer only")
	}
	if f.backend.count() != 1 {
		t.Fatalf("the backend saw %d requests", f.backend.count())
	}
	f.want(f.book(call{student: "bob", fields: []string{"Idempotency-Key: k2"}}), decision.DecisionAdmitted, 201)
	f.want(f.book(call{student: "cid", fields: []string{"Idempotency-Key: k3"}}), decision.DecisionSoldOut, 409)
}

func TestOneKeyBelongsToOneRequestAndOnePrincipal(t *testing.T) {
	f := newFixture(t, "capacity: 9", keyed)
	key := "Idempotency-Key: a-key-of-16-chars-or-more"
	f.want(f.book(call{fields: []string{key, "Authorization: Bearer ann"}}), decision.DecisionAdmitted, 201)
	quoted := "Idempotency-Key: \"a-key-of-16-chars-or-more\""
	f.want(f.book(call{fields: []string{quoted, "Authorization: Bearer ann"}}), decision.DecisionReplayed, 201)
	for name, c := range map[string]call{
		"other body":   {student: "bob", fields: []string{key, "Authorization: Bearer ann"}},
		"other lesson": {lesson: "2", fields: []string{key, "Authorization: Bearer ann"}},
	} {
		if r := f.book(c); r.Decision != decision.DecisionKeyMismatch || r.Status != 422 {
			t.Errorf("%s: %s %d", name, r.Decision, r.Status)
		}
	}
	for _, scope := range []string{"Authorization: Bearer eve", "Cookie: sid=1", "X-Nothing: 1"} {
		r := f.want(f.book(call{fields: []string{key, scope}}), decision.DecisionDuplicate, 409)
		if bytes.Contains(r.Body, []byte(`"id"`)) {
			t.Fatalf("%s was shown the stored answer", scope)
		}
	}
	for _, bad := range []string{"", strings.Repeat("k", 256), "a\x01b"} {
		f.want(f.book(call{fields: []string{"Idempotency-Key: " + bad}}), decision.DecisionKeyInvalid, 400)
	}
	f.want(f.book(call{fields: []string{"Idempotency-Key: x", "Idempotency-Key: x"}}), decision.DecisionKeyInvalid, 400)
	if f.backend.count() != 1 {
		t.Fatalf("the backend saw %d requests", f.backend.count())
	}
}

func TestAStoredAnswerOfAnotherRequestIsNeverShown(t *testing.T) {
	f := newFixture(t, "capacity: 9", keyed)
	j := &journey{gate: f.Gate, book: f.Gate.book.Load(), req: &Request{ID: "x"}, match: rules.Match{Rule: f.Gate.book.Load().Set.Rules[0]}, facts: rules.Facts{Fingerprint: [32]byte{1}}}
	foreign := decision.EncodeStored(&decision.Stored{Answer: decision.Answer{Status: 201, Body: []byte("SECRET")}, Fingerprint: [32]byte{2}}, 1<<20)
	for _, stored := range [][]byte{foreign, []byte("garbage")} {
		r := f.want(j.replay(&store.Decided{Verdict: decision.Replay, Answer: stored}, true), decision.DecisionDuplicate, 409)
		if bytes.Contains(r.Body, []byte("SECRET")) {
			t.Fatal("shown")
		}
	}
}

// held starts a booking that stays at the backend until release is called.
func (f *fixture) held(c call) (release func(*BackendAnswer, error), reply <-chan *Reply) {
	type result struct {
		a   *BackendAnswer
		err error
	}
	arrived, results, replies := make(chan struct{}), make(chan result, 1), make(chan *Reply, 1)
	var once sync.Once
	f.backend.set(func(string, string) (*BackendAnswer, error) {
		once.Do(func() { close(arrived) })
		r := <-results
		results <- r
		return r.a, r.err
	})
	go func() { replies <- f.book(c) }()
	<-arrived
	return func(a *BackendAnswer, err error) { results <- result{a, err} }, replies
}

func TestTwinsGetTheOwnersAnswerAndNeverForward(t *testing.T) {
	owners := map[string]struct {
		answer *BackendAnswer
		err    error
		status int
	}{
		"booked, kept":      {answers(201, "yes"), nil, 201},
		"refused, not kept": {answers(422, "no"), nil, 422},
		"unanswered":        {nil, &BackendError{Failure: TimedOut, Err: errors.New("late")}, 504},
	}
	for name, owner := range owners {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, "capacity: 9", keyed)
			who := []string{"Idempotency-Key: k", "Authorization: Bearer ann"}
			release, first := f.held(call{fields: who})
			twin, stranger := make(chan *Reply, 1), make(chan *Reply, 1)
			go func() { twin <- f.book(call{fields: who}) }()
			go func() { stranger <- f.book(call{fields: []string{"Idempotency-Key: k", "Authorization: Bearer eve"}}) }()
			f.want(f.book(call{student: "bob", fields: who}), decision.DecisionKeyMismatch, 422)
			waitFor(t, func() bool { return f.waitingTwins() == 2 })
			release(owner.answer, owner.err)
			a, b, c := <-first, <-twin, <-stranger
			if a.Status != owner.status || b.Status != owner.status || !bytes.Equal(a.Body, b.Body) || b.Decision != decision.DecisionReplayed || b.Outcome != a.Outcome {
				t.Fatalf("owner %d %s %v, twin %d %s %v %s", a.Status, a.Body, a.Outcome, b.Status, b.Body, b.Outcome, b.Decision)
			}
			if c.Decision != decision.DecisionDuplicate && c.Decision != decision.DecisionOutcomeUnknown {
				t.Fatalf("a twin of another principal got %s", c.Decision)
			}
			if f.backend.count() != 1 {
				t.Fatalf("the backend saw %d requests", f.backend.count())
			}
		})
	}
}

func TestInFlightRejectAndWaitRunOut(t *testing.T) {
	for rule, least := range map[string]time.Duration{
		"idempotency: { in_flight: reject }": 0,
		"idempotency: { wait: 60ms }":        60 * time.Millisecond,
	} {
		f := newFixture(t, "capacity: 9", rule)
		release, first := f.held(call{fields: []string{"Idempotency-Key: k"}})
		began := time.Now()
		r := f.want(f.book(call{fields: []string{"Idempotency-Key: k"}}), decision.DecisionInFlight, 409)
		if field(r, "Retry-After") == "" || time.Since(began) < least {
			t.Fatalf("%s: after %v, %v", rule, time.Since(began), r.Header)
		}
		release(answers(201, ""), nil)
		<-first
	}
}

func TestAnUnknownOutcomeKeepsItsUnit(t *testing.T) {
	late := &BackendError{Failure: TimedOut, Err: errors.New("late")}
	duplicateLine := `
    outcomes: [ { when: { status: 409, text: "dup" }, is: duplicate } ]`
	who := []string{"Idempotency-Key: k", "Authorization: Bearer ann"}
	for _, test := range []struct {
		name, rule string
		retry      bool
	}{
		{"retry", keyed + duplicateLine, true},
		{"reject", keyed, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture(t, "capacity: 1", test.rule)
			f.backend.set(func(string, string) (*BackendAnswer, error) { return nil, late })
			r := f.want(f.book(call{fields: who}), decision.DecisionUpstreamTimeout, 504)
			if r.Outcome != rules.Unknown || r.Hold == "" {
				t.Fatalf("got %+v", r)
			}
			f.want(f.book(call{student: "bob"}), decision.DecisionSoldOut, 409)
			f.backend.set(func(string, string) (*BackendAnswer, error) { return answers(409, "dup"), nil })
			if !test.retry {
				f.want(f.book(call{fields: who}), decision.DecisionOutcomeUnknown, 409)
				return
			}
			again := f.want(f.book(call{fields: who}), decision.DecisionAdmitted, 409)
			if again.Hold != r.Hold || again.Outcome != rules.Duplicate {
				t.Fatalf("a retry took another unit: %+v", again)
			}
			if s := f.slot("1"); s.Confirmed != 1 || s.Held != 0 {
				t.Fatalf("confirmed %d, held %d", s.Confirmed, s.Held)
			}
		})
	}
}

func TestWhatWasNeverSentIsFreeAtOnce(t *testing.T) {
	f := newFixture(t, "capacity: 1", "")
	for _, failure := range []BackendFailure{NotConnected, BreakerOpen, NoRoom} {
		f.backend.set(func(string, string) (*BackendAnswer, error) {
			return nil, &BackendError{Failure: failure, Err: errors.New("no")}
		})
		r := f.book(call{})
		if r.Outcome != rules.NoOutcome || r.Status/100 != 5 {
			t.Fatalf("%+v", r)
		}
	}
	f.backend.set(nil)
	f.want(f.book(call{}), decision.DecisionAdmitted, 201)
}

func TestBusyIsRetriedWithinItsBounds(t *testing.T) {
	f := newFixture(t, "capacity: 1", "retry: { on: [busy], attempts: 3, backoff: 1ms, max_backoff: 2ms }")
	busy := answers(503, "later", "Retry-After: 1")
	f.backend.set(func(string, string) (*BackendAnswer, error) { return busy, nil })
	r := f.want(f.book(call{}), decision.DecisionAdmitted, 503)
	if f.backend.count() != 3 || r.Outcome != rules.Busy || field(r, "Retry-After") != "1" {
		t.Fatalf("%d attempts, %+v", f.backend.count(), r)
	}
	if s := f.slot("1"); s.Held+s.Confirmed != 0 {
		t.Fatal("busy is a definite failure")
	}
	f.backend.set(func(string, string) (*BackendAnswer, error) {
		if f.backend.count() < 5 {
			return busy, nil
		}
		return answers(201, "ok"), nil
	})
	f.want(f.book(call{}), decision.DecisionAdmitted, 201)
}

func TestAGrantThatComesTooLateIsNotUsed(t *testing.T) {
	yaml := strings.NewReplacer("POOL", "capacity: 1", "RULE", "").Replace(lessons)
	yaml = strings.Replace(yaml, "timeout: 2s", "timeout: 100ms", 1)
	f := newFixtureYAML(t, yaml)
	f.Gate.book.Load().Set.Rules[0].Retry.MaxBackoff = 0
	f.Gate.book.Load().routes[0].decide.Lease = 400 * time.Millisecond // leaves 50 ms for the first byte
	calls := 0
	f.store.set(nil, func(op string) error {
		if calls++; op == "decide" && calls == 1 {
			time.Sleep(80 * time.Millisecond)
		}
		return nil
	})
	r := f.want(f.book(call{}), decision.DecisionAdmitted, 201)
	if calls != 4 { // decide, settle as never sent, decide, settle
		t.Fatalf("%d store calls", calls)
	}
	if s := f.slot("1"); s.Confirmed != 1 || s.Held != 0 || len(s.Holds) != 1 || s.Holds[0].ID != r.Hold {
		t.Fatalf("%+v", s)
	}
}

func TestRoomInTheSlotGoesByArrival(t *testing.T) {
	f := newFixture(t, "capacity: 9, max_inflight: 1, queue: { size: 4, wait: 5s }", "")
	release, first := f.held(call{student: "s0"})
	var order []string
	replies := make(chan *Reply, 4)
	for i := 1; i <= 4; i++ {
		go func() { replies <- f.book(call{student: fmt.Sprintf("s%d", i)}) }()
		waitFor(t, func() bool { return f.Status().Waiting["lessons"] == i })
	}
	f.want(f.book(call{student: "too many"}), decision.DecisionBusy, 503)
	inside := 0
	f.backend.set(func(_, body string) (*BackendAnswer, error) {
		inside++ // the race detector and the count hold max_inflight
		if inside != 1 {
			t.Error("two at the backend")
		}
		order = append(order, body)
		inside--
		return answers(201, ""), nil
	})
	release(answers(201, ""), nil)
	<-first
	for range 4 {
		f.want(<-replies, decision.DecisionAdmitted, 201)
	}
	for i, body := range order {
		if want := fmt.Sprintf(`{"student":"s%d"}`, i+1); body != want {
			t.Fatalf("order %v", order)
		}
	}
	if n := f.Status().Waiting["lessons"]; n != 0 {
		t.Fatalf("%d still wait", n)
	}
}

func TestWhoCannotBeServedDoesNotWaitInLine(t *testing.T) {
	f := newFixture(t, "capacity: 2, max_inflight: 1, one_per_subject: true, queue: { size: 4, wait: 5s }", keyed)
	f.want(f.book(call{student: "done", fields: []string{"Idempotency-Key: k1", "Cookie: a=1"}}), decision.DecisionAdmitted, 201)
	release, first := f.held(call{student: "running"})
	waiting := make(chan *Reply, 1)
	gone := make(chan struct{})
	go func() {
		waiting <- f.book(call{student: "waiting", gone: func() bool {
			select {
			case <-gone:
				return true
			default:
				return false
			}
		}})
	}()
	// The slot's two units are taken, so it is told at once although it came later.
	f.want(<-waiting, decision.DecisionSoldOut, 409)
	f.want(f.book(call{student: "done", fields: []string{"Idempotency-Key: k1", "Cookie: a=1"}}), decision.DecisionReplayed, 201)
	release(answers(201, ""), nil)
	<-first
	close(gone)
}

func TestAClientThatGoesAwayGivesUpItsPlace(t *testing.T) {
	f := newFixture(t, "capacity: 9, max_inflight: 1, queue: { size: 4, wait: 20s }", "")
	release, first := f.held(call{student: "running"})
	gone := make(chan struct{})
	left := make(chan *Reply, 1)
	go func() {
		left <- f.book(call{student: "leaves", gone: func() bool {
			select {
			case <-gone:
				return true
			default:
				return false
			}
		}})
	}()
	waitFor(t, func() bool { return f.Status().Waiting["lessons"] == 1 })
	close(gone)
	<-left
	if f.Status().Waiting["lessons"] != 0 || f.backend.count() != 1 {
		t.Fatal("its place is kept")
	}
	release(answers(201, ""), nil)
	<-first
}

func TestOnePerSubjectWaitsForTheRunningRequest(t *testing.T) {
	f := newFixture(t, "capacity: 9, one_per_subject: true", "")
	release, first := f.held(call{})
	second := make(chan *Reply, 1)
	go func() { second <- f.book(call{}) }()
	release(answers(201, ""), nil)
	<-first
	f.want(<-second, decision.DecisionDuplicate, 409)
	if f.backend.count() != 1 {
		t.Fatal("forwarded twice")
	}
}

func TestOwnAnswersArePlain(t *testing.T) {
	f := newFixture(t, "capacity: 1", `
    limits: { subject: { rate: 2/10s, burst: 2 } }
    answers: { sold_out: { status: 200, content_type: application/json, headers: { X-Code: "4001" }, body: '{"code":4001,"msg":"名额已满"}' } }`)
	ok := f.want(f.book(call{}), decision.DecisionAdmitted, 201)
	if field(ok, "RateLimit-Policy") != `"subject";q=2;w=10` || field(ok, "RateLimit") != `"subject";r=1;t=5` {
		t.Fatalf("%v", ok.Header)
	}
	sold := f.want(f.book(call{}), decision.DecisionSoldOut, 200)
	if string(sold.Body) != `{"code":4001,"msg":"名额已满"}` || field(sold, "X-Code") != "4001" || field(sold, "Content-Type") != "application/json" {
		t.Fatalf("%s %v", sold.Body, sold.Header)
	}
	limited := f.want(f.book(call{}), decision.DecisionRateLimited, 429)
	var p decision.Problem
	if err := json.Unmarshal(limited.Body, &p); err != nil || p.Type != "urn:slotgate:rate-limited" || p.Status != 429 || !p.Retryable || p.RequestID != "test" || p.Title == "" || p.Detail == "" {
		t.Fatalf("%v %+v", err, p)
	}
	if field(limited, "Content-Type") != "application/problem+json" || field(limited, "Retry-After") == "" || !strings.HasPrefix(field(limited, "RateLimit"), `"subject";r=0;t=`) {
		t.Fatalf("%v", limited.Header)
	}
}

func TestTheRulesOwnLimitAndItsModes(t *testing.T) {
	f := newFixture(t, "capacity: 9", "limits: { rule: { rate: 1/m, burst: 1 } }")
	f.want(f.book(call{}), decision.DecisionAdmitted, 201)
	r := f.want(f.book(call{student: "bob"}), decision.DecisionRateLimited, 429)
	if !strings.HasPrefix(field(r, "RateLimit"), `"rule";r=0;t=`) {
		t.Fatalf("%v", r.Header)
	}
	if err := f.SetMode("book", "off"); err != nil {
		t.Fatal(err)
	}
	if r := f.book(call{}); r != nil {
		t.Fatalf("a rule that is off gated a request: %+v", r)
	}
	if f.SetMode("nothing", "off") == nil || f.SetMode("book", "shade") == nil || f.SetModeAll("odd") == nil {
		t.Fatal("accepted")
	}
	if err := f.SetModeAll("enforce"); err != nil || f.book(call{}) == nil {
		t.Fatalf("not back: %v", err)
	}
}

// waitingTwins is how many watch a key.
func (f *fixture) waitingTwins() int { return f.store.watching() }

// waitFor waits for a state that another goroutine is about to reach.
func waitFor(t testing.TB, reached func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !reached(); {
		if time.Now().After(deadline) {
			t.Fatal("waited in vain")
		}
		time.Sleep(time.Millisecond)
	}
}
