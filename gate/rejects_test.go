package gate

import (
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
)

// soldOut is a gate in front of a lesson whose two seats ann and bob have, under keys.
func soldOut(t *testing.T, cache string) *fixture {
	f := newFixture(t, "capacity: 2, one_per_subject: true, reject_cache: "+cache, `idempotency: { key: "header:Idempotency-Key" }`)
	for _, student := range []string{"ann", "bob"} {
		f.want(f.book(call{student: student, fields: underKey("key of " + student)}), decision.DecisionAdmitted, 201)
	}
	return f
}

func underKey(text string) []string {
	return []string{"Idempotency-Key: a-long-enough-" + strings.ReplaceAll(text, " ", "-")}
}

func (r *rejects) size() int {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return len(r.bySlot)
}

func (f *fixture) wantCalls(n int) {
	f.t.Helper()
	if got := f.store.decided(); got != n {
		f.t.Fatalf("the store was asked %d times, want %d", got, n)
	}
}

func TestRejectIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := soldOut(t, "250ms")
		first := f.want(f.book(call{student: "cy", fields: underKey("1")}), decision.DecisionSoldOut, 409)
		f.wantCalls(3)
		for i := range 100 {
			again := f.want(f.book(call{student: fmt.Sprint("cy", i), fields: underKey(fmt.Sprint("2 ", i))}), decision.DecisionSoldOut, 409)
			if string(again.Body) != string(first.Body) || fmt.Sprint(again.Header) != fmt.Sprint(first.Header) {
				t.Fatalf("the store's answer was %s %v, the repeated one is %s %v", first.Body, first.Header, again.Body, again.Header)
			}
		}
		f.wantCalls(3)
		if f.meter.repeated != 100 {
			t.Errorf("%d counted", f.meter.repeated)
		}

		// Whom the slot knows, and whoever asks for another, the store answers.
		f.want(f.book(call{student: "ann", fields: underKey("key of ann")}), decision.DecisionReplayed, 201)
		f.want(f.book(call{student: "bob", fields: underKey("another of bob")}), decision.DecisionDuplicate, 409)
		f.want(f.book(call{student: "dan", fields: underKey("key of ann")}), decision.DecisionKeyMismatch, 422)
		f.wantCalls(6)
		f.want(f.book(call{lesson: "2", student: "dan", fields: underKey("3")}), decision.DecisionAdmitted, 201)
		f.wantCalls(7)

		time.Sleep(250 * time.Millisecond)
		f.want(f.book(call{student: "eve", fields: underKey("4")}), decision.DecisionSoldOut, 409)
		f.wantCalls(8)
	})
}

// One request asks the store again before the time is over, so that not all do then.
func TestRejectIsRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := soldOut(t, "1s")
		book := func(n int) {
			f.want(f.book(call{student: fmt.Sprint("cy", n), fields: underKey(fmt.Sprint("1 ", n))}), decision.DecisionSoldOut, 409)
		}
		book(0)
		f.wantCalls(3)
		time.Sleep(490 * time.Millisecond)
		book(1)
		f.wantCalls(3)

		time.Sleep(20 * time.Millisecond)
		slow := make(chan struct{})
		f.store.set(func(string) error { <-slow; return nil }, nil)
		var renewal sync.WaitGroup
		renewal.Go(func() { book(2) })
		synctest.Wait()
		book(3)
		f.wantCalls(3) // that of the renewal has not ended
		close(slow)
		renewal.Wait()
		f.store.set(nil, nil)
		f.wantCalls(4)

		time.Sleep(490 * time.Millisecond)
		book(4)
		f.wantCalls(4)
	})
}

// Whoever asks for the renewal may be answered otherwise, and the next one renews it.
func TestRejectIsRenewedByTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := soldOut(t, "1s")
		f.want(f.book(call{student: "cy", fields: underKey("1")}), decision.DecisionSoldOut, 409)
		time.Sleep(600 * time.Millisecond)
		f.want(f.book(call{student: "ann", fields: underKey("key of ann")}), decision.DecisionReplayed, 201)
		f.want(f.book(call{student: "dan", fields: underKey("2")}), decision.DecisionSoldOut, 409)
		f.wantCalls(5)
		time.Sleep(490 * time.Millisecond)
		f.want(f.book(call{student: "eve", fields: underKey("3")}), decision.DecisionSoldOut, 409)
		f.wantCalls(5)
	})
}

