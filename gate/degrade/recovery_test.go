package degrade

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

// diary is a store that writes down what it is asked, while it answers at all.
type diary struct {
	store.Store
	mu    sync.Mutex
	down  bool
	fails map[string]int // so many calls of a kind fail although it is up
	lines []string
	runs  runs
	slow  time.Duration // each call takes so long, however many there are
	odd   string        // a settlement that is not understood
}

// runs is a watch on the run of a store; nil never fires.
type runs chan struct{}

func (r runs) C() <-chan struct{} { return r }
func (r runs) Close()             {}

func (s *diary) note(op, what string) error {
	s.mu.Lock()
	slow := s.slow
	s.mu.Unlock()
	time.Sleep(slow)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fails[op] > 0 {
		s.fails[op]--
		return &store.Error{Op: op, Kind: store.KindConnection, Err: errors.New("test")}
	}
	if s.down {
		return &store.Error{Op: op, Kind: store.KindConnection, Err: errors.New("down")}
	}
	if op != "ping" {
		s.lines = append(s.lines, op+" "+what)
	}
	return nil
}

func (s *diary) be(slow time.Duration, odd string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.slow, s.odd = slow, odd
}

func (s *diary) set(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = down
}

func (s *diary) said() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.lines)
}

func (s *diary) WatchRun() store.Watch { return s.runs }

func (s *diary) Ping(context.Context) error { return s.note("ping", "") }

func (s *diary) Decide(context.Context, *store.Decide) (store.Decided, error) {
	return store.Decided{}, s.note("decide", "")
}

func (s *diary) Settle(_ context.Context, t *store.Settle) (store.Settled, error) {
	s.mu.Lock()
	odd := s.odd
	s.mu.Unlock()
	if t.ID == odd {
		return store.Settled{}, &store.Error{Op: "settle", Kind: store.KindReply, Err: errors.New("what?")}
	}
	return store.Settled{Applied: true}, s.note("settle", t.ID+" "+t.Outcome.String())
}

func (s *diary) Touch(_ context.Context, t *store.Touch) error {
	var ids []string
	for _, f := range t.Forced {
		ids = append(ids, f.ID)
	}
	slices.Sort(ids)
	return s.note("touch", t.Query.Slot+" "+strings.Join(ids, ","))
}

func (s *diary) Resume(_ context.Context, q store.SlotQuery, _ string) error {
	return s.note("resume", q.Slot)
}

// out is a recovery whose store has gone away.
func out(t *testing.T) (*Recovery, *diary) {
	t.Helper()
	s := &diary{down: true, fails: map[string]int{}}
	g := NewGuard(s, breaker)
	r := NewRecovery(g, slog.New(slog.DiscardHandler))
	b := NewBacklog(r.Settle, func(*store.Settle, store.Settled) {}, slog.New(slog.DiscardHandler))
	r.Start(b)
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		b.Close(ctx)
		r.Close()
	})
	for range breaker.Failures {
		_, err := g.Decide(t.Context(), nil)
		r.Failed(err)
	}
	if !r.Away() || r.Ready() {
		t.Fatal("not away although the breaker is open")
	}
	return r, s
}

func pass(r *Recovery, slot, id string) *Passing {
	return r.Begin(store.SlotQuery{Pool: "p", Slot: slot}, store.Forced{ID: id, Hold: id, Lease: time.Minute})
}

func settled(id string, outcome rules.Outcome) *store.Settle {
	return &store.Settle{ID: id, Hold: id, Pool: "p", Outcome: outcome}
}

func TestComingBackMarksThenSettlesThenResumes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, s := out(t)
		booked, refused, unknown, running := pass(r, "1", "booked"), pass(r, "1", "refused"), pass(r, "1", "unknown"), pass(r, "1", "running")
		r.End(booked, settled("booked", rules.Booked), false)
		r.End(refused, settled("refused", rules.Refused), false)
		r.End(unknown, settled("unknown", rules.Unknown), false)
		time.Sleep(5 * time.Second)
		if got := s.said(); len(got) != 0 {
			t.Fatalf("told a store that is away: %v", got)
		}
		s.set(false)
		time.Sleep(2 * time.Second)
		if r.Away() {
			t.Fatal("still away")
		}
		r.End(running, settled("running", rules.Booked), false)
		time.Sleep(time.Second)
		// The refused one never reached the store and leaves nothing; the unknown one
		// is registered before it is settled.
		want := []string{"touch 1 running,unknown", "settle booked booked", "settle unknown unknown", "resume 1", "settle running booked"}
		if got := s.said(); !slices.Equal(got, want) {
			t.Fatalf("got  %v\nwant %v", got, want)
		}
	})
}

func TestADefiniteFailureIsSettledWhereTheStoreMayHaveSeenIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, s := out(t)
		r.End(pass(r, "1", "seen"), settled("seen", rules.Refused), true)
		s.set(false)
		time.Sleep(2 * time.Second)
		if got := s.said(); !slices.Contains(got, "settle seen refused") {
			t.Fatalf("got %v", got)
		}
	})
}

