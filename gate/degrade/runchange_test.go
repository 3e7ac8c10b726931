package degrade

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

// changing is a recovery of a store whose run may change, and that answers. Whatever
// the store takes is noted as the gate does it.
func changing(t *testing.T) (*Recovery, *diary) {
	t.Helper()
	s := &diary{fails: map[string]int{}, runs: make(runs, 1)}
	r := NewRecovery(NewGuard(s, breaker), slog.New(slog.DiscardHandler))
	b := NewBacklog(r.Settle, func(s *store.Settle, _ store.Settled) { r.Took(s) }, slog.New(slog.DiscardHandler))
	r.Start(b)
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		b.Close(ctx)
		r.Close()
	})
	return r, s
}

// admitted is a request that the store granted.
func admitted(r *Recovery, slot, id string) *Passing {
	return r.Admitted(r.Run(), store.SlotQuery{Pool: "p", Slot: slot}, store.Forced{ID: id, Hold: id, Lease: time.Minute})
}

// answered settles a request with the store at once.
func answered(r *Recovery, p *Passing, outcome rules.Outcome) {
	s := &store.Settle{ID: p.forced.ID, Hold: p.forced.ID, Pool: "p", Slot: p.name.slot, Outcome: outcome}
	if _, err := r.guard.Settle(context.Background(), s); err != nil {
		r.Failed(err)
		r.backlog.Add(s)
	} else {
		r.Took(s)
	}
	r.Ended(p, s)
}

// wantSaid compares what the store was told since the last time.
func (s *diary) wantSaid(t *testing.T, want ...string) {
	t.Helper()
	s.mu.Lock()
	got := s.lines
	s.lines = nil
	s.mu.Unlock()
	if !slices.Equal(got, want) {
		t.Fatalf("got  %q\nwant %q", got, want)
	}
}

func TestAfterAChangeOfRunTheLastSettlementsAreSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, s := changing(t)
		answered(r, admitted(r, "1", "old"), rules.Booked)
		time.Sleep(tailSpan + time.Second)
		answered(r, admitted(r, "1", "booked"), rules.Booked)
		answered(r, admitted(r, "1", "refused"), rules.Refused)
		answered(r, admitted(r, "1", "unknown"), rules.Unknown)
		running := admitted(r, "1", "running")
		s.wantSaid(t, "settle old booked", "settle booked booked", "settle refused refused", "settle unknown unknown")

		s.runs <- struct{}{}
		time.Sleep(time.Second)
		s.wantSaid(t, "touch 1 running,unknown", "settle booked booked", "settle refused refused", "settle unknown unknown", "resume 1")
		if r.Away() {
			t.Fatal("requests were kept from the store")
		}

		// Who settled it is not known: the run that is gone, or the one that is there.
		answered(r, running, rules.Booked)
		time.Sleep(time.Second)
		s.wantSaid(t, "settle running booked", "settle running booked")

		// What was sent again may be lost again.
		s.runs <- struct{}{}
		time.Sleep(time.Second)
		s.wantSaid(t, "touch 1 unknown", "settle booked booked", "settle refused refused",
			"settle running booked", "settle running booked", "settle unknown unknown", "resume 1")

		time.Sleep(tailSpan)
		s.runs <- struct{}{}
		time.Sleep(time.Second)
		s.wantSaid(t)
	})
}

func TestARequestThatRunsAcrossAChangeIsRegistered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, s := changing(t)
		before := r.Run()
		early := admitted(r, "1", "early")
		// It ends before its slot is marked: first it is registered.
		s.fails = map[string]int{"touch": 1}
		s.runs <- struct{}{}
		synctest.Wait()
		answered(r, early, rules.Unknown)
		time.Sleep(time.Second)
		s.wantSaid(t, "settle early unknown", "touch 1 early", "settle early unknown", "resume 1")

		// One that was granted by the run that is gone, and is noted only now.
		late := r.Admitted(before, store.SlotQuery{Pool: "p", Slot: "2"}, store.Forced{ID: "late", Hold: "late", Lease: time.Minute})
		time.Sleep(time.Second)
		s.wantSaid(t, "touch 2 late", "resume 2")
		answered(r, late, rules.Refused)
		time.Sleep(time.Second)
		s.wantSaid(t, "settle late refused", "settle late refused")
	})
}

func TestAStoreThatComesBackFromAnOutageWithOtherData(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, s := changing(t)
		answered(r, admitted(r, "1", "booked"), rules.Booked)
		running := admitted(r, "1", "running")
		s.set(true)
		for range breaker.Failures {
			_, err := r.guard.Decide(t.Context(), nil)
			r.Failed(err)
		}
		time.Sleep(time.Hour) // in which nothing grows old
		passed := settled("passed", rules.Booked)
		passed.Slot = "1"
		r.End(pass(r, "1", "passed"), passed, false)
		s.wantSaid(t, "settle booked booked")
		s.runs <- struct{}{}
		s.set(false)
		time.Sleep(3 * time.Second)
		if r.Away() {
			t.Fatal("still away")
		}
		s.wantSaid(t,
			"touch 1 ", "settle passed booked", "resume 1", // requests are kept from the store no longer than without a change
			"touch 1 running", "settle booked booked", "settle passed booked", "resume 1")
		answered(r, running, rules.Booked)
	})
}

