package gate

import (
	"errors"
	"fmt"
	"testing"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

// beside is a request in shadow on its way past the gate, as the edge lets it go.
type beside struct {
	f      *fixture
	req    *Request
	body   string
	shadow *Shadow
}

func (f *fixture) beside(method, path, body string, c call) *beside {
	f.t.Helper()
	req := newRequest(method, path, body, c)
	m, off, reply := f.Route(req)
	if reply != nil || m.Rule != nil || !off || req.Shadow == nil {
		f.t.Fatalf("not in shadow: %+v, %v, %+v", m.Rule, off, reply)
	}
	return &beside{f, req, body, req.Shadow}
}

// arrive lets the request come whole.
func (b *beside) arrive() *beside {
	b.shadow.Requested([]byte(b.body), nil)
	return b
}

// answered lets the backend answer and the client be told.
func (b *beside) answered(answer *BackendAnswer, err error) *Reply {
	if err != nil {
		b.shadow.Failed(err)
	} else {
		b.shadow.Answered(&answer.Response, BodyWhole)
	}
	b.shadow.End()
	return b.shadow.Reply()
}

// shadowed is a booking in shadow, with the backend's answer.
func (f *fixture) shadowed(c call) *Reply {
	f.t.Helper()
	path, body := c.booking()
	b := f.beside("POST", path, body, c).arrive()
	return b.answered(f.backend.Forward(&Forward{Request: b.req}))
}

// would checks what enforce would have done, and what came of the request.
func (f *fixture) would(r *Reply, d decision.Decision, o rules.Outcome) *Reply {
	f.t.Helper()
	if r == nil || r.Decision != decision.DecisionShadow || r.Mode != ModeShadow || r.Shadow != d || r.Outcome != o {
		f.t.Fatalf("got %+v, want %s %v", r, d, o)
	}
	return r
}

func (f *fixture) report() ShadowReport { return f.Status().Shadow["book"] }

func refusing(status int) func(string, string) (*BackendAnswer, error) {
	return func(string, string) (*BackendAnswer, error) { return answers(status, "{}"), nil }
}

func TestShadowCountsWhatTheBackendSells(t *testing.T) {
	f := newFixture(t, "capacity: 2, one_per_subject: true", "mode: shadow")
	if r := f.would(f.shadowed(call{student: "ann"}), decision.DecisionAdmitted, rules.Booked); r.Hold == "" || r.Rule != "book" {
		t.Fatalf("%+v", r)
	}
	f.backend.set(refusing(409))
	f.would(f.shadowed(call{student: "ann"}), decision.DecisionDuplicate, rules.Refused)
	f.backend.set(nil) // it has no constraint: it books whatever comes
	f.would(f.shadowed(call{student: "ann"}), decision.DecisionDuplicate, rules.Booked)
	f.would(f.shadowed(call{student: "bob"}), decision.DecisionSoldOut, rules.Booked)
	if s := f.slot("1"); s.Confirmed != 3 || s.Held != 0 {
		t.Fatalf("confirmed %d, held %d, want what the backend booked", s.Confirmed, s.Held)
	}
	r := f.report()
	if r.Would[decision.DecisionAdmitted] != 1 || r.Would[decision.DecisionDuplicate] != 2 || r.Would[decision.DecisionSoldOut] != 1 ||
		r.Booked[decision.DecisionDuplicate] != 1 || r.Booked[decision.DecisionSoldOut] != 1 || r.Rejected != 3 || r.Oversold != 2 {
		t.Fatalf("%+v", r)
	}

	// Enforce finds the counters as they are.
	if err := f.SetMode("book", "enforce"); err != nil {
		t.Fatal(err)
	}
	f.want(f.book(call{student: "eve"}), decision.DecisionSoldOut, 409)
	f.want(f.book(call{student: "ann"}), decision.DecisionDuplicate, 409)
}

func TestShadowFreesWhatIsRefused(t *testing.T) {
	f := newFixture(t, "capacity: 1", "mode: shadow")
	for _, status := range []int{404, 503} {
		f.backend.set(func(string, string) (*BackendAnswer, error) { return answers(status, "", "Retry-After: 1"), nil })
		outcome := map[int]rules.Outcome{404: rules.Refused, 503: rules.Busy}[status]
		f.would(f.shadowed(call{}), decision.DecisionAdmitted, outcome)
	}
	never := &BackendError{Failure: NotConnected, Err: errors.New("down")}
	f.backend.set(func(string, string) (*BackendAnswer, error) { return nil, never })
	f.would(f.shadowed(call{}), decision.DecisionUpstreamFailed, rules.NoOutcome)
	if s := f.slot("1"); s.Held != 0 || s.Confirmed != 0 {
		t.Fatalf("%+v", s)
	}
	f.backend.set(func(string, string) (*BackendAnswer, error) {
		return nil, &BackendError{Failure: TimedOut, Err: errors.New("slow")}
	})
	f.would(f.shadowed(call{}), decision.DecisionUpstreamTimeout, rules.Unknown)
	if s := f.slot("1"); s.Held != 1 {
		t.Fatalf("a unit of an unknown outcome was given back: %+v", s)
	}
	f.backend.set(nil)
	f.would(f.shadowed(call{student: "bob"}), decision.DecisionSoldOut, rules.Booked)
	if r := f.report(); r.Rejected != 1 || r.Oversold != 1 {
		t.Fatalf("the backend's failures count as refusals: %+v", r)
	}
}

func TestShadowKnowsKeys(t *testing.T) {
	f := newFixture(t, "capacity: 9", "mode: shadow\n    idempotency: { required: true }")
	key := []string{"Idempotency-Key: a-key-of-some-length"}
	other := []string{"Idempotency-Key: another-key-of-some-length"}
	f.would(f.shadowed(call{fields: key}), decision.DecisionAdmitted, rules.Booked)
	f.would(f.shadowed(call{fields: key}), decision.DecisionReplayed, rules.Booked)
	f.would(f.shadowed(call{fields: key, student: "bob"}), decision.DecisionKeyMismatch, rules.Booked)
	f.would(f.shadowed(call{}), decision.DecisionKeyMissing, rules.Booked)
	f.would(f.shadowed(call{fields: append(key, other...)}), decision.DecisionKeyInvalid, rules.Booked)
	if s := f.slot("1"); s.Confirmed != 5 {
		t.Fatalf("%d bookings counted, want all of 5", s.Confirmed)
	}

	// A booking that is refused for another reason completes its key all the same.
	q, _ := f.Query("lessons", "1")
	closed := true
	if _, err := f.Gate.store.Change(t.Context(), q, store.SlotChange{Closed: &closed}); err != nil {
		t.Fatal(err)
	}
	f.would(f.shadowed(call{fields: other}), decision.DecisionClosed, rules.Booked)

	if err := f.SetModeAll("enforce"); err != nil {
		t.Fatal(err)
	}
	if r := f.want(f.book(call{fields: key}), decision.DecisionReplayed, 201); string(r.Body) != `{"id":1}` {
		t.Fatalf("replayed %s, want the first answer", r.Body)
	}
	if r := f.want(f.book(call{fields: other}), decision.DecisionReplayed, 201); string(r.Body) != `{"id":6}` {
		t.Fatalf("replayed %s", r.Body)
	}
}

func TestShadowDoesNotWait(t *testing.T) {
	key := call{fields: []string{"Idempotency-Key: a-key-of-some-length"}}
	for inFlight, want := range map[string]decision.Decision{"wait": decision.DecisionReplayed, "reject": decision.DecisionInFlight} {
		t.Run("twin/"+inFlight, func(t *testing.T) {
			f := newFixture(t, "capacity: 9", "mode: shadow\n    idempotency: { in_flight: "+inFlight+" }")
			path, body := key.booking()
			first := f.beside("POST", path, body, key).arrive()
			second := f.beside("POST", path, body, key).arrive()
			f.would(second.answered(answers(201, "second"), nil), want, rules.Booked)
			f.would(first.answered(answers(201, "first"), nil), decision.DecisionAdmitted, rules.Booked)
			if s := f.slot("1"); s.Confirmed != 2 || s.Held != 0 {
				t.Fatalf("%+v", s)
			}
			if f.waitingTwins() != 0 {
				t.Fatal("somebody watched a key")
			}
			_ = f.SetModeAll("enforce")
			if r := f.want(f.book(key), decision.DecisionReplayed, 201); string(r.Body) != "first" {
				t.Fatalf("replayed %s", r.Body)
			}
		})
	}
	t.Run("subject", func(t *testing.T) {
		f := newFixture(t, "capacity: 9, one_per_subject: true", "mode: shadow")
		path, body := (&call{}).booking()
		first := f.beside("POST", path, body, call{}).arrive()
		second := f.beside("POST", path, body, call{}).arrive()
		f.would(second.answered(answers(409, ""), nil), decision.DecisionDuplicate, rules.Refused)
		f.would(first.answered(answers(201, ""), nil), decision.DecisionAdmitted, rules.Booked)
	})
	t.Run("room", func(t *testing.T) {
		f := newFixture(t, "capacity: 9, max_inflight: 1, queue: { size: 1, wait: 10m }", "mode: shadow")
		var all []*beside
		for i := range 3 {
			path, body := (&call{student: fmt.Sprint(i)}).booking()
			all = append(all, f.beside("POST", path, body, call{}).arrive())
		}
		f.would(all[2].answered(answers(201, ""), nil), decision.DecisionBusy, rules.Booked)
		f.would(all[1].answered(answers(201, ""), nil), decision.DecisionAdmitted, rules.Booked)
		f.would(all[0].answered(answers(201, ""), nil), decision.DecisionAdmitted, rules.Booked)
		if s := f.slot("1"); s.Confirmed != 3 || s.Held != 0 || s.Inflight != 0 {
			t.Fatalf("%+v", s)
		}
		f.would(f.shadowed(call{}), decision.DecisionAdmitted, rules.Booked) // the line is empty again
	})
	t.Run("learned", func(t *testing.T) {
		f := newFixture(t, "capacity: learned", "mode: shadow")
		var all []*beside
		for i := range 2 * store.LearnedInflight {
			path, body := (&call{student: fmt.Sprint(i)}).booking()
			all = append(all, f.beside("POST", path, body, call{}).arrive())
		}
		for _, b := range all {
			f.would(b.answered(answers(201, ""), nil), decision.DecisionAdmitted, rules.Booked)
		}
		if s := f.slot("1"); s.Confirmed != 2*store.LearnedInflight || s.Held != 0 {
			t.Fatalf("%+v", s)
		}
	})
}

func TestShadowTellsOfRequestsThatEnforceCannotRead(t *testing.T) {
	f := newFixture(t, "capacity: 1", "mode: shadow")
	f.would(f.beside("POST", "/lessons/1/bookings", `{"student":[1]}`, call{}).arrive().answered(answers(201, ""), nil),
		decision.DecisionUnidentified, rules.Booked)
	f.would(f.beside("POST", "/lessons/1/bookings", `{"student":1,"student":2}`, call{}).arrive().answered(answers(400, ""), nil),
		decision.DecisionAmbiguous, rules.Refused)
	b := f.beside("POST", "/lessons/1/bookings", "", call{})
	b.shadow.Requested(nil, &rules.Refusal{Kind: rules.RefuseTooLarge})
	f.would(b.answered(answers(201, ""), nil), decision.DecisionTooLarge, rules.Booked)
	b = f.beside("POST", "/lessons/1/bookings", "", call{})
	b.shadow.Requested(nil, ErrOverloaded)
	f.would(b.answered(answers(201, ""), nil), decision.DecisionBusy, rules.Booked)
	// The backend answers before the request has come whole.
	f.would(f.beside("POST", "/lessons/1/bookings", "{", call{}).answered(answers(400, ""), nil), decision.DecisionUnidentified, rules.Refused)
	// A path with two readings, and one that cannot be read at all.
	f.would(f.beside("POST", "/lessons/1%2F2/bookings", "{}", call{}).arrive().answered(answers(404, ""), nil), decision.DecisionAmbiguous, rules.NoOutcome)
	if f.Status().Shadow[""].Would[decision.DecisionAmbiguous] != 1 {
		t.Fatalf("%+v", f.Status().Shadow)
	}
	// The client goes away before the end.
	b = f.beside("POST", "/lessons/1/bookings", "{", call{})
	b.shadow.End()
	if r := f.report(); r.Booked[decision.DecisionUnidentified] != 1 || r.Oversold != 0 || r.Rejected != 6 {
		t.Fatalf("%+v", r)
	}
	if _, err := f.Gate.store.Slot(t.Context(), store.SlotQuery{Pool: "lessons", Slot: "1"}); !errors.Is(err, store.ErrNoSlot) {
		t.Fatalf("a request without facts left a trace: %v", err)
	}
}

// A fault of the shadow's is not the client's.
func TestShadowThatPanics(t *testing.T) {
	f := newFixture(t, "capacity: 3", "mode: shadow")
	path, body := (&call{}).booking()
	b := f.beside("POST", path, body, call{})
	b.shadow.j.book.Config = nil // as good as any
	if r := b.arrive().answered(answers(201, ""), nil); r != nil {
		t.Fatalf("%+v", r)
	}
}

func TestShadowWithoutAStore(t *testing.T) {
	for onFailure, want := range map[string]decision.Decision{"pass": decision.DecisionPassthrough, "reject": decision.DecisionStoreDown} {
		t.Run(onFailure, func(t *testing.T) {
			f := newFixture(t, "capacity: 2", "mode: shadow\n    on_store_failure: "+onFailure)
			f.store.set(down(false), nil)
			for i := 0; !f.Status().Degraded; i++ {
				if i > 20 {
					t.Fatal("the breaker stays closed")
				}
				f.shadowed(call{lesson: "probe", student: fmt.Sprint("probe", i)})
			}
			f.would(f.shadowed(call{student: "ann"}), want, rules.Booked)
			f.backend.set(refusing(409))
			f.would(f.shadowed(call{student: "bob"}), want, rules.Refused)
			f.backend.set(nil)
			f.comeBack()
			if s := f.slot("1"); s.Confirmed != 1 || s.Held != 0 {
				t.Fatalf("not written back: %+v", s)
			}
			f.would(f.shadowed(call{student: "eve"}), decision.DecisionAdmitted, rules.Booked)
			f.would(f.shadowed(call{student: "kim"}), decision.DecisionSoldOut, rules.Booked)
		})
	}
	t.Run("limits", func(t *testing.T) {
		f := newFixture(t, "capacity: 9", "mode: shadow\n    passthrough: { slot: { rate: 1/h, burst: 1 }, rule: { rate: 1/h, burst: 9 }, max_inflight: 9 }")
		f.store.set(down(false), nil)
		f.would(f.shadowed(call{student: "ann"}), decision.DecisionPassthrough, rules.Booked)
		f.would(f.shadowed(call{student: "bob"}), decision.DecisionStoreDown, rules.Booked)
	})
	t.Run("lost reply", func(t *testing.T) {
		f := newFixture(t, "capacity: 9", "mode: shadow\n    on_store_failure: reject")
		f.store.set(nil, func(op string) error {
			if op == "decide" {
				return down(true)(op)
			}
			return nil
		})
		f.would(f.shadowed(call{student: "ann"}), decision.DecisionStoreDown, rules.Booked)
		f.store.set(nil, nil)
		waitFor(t, func() bool { s := f.slot("1"); return s.Confirmed == 1 && s.Held == 0 })
	})
}

func TestShadowCancels(t *testing.T) {
	f := newFixtureYAML(t, `
upstream: { url: "http://127.0.0.1:9" }
pools: { lessons: { capacity: 1 } }
rules:
  - { name: book, match: { methods: [POST], path: "/lessons/{lesson}/bookings" }, action: book, pool: lessons, slot: "path:lesson", subject: "json:/student", mode: shadow }
  - { name: cancel, match: { methods: [DELETE], path: "/lessons/{lesson}/students/{student}" }, action: cancel, pool: lessons, slot: "path:lesson", subject: "path:student", mode: shadow }
`)
	f.would(f.shadowed(call{}), decision.DecisionAdmitted, rules.Booked)
	f.would(f.shadowed(call{student: "bob"}), decision.DecisionSoldOut, rules.Booked)
	for _, student := range []string{"ann", "bob"} {
		b := f.beside("DELETE", "/lessons/1/students/"+student, "", call{}).arrive()
		f.would(b.answered(answers(204, ""), nil), decision.DecisionAdmitted, rules.Done)
	}
	if s := f.slot("1"); s.Confirmed != 0 || s.Held != 0 {
		t.Fatalf("%+v", s)
	}
	f.would(f.shadowed(call{student: "eve"}), decision.DecisionAdmitted, rules.Booked)
}

func TestShadowDoesNotWaitForTruth(t *testing.T) {
	f, o := newOracle(t, "mode: shadow", map[string]int64{"1": 1})
	o.mu.Lock() // nobody can look
	f.backend.set(refusing(409))
	for range 3 {
		f.would(f.shadowed(call{}), decision.DecisionAdmitted, rules.Refused)
	}
	f.would(f.shadowed(call{lesson: "made-up"}), decision.DecisionAdmitted, rules.Refused)
	o.mu.Unlock()
	f.looks.all.Wait()
	f.backend.set(nil)
	f.would(f.shadowed(call{student: "bob"}), decision.DecisionAdmitted, rules.Booked)
	f.would(f.shadowed(call{student: "eve"}), decision.DecisionSoldOut, rules.Booked)
	if o.loads != 2 {
		t.Errorf("%d looks at two slots", o.loads)
	}
	q, _ := f.Query("lessons", "made-up")
	if s, err := f.store.Slot(t.Context(), q); err == nil {
		t.Errorf("a slot that truth does not have was kept: %+v", s)
	}

	// Nor does a cancel wait, and one of a slot that nobody knows leaves no trace.
	_ = f.SetMode("cancel", "shadow")
	o.mu.Lock()
	defer o.mu.Unlock()
	b := f.beside("DELETE", "/lessons/9/students/ann", "", call{}).arrive()
	f.would(b.answered(answers(404, ""), nil), decision.DecisionAdmitted, rules.Refused)
	q, _ = f.Query("lessons", "9")
	if s, err := f.store.Slot(t.Context(), q); err == nil {
		t.Errorf("a slot that nobody knows was kept: %+v", s)
	}
}