func TestAStoreThatFailsAgainOnTheWayBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, s := out(t)
		for i := range 5 {
			slot := fmt.Sprint(i)
			r.End(pass(r, slot, "id-"+slot), settled("id-"+slot, rules.Booked), false)
		}
		s.mu.Lock()
		s.fails = map[string]int{"touch": 2, "settle": 2}
		s.mu.Unlock()
		s.set(false)
		time.Sleep(20 * time.Second)
		got := s.said()
		if r.Away() || len(got) != 15 {
			t.Fatalf("away %v, said %v", r.Away(), got)
		}
		for i, line := range got {
			if want := []string{"touch", "settle", "resume"}[i/5]; !strings.HasPrefix(line, want) {
				t.Fatalf("line %d is %q, want a %s: %v", i, line, want, got)
			}
		}
	})
}

func TestAStoreThatIsSlowButAnswersIsComeBackTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, s := out(t)
		s.be(80*time.Millisecond, "")
		const slots, rate = 1000, 100 // touched so far, and requests a second that go on passing
		for i := range slots {
			slot := fmt.Sprint(i)
			r.End(pass(r, slot, "before-"+slot), settledOn(slot, "before-"+slot), false)
		}
		s.set(false)
		began := time.Now()
		for i := 0; !r.Ready(); i++ {
			if time.Since(began) > time.Minute {
				t.Fatalf("still away after %v: %d settlements wait", time.Since(began), r.backlog.Len())
			}
			slot := fmt.Sprint(i % slots)
			r.End(pass(r, slot, fmt.Sprint("while-", i)), settledOn(slot, fmt.Sprint("while-", i)), false)
			time.Sleep(time.Second / rate)
		}
		t.Logf("back after %v", time.Since(began))
		if lost := r.backlog.Lost(); lost > 0 {
			t.Errorf("%d settlements were lost", lost)
		}
		time.Sleep(time.Minute)
		if n := r.backlog.Len(); n > 0 {
			t.Errorf("%d settlements still wait", n)
		}
		// Marked, and the booking that ended before the mark settled only then.
		marked, seen := map[string]bool{}, 0
		for _, line := range s.said() {
			word := strings.Fields(line)
			switch {
			case word[0] == "touch":
				marked[word[1]] = true
			case word[0] == "settle" && strings.HasPrefix(word[1], "before-"):
				if seen++; !marked[strings.TrimPrefix(word[1], "before-")] {
					t.Fatalf("%q before the slot was marked", line)
				}
			}
		}
		if seen != slots {
			t.Errorf("%d of %d were settled", seen, slots)
		}
	})
}

func settledOn(slot, id string) *store.Settle {
	s := settled(id, rules.Booked)
	s.Slot = slot
	return s
}

func TestASettlementThatIsNotUnderstoodKeepsNobodyFromTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, s := out(t)
		s.be(0, "odd")
		for _, id := range []string{"odd", "even"} {
			r.End(pass(r, "1", id), settledOn("1", id), false)
		}
		s.set(false)
		time.Sleep(5 * time.Second)
		if r.Away() || r.backlog.Len() != 1 || r.backlog.Owed() != 0 {
			t.Fatalf("away %v, %d wait, %d of them not set aside", r.Away(), r.backlog.Len(), r.backlog.Owed())
		}
		if got := s.said(); got[len(got)-1] != "resume 1" || !slices.Contains(got, "settle even booked") {
			t.Fatalf("said %v", got)
		}
		s.be(0, "") // a newer version has taken over
		time.Sleep(2 * oddRetry)
		if n := r.backlog.Len(); n != 0 {
			t.Fatalf("%d wait", n)
		}
	})
}

func TestRequestsWaitForTheLastSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, s := out(t)
		r.mu.Lock()
		r.enter(returning)
		r.mu.Unlock()
		began := time.Now()
		if r.Ready() || time.Since(began) != lastSteps {
			t.Fatalf("ready after %v", time.Since(began))
		}
		go func() {
			time.Sleep(lastSteps / 2)
			r.mu.Lock()
			r.enter(normal)
			r.mu.Unlock()
		}()
		began = time.Now()
		if !r.Ready() || time.Since(began) != lastSteps/2 {
			t.Fatalf("not ready after %v", time.Since(began))
		}
		s.set(false)
	})
}

func TestAnOutageTouchesABoundedNumberOfSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := out(t)
		for i := range maxTouched {
			if pass(r, fmt.Sprint(i), fmt.Sprint(i)) == nil {
				t.Fatalf("refused slot %d", i)
			}
		}
		if pass(r, "one more", "id") != nil {
			t.Fatal("one more slot was let in")
		}
		if pass(r, "1", "another") == nil {
			t.Fatal("a slot that is touched already is refused")
		}
	})
}

func TestOneFailedCallIsNoOutageButIsMadeGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &diary{fails: map[string]int{"decide": 1}}
		g := NewGuard(s, breaker)
		r := NewRecovery(g, slog.New(slog.DiscardHandler))
		b := NewBacklog(r.Settle, func(*store.Settle, store.Settled) {}, slog.New(slog.DiscardHandler))
		r.Start(b)
		_, err := g.Decide(t.Context(), nil)
		r.Failed(err)
		if r.Away() {
			t.Fatal("away after one failure")
		}
		r.End(pass(r, "1", "id"), settled("id", rules.Booked), false)
		time.Sleep(time.Second)
		if got := s.said(); len(got) != 3 || !strings.HasPrefix(got[0], "touch 1") || got[1] != "settle id booked" || got[2] != "resume 1" {
			t.Fatalf("said %v", got)
		}
		b.Close(t.Context())
		r.Close()
	})
}