// A renewal that comes back when the time is over is kept all the same.
func TestRejectIsRenewedLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := soldOut(t, "1s")
		book := func(n int) {
			f.want(f.book(call{student: fmt.Sprint("cy", n), fields: underKey(fmt.Sprint("1 ", n))}), decision.DecisionSoldOut, 409)
		}
		book(0)
		time.Sleep(900 * time.Millisecond)
		f.store.set(func(string) error { time.Sleep(200 * time.Millisecond); return nil }, nil)
		book(1)
		f.store.set(nil, nil)
		f.wantCalls(4)
		book(2)
		f.wantCalls(4)
	})
}

func TestRejectIsDroppedWhenAUnitComesFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := soldOut(t, "1h")
		f.want(f.book(call{student: "cy"}), decision.DecisionSoldOut, 409)
		f.want(f.book(call{student: "cy"}), decision.DecisionSoldOut, 409)
		f.wantCalls(3)

		q, _ := f.Query("lessons", "1")
		hold := f.slot("1").Holds[0].ID
		if _, err := f.Gate.store.Release(t.Context(), q, hold); err != nil {
			t.Fatal(err)
		}
		f.want(f.book(call{student: "cy"}), decision.DecisionAdmitted, 201)
	})
}

func TestRejectEndsWithALapse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, "capacity: 1, reject_cache: 1h", "")
		f.backend.set(func(string, string) (*BackendAnswer, error) {
			return nil, &BackendError{Failure: TimedOut, Err: errors.New("late")}
		})
		f.book(call{student: "ann"}) // unanswered: its hold lapses
		f.backend.set(nil)
		f.want(f.book(call{student: "bob"}), decision.DecisionSoldOut, 409)
		first := f.want(f.book(call{student: "cy"}), decision.DecisionSoldOut, 409)
		if after, _ := strconv.Atoi(field(first, "Retry-After")); after < 30 || after > 40 { // some are told a bit more
			t.Errorf("Retry-After is %d, want the 30 seconds of hold_ttl", after)
		}
		time.Sleep(29 * time.Second)
		again := f.want(f.book(call{student: "cy"}), decision.DecisionSoldOut, 409)
		if after, _ := strconv.Atoi(field(again, "Retry-After")); after < 1 || after > 4 {
			t.Errorf("Retry-After is %d a second before the hold lapses", after)
		}
		f.wantCalls(2)
		time.Sleep(time.Second)
		f.want(f.book(call{student: "cy"}), decision.DecisionAdmitted, 201)
	})
}

func TestRejectIsForAsManyUnits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, "capacity: 2, reject_cache: 1h", `units: "json:/seats"`)
		book := func(student string, seats int) *Reply {
			return f.call("POST", "/lessons/1/bookings", fmt.Sprintf(`{"student":%q,"seats":%d}`, student, seats), call{})
		}
		f.want(book("ann", 2), decision.DecisionAdmitted, 201)
		for range 2 {
			f.want(book("bob", 1), decision.DecisionSoldOut, 409)
		}
		f.wantCalls(2)
		f.want(book("bob", 2), decision.DecisionSoldOut, 409)
		f.want(book("bob", 3), decision.DecisionUnidentified, 400)
		f.want(book("ann", 1), decision.DecisionSoldOut, 409)
		f.wantCalls(4)
	})
}

// While the store is away other rules apply, and of a slot that was passed by nothing is
// known from before when it is back.
func TestRejectIsNotForOutages(t *testing.T) {
	f := newFixture(t, "capacity: 1, reject_cache: 1h", generous)
	f.want(f.book(call{student: "ann"}), decision.DecisionAdmitted, 201)
	f.want(f.book(call{student: "bob"}), decision.DecisionSoldOut, 409)
	f.goAway()
	f.want(f.book(call{student: "bob"}), decision.DecisionPassthrough, 201)
	f.comeBack()
	asked := f.store.decided()
	f.want(f.book(call{student: "cy"}), decision.DecisionSoldOut, 409)
	f.wantCalls(asked + 1)
}

func TestRejectsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, "capacity: 1, reject_cache: 1s", "")
		for i := range maxRejects + 10 {
			lesson := fmt.Sprint(i)
			f.want(f.book(call{lesson: lesson, student: "ann"}), decision.DecisionAdmitted, 201)
			f.want(f.book(call{lesson: lesson, student: "bob"}), decision.DecisionSoldOut, 409)
		}
		if n := f.rejects.size(); n != maxRejects {
			t.Errorf("%d slots are remembered", n)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if n := f.rejects.size(); n != 0 {
			t.Errorf("%d slots are remembered after their time", n)
		}
	})
}

