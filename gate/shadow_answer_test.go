package gate

import (
	"testing"
	"time"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/rules"
)

func TestShadowReadsAnswers(t *testing.T) {
	const reading = "mode: shadow\n    outcomes: [ { when: { json: { /code: 0 } }, is: booked }, { when: { json: { /code: 7 } }, is: sold_out } ]"
	f := newFixture(t, "capacity: 3", reading)
	path, body := (&call{}).booking()
	b := f.beside("POST", path, body, call{}).arrive()
	limit, until := b.shadow.Wants()
	if limit <= 1<<20 || time.Until(until) <= 0 || time.Until(until) > 2*time.Second {
		t.Fatalf("wants %d bytes in %v", limit, time.Until(until))
	}
	f.would(b.answered(answers(200, `{"code":0}`), nil), decision.DecisionAdmitted, rules.Booked)

	b = f.beside("POST", path, body, call{}).arrive()
	b.shadow.Answered(&rules.Response{Status: 200, Body: []byte(`{"code`)}, BodyPartly)
	f.would(b.shadow.Reply(), decision.DecisionAdmitted, rules.Unknown)
	b.shadow.End()
	for body, want := range map[AnswerBody]decision.Decision{BodyLate: decision.DecisionUpstreamTimeout, BodyCut: decision.DecisionUpstreamFailed} {
		b := f.beside("POST", path, `{"student":"bob"}`, call{}).arrive()
		b.shadow.Answered(&rules.Response{Status: 200, Body: []byte(`{"code`)}, body)
		b.shadow.End()
		if r := b.shadow.Reply(); r.Outcome != rules.Unknown || r.Shadow != want && r.Shadow != decision.DecisionSoldOut {
			t.Fatalf("%d: %+v", body, r)
		}
	}

	f = newFixture(t, "capacity: 3", "mode: shadow")
	b = f.beside("POST", path, body, call{}).arrive()
	if limit, _ := b.shadow.Wants(); limit != 0 {
		t.Fatalf("wants %d bytes that tell nothing", limit)
	}
	b.shadow.End()
	if s := f.slot("1"); s.Held != 1 {
		t.Fatalf("a request that may have been sent holds nothing: %+v", s)
	}
}

// An answer of which not all was seen, for its length or for want of memory, is kept
// without its body, never as if what was seen were all.
func TestShadowKeepsNoHalfAnswer(t *testing.T) {
	for name, seen := range map[string]int{"too long": 1<<10 + 1, "no memory": 5} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, "capacity: 3", "mode: shadow\n    idempotency: { max_response: 1KiB }")
			c := call{fields: []string{"Idempotency-Key: a-key-of-some-length"}}
			path, body := c.booking()
			b := f.beside("POST", path, body, c).arrive()
			if limit, _ := b.shadow.Wants(); limit != 1<<10+1 {
				t.Fatalf("wants %d bytes", limit)
			}
			b.shadow.Answered(&rules.Response{Status: 201, Body: make([]byte, seen)}, BodyPartly)
			f.would(b.shadow.Reply(), decision.DecisionAdmitted, rules.Booked)
			b.shadow.End()
			_ = f.SetModeAll("enforce")
			if r := f.want(f.book(c), decision.DecisionReplayed, 201); len(r.Body) != 0 {
				t.Fatalf("replayed %q", r.Body)
			}
		})
	}
}