func TestTheTailIsBounded(t *testing.T) {
	var kept tail
	for i := range 2 * maxTail {
		kept.add(&store.Settle{ID: fmt.Sprint(i), Pool: "p"})
	}
	list := kept.take()
	if len(list) != maxTail || list[0].ID != fmt.Sprint(maxTail) || list[maxTail-1].ID != fmt.Sprint(2*maxTail-1) {
		t.Fatalf("kept %d, from %s to %s", len(list), list[0].ID, list[len(list)-1].ID)
	}
	if kept.log.len() != 0 || kept.answers != 0 || len(kept.take()) != 0 {
		t.Fatalf("%d bytes and %d of answers are left of nothing", kept.log.len(), kept.answers)
	}

	big := make([]byte, 1<<20)
	for i := range 64 {
		kept.add(&store.Settle{ID: fmt.Sprint(i), Pool: "p", Key: "k", KeyTTL: time.Hour, Answer: big})
	}
	answers := 0
	for _, s := range kept.take() {
		answers += len(s.Answer)
	}
	if answers != maxTailAnswers {
		t.Errorf("%d bytes of answers are kept, want %d", answers, maxTailAnswers)
	}
	for range 64 {
		kept.add(&store.Settle{Pool: "p", Slot: string(big)})
	}
	if n := len(kept.take()); n != maxTailBytes>>20-1 {
		t.Errorf("%d settlements of 1 MiB are kept", n)
	}
}

func TestWhatIsSentAgainEndsWhenItWouldHave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var kept tail
		kept.add(&store.Settle{ID: "short", Pool: "p", Group: "g", Key: "k", KeyTTL: 5 * time.Second, PendingTTL: 5 * time.Second, Answer: []byte("a")})
		kept.add(&store.Settle{ID: "long", Pool: "p", Key: "k", KeyTTL: time.Hour, PendingTTL: time.Hour, Answer: []byte("a")})
		kept.add(&store.Settle{ID: "guard", Key: "k", KeyTTL: time.Second})
		time.Sleep(10 * time.Second)
		list := kept.take()
		if len(list) != 2 {
			t.Fatalf("%d are left", len(list))
		}
		if s := list[0]; s.Key != "" || s.Group != "" || s.Answer != nil || s.PendingTTL != time.Millisecond {
			t.Errorf("%+v", s)
		}
		if s := list[1]; s.Key != "k" || s.KeyTTL != time.Hour-10*time.Second || s.PendingTTL != s.KeyTTL || string(s.Answer) != "a" {
			t.Errorf("%+v", s)
		}
	})
}

// What a Passing was used for is used again, but not while anybody knows it: each
// request is registered under its own slot, whatever becomes of the others meanwhile.
func TestRequestsThatEndWhileTheRunChangesAreNotMixedUp(t *testing.T) {
	r, s := changing(t)
	staying := admitted(r, "staying", "staying-0") // the others may all end before a change is heard of
	var requests sync.WaitGroup
	for worker := range 8 {
		requests.Go(func() {
			slot := fmt.Sprint(worker)
			for i := range 200 {
				p := admitted(r, slot, fmt.Sprintf("%s-%d", slot, i))
				runtime.Gosched()
				answered(r, p, []rules.Outcome{rules.Booked, rules.Unknown, rules.Refused}[i%3])
			}
		})
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		requests.Wait()
	}()
	for changing := true; changing; {
		select {
		case s.runs <- struct{}{}:
		case <-ended:
			changing = false
		}
	}
	registered := 0
	for end := time.Now().Add(20 * time.Second); registered == 0 && time.Now().Before(end); time.Sleep(time.Millisecond) {
		registered = registeredRight(t, s.said())
	}
	if registered == 0 {
		t.Fatal("no request was registered")
	}
	answered(r, staying, rules.Booked)
}

// registeredRight counts the requests that were registered, each under its own slot.
func registeredRight(t *testing.T, said []string) (registered int) {
	for _, line := range said {
		words := strings.Fields(line)
		if words[0] != "touch" || len(words) < 3 {
			continue
		}
		for id := range strings.SplitSeq(words[2], ",") {
			registered++
			if slot, _, _ := strings.Cut(id, "-"); slot != words[1] {
				t.Fatalf("%s was registered under slot %s", id, words[1])
			}
		}
	}
	return registered
}

func TestNothingOfARequestIsLeftInThePassingsThatAreUsedAgain(t *testing.T) {
	r, _ := changing(t)
	p := admitted(r, "1", "first")
	answered(r, p, rules.Booked)
	if *p != (Passing{}) {
		t.Fatalf("%+v", *p)
	}
}