// Many ask while units come free again and again: nobody who could have one is refused
// after it came free here.
func TestRejectsUnderARace(t *testing.T) {
	f := newFixture(t, "capacity: 1, reject_cache: 1h", "outcomes: [ { when: { status: 409 }, is: refused } ]")
	f.backend.set(func(string, string) (*BackendAnswer, error) { return answers(409, `{}`), nil })
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			for i := range 200 {
				reply := f.book(call{student: fmt.Sprint(worker, "-", i)})
				if reply.Decision != decision.DecisionAdmitted && reply.Decision != decision.DecisionSoldOut {
					t.Errorf("%s", reply.Decision)
				}
			}
		})
	}
	all.Wait()
	// All have their answers, so the unit is free.
	f.want(f.book(call{student: "last"}), decision.DecisionAdmitted, 409)
}

// A subject that has all it may have is told so, whether the slot is sold out or not.
func TestRejectIsNotForWhoHasAllThatIsAllowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, "capacity: 1, max_per_subject: 1, reject_cache: 1h", "")
		f.want(f.book(call{lesson: "2", student: "ann"}), decision.DecisionAdmitted, 201)
		f.want(f.book(call{student: "bob"}), decision.DecisionAdmitted, 201)
		f.want(f.book(call{student: "cy"}), decision.DecisionSoldOut, 409)
		f.want(f.book(call{student: "ann"}), decision.DecisionRateLimited, 429)
	})
}

// No "sold out" rests on a look that is older than hot, which is 5 s here, without one more.
func TestRejectIsNoOlderThanALook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &oracle{left: map[string]int64{"1": 1}}
		yaml := strings.NewReplacer("RULE", "", "hold_ttl: 30s", "hold_ttl: 30s\n    reject_cache: 1h").Replace(counted)
		f := newFixtureTruth(t, yaml, o)
		o.store = f.store
		f.want(f.book(call{student: "ann"}), decision.DecisionAdmitted, 201)
		f.want(f.book(call{student: "bob"}), decision.DecisionSoldOut, 409)
		asked := f.store.decided()
		f.want(f.book(call{student: "bob"}), decision.DecisionSoldOut, 409)
		f.wantCalls(asked)
		time.Sleep(2600 * time.Millisecond)
		f.want(f.book(call{student: "bob"}), decision.DecisionSoldOut, 409)
		time.Sleep(2600 * time.Millisecond)
		f.want(f.book(call{student: "cy"}), decision.DecisionAdmitted, 201) // cancelled behind the gate's back
	})
}

// A slot that was dropped is not kept in memory until its time would have ended.
func TestRejectsThatWereDroppedAreGone(t *testing.T) {
	f := newFixture(t, "capacity: 1, reject_cache: 1h", "")
	q, _ := f.Query("lessons", "1")
	var seen []weak.Pointer[reject]
	for i := range 50 {
		f.want(f.book(call{student: fmt.Sprint("ann", i)}), decision.DecisionAdmitted, 201)
		f.want(f.book(call{student: "bob"}), decision.DecisionSoldOut, 409)
		f.rejects.mu.RLock()
		seen = append(seen, weak.Make(f.rejects.bySlot[slotName{"lessons", "1"}]))
		f.rejects.mu.RUnlock()
		if _, err := f.Gate.store.Release(t.Context(), q, f.slot("1").Holds[0].ID); err != nil {
			t.Fatal(err)
		}
	}
	runtime.GC()
	runtime.GC()
	alive := 0
	for _, r := range seen {
		if r.Value() != nil {
			alive++
		}
	}
	if alive > len(seen)/4 { // the last one, and what a stack or a register still points to
		t.Errorf("%d of %d are still in memory", alive, len(seen))
	}
}

// nobody are holders of whom none is known.
type nobody struct{}

func (nobody) Know(*store.Decide) bool { return false }

// A slot may be forgotten before a long key: who asked with a short one learns nothing of it.
func TestRejectIsNotForKeysThatLiveLonger(t *testing.T) {
	f := newFixture(t, "capacity: 1", "")
	short := &store.Decide{Pool: "lessons", Slot: "1", Units: 1, Key: "derived", KeyTTL: time.Second, Repeat: time.Minute}
	one := f.rejects.listen(f.store, slotName{"lessons", "1"})
	one.keep(short, &store.Decided{Verdict: decision.SoldOut, Holders: nobody{}}, time.Now(), f.Gate.book.Load(), 0)
	defer one.drop()
	long := *short
	long.Key, long.KeyTTL = "sent", time.Hour
	known := f.rejects.find(one.name, f.Gate.book.Load(), 0)
	if known == nil || !known.answers(short) {
		t.Fatal("it is not repeated")
	}
	if known.answers(&long) {
		t.Error("it is repeated to a key that the slot may have forgotten")
	}
}
