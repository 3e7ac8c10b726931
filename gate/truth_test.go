package gate

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

// counted is a pool whose truth is the test's own; RULE varies.
const counted = `
upstream: { url: "http://127.0.0.1:9", timeout: 2s }
pools:
  lessons:
    hold_ttl: 30s
    capacity: { http: { path: "/lessons/{slot}", value: json:/remain }, bookings: { path: "/lessons/{slot}/{subject}" } }
rules:
  - name: book
    match: { methods: [POST], path: "/lessons/{lesson}/bookings" }
    action: book
    pool: lessons
    slot: path:lesson
    subject: json:/student
    RULE
  - name: cancel
    match: { methods: [DELETE], path: "/lessons/{lesson}/students/{student}" }
    action: cancel
    pool: lessons
    slot: path:lesson
    subject: path:student
`

// oracle tells truth from a map: a slot that is not in it does not exist, one below
// zero is not known.
type oracle struct {
	store  store.Store
	mu     sync.Mutex
	left   map[string]int64
	loads  int
	probed []*store.Settle
}

func (o *oracle) Load(ctx context.Context, pool, slot string) Loaded {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.loads++
	left, ok := o.left[slot]
	if !ok {
		return LoadMissing
	}
	q := store.SlotQuery{Pool: pool, Slot: slot, Capacity: store.Learned, Truth: store.TruthRemaining, HoldTTL: 30 * time.Second, Retain: time.Hour}
	look := &store.Look{Query: q, ID: strings.Repeat("look", 8), Lease: time.Second}
	looked, err := o.store.Look(ctx, look)
	if err != nil || looked.Busy > 0 {
		return LoadFailed
	}
	reading := &store.Reading{Look: look, Looked: looked, Found: left >= 0, Value: left, Total: store.Learned, Hot: time.Second, Refresh: time.Minute}
	if _, err := o.store.Apply(ctx, reading); err != nil || left < 0 {
		return LoadFailed
	}
	return LoadDone
}

func (o *oracle) Probe(s *store.Settle) {
	o.mu.Lock()
	defer o.mu.Unlock()
	kept := *s
	o.probed = append(o.probed, &kept)
}

func newOracle(t *testing.T, rule string, left map[string]int64) (*fixture, *oracle) {
	t.Helper()
	o := &oracle{left: left}
	f := newFixtureTruth(t, strings.Replace(counted, "RULE", rule, 1), o)
	o.store = f.store
	return f, o
}

func TestAnUnknownSlotIsLookedUpOnce(t *testing.T) {
	f, o := newOracle(t, "", map[string]int64{"1": 2})
	f.want(f.book(call{}), decision.DecisionAdmitted, 201)
	f.want(f.book(call{student: "bob"}), decision.DecisionAdmitted, 201)
	f.want(f.book(call{student: "cid"}), decision.DecisionSoldOut, 409)
	if o.loads != 1 || f.backend.count() != 2 {
		t.Fatalf("%d loads, %d requests at the backend", o.loads, f.backend.count())
	}
}

func TestASlotThatTruthDoesNotHaveIsTheBackends(t *testing.T) {
	for _, rule := range []string{"", keyed} {
		f, _ := newOracle(t, rule, nil)
		var said bytes.Buffer
		f.log = slog.New(slog.NewTextHandler(&said, nil))
		f.backend.set(func(string, string) (*BackendAnswer, error) { return answers(404, "no such lesson"), nil })
		who := call{fields: []string{"Idempotency-Key: k", "Authorization: Bearer ann"}}
		r := f.want(f.book(who), decision.DecisionAdmitted, 404)
		if r.Hold != "" || r.Outcome != rules.Refused || said.Len() != 0 {
			t.Fatalf("%+v %s", r, &said)
		}
		q, _ := f.Query("lessons", "1")
		if s, err := f.store.Slot(t.Context(), q); err == nil {
			t.Fatalf("state was kept: %+v", s)
		}
		// It is booked all the same: the two do not spell it alike.
		f.backend.set(nil)
		f.want(f.book(who), decision.DecisionAdmitted, 201)
		f.want(f.book(who), map[string]decision.Decision{"": decision.DecisionAdmitted, keyed: decision.DecisionReplayed}[rule], 201)
		if n := strings.Count(said.String(), "as: integer"); n != 1 {
			t.Fatalf("warned %d times: %s", n, &said)
		}
	}
}

// Made-up names of slots would fill the store.
func TestACancelOfASlotThatTruthDoesNotHaveLeavesNoTrace(t *testing.T) {
	f, _ := newOracle(t, "", map[string]int64{"1": 2})
	f.backend.set(func(string, string) (*BackendAnswer, error) { return answers(404, "no such lesson"), nil })
	r := f.want(f.call("DELETE", "/lessons/9/students/ann", "", call{}), decision.DecisionAdmitted, 404)
	if r.Outcome != rules.Refused {
		t.Fatalf("%+v", r)
	}
	q, _ := f.Query("lessons", "9")
	if s, err := f.store.Slot(t.Context(), q); err == nil {
		t.Fatalf("state was kept: %+v", s)
	}
	f.backend.set(nil)
	f.want(f.book(call{}), decision.DecisionAdmitted, 201)
	f.want(f.call("DELETE", "/lessons/1/students/ann", "", call{}), decision.DecisionAdmitted, 201)
	if s := f.slot("1"); s.Confirmed != 0 {
		t.Fatalf("%+v", s)
	}
}

func TestTruthThatDoesNotTellLeavesTheSlotLearned(t *testing.T) {
	f, _ := newOracle(t, "", map[string]int64{"1": -1})
	for _, student := range []string{"ann", "bob", "cid"} {
		f.want(f.book(call{student: student}), decision.DecisionAdmitted, 201)
	}
	f.backend.set(func(string, string) (*BackendAnswer, error) { return answers(500, ""), nil })
	if s := f.slot("1"); s.Capacity != store.Learned || s.Confirmed != 3 {
		t.Fatalf("%+v", s)
	}
}

func TestAnUnansweredBookingIsProbed(t *testing.T) {
	for rule, probed := range map[string]int{keyed: 0, "idempotency: { key: [header:Idempotency-Key], unknown: probe }": 1} {
		f, o := newOracle(t, rule, map[string]int64{"1": 5})
		f.want(f.book(call{}), decision.DecisionAdmitted, 201)
		f.backend.set(func(string, string) (*BackendAnswer, error) {
			return nil, &BackendError{Failure: TimedOut, Err: context.DeadlineExceeded}
		})
		who := call{student: "bob", fields: []string{"Idempotency-Key: k"}}
		r := f.want(f.book(who), decision.DecisionUpstreamTimeout, 504)
		if len(o.probed) != probed || probed == 1 && (o.probed[0].Hold != r.Hold || o.probed[0].Subject != "bob") {
			t.Fatalf("%s: probed %+v", rule, o.probed)
		}
		f.want(f.book(who), decision.DecisionOutcomeUnknown, 409)
	}
}
