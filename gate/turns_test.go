package gate

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/gate/store/redisstore"
	"github.com/slotgate/slotgate/gate/testbed"
)

// stopped is a store whose decides wait until it is opened.
type stopped struct {
	store.Store
	open    chan struct{}
	waiting atomic.Int64
	asked   atomic.Int64
}

func (s *stopped) Decide(ctx context.Context, d *store.Decide) (store.Decided, error) {
	s.waiting.Add(1)
	s.asked.Add(1)
	<-s.open
	s.waiting.Add(-1)
	return s.Store.Decide(ctx, d)
}

// When thousands want a few seats at one moment, most hear that all are sold from what the
// store has told one of the first. (Each booking that ends has them ask again: of those, none
// does until all others have their answer.)
func TestOfACrowdTheFirstAskForAll(t *testing.T) {
	const crowd, seats = 3000, 50
	s, err := redisstore.Open(t.Context(), redisstore.Options{Addresses: []string{testbed.Redis(t).Addr()}, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	slow := &stopped{Store: s, open: make(chan struct{})}
	pool := fmt.Sprintf("capacity: %d, one_per_subject: true, reject_cache: 1m", seats)
	f := newFixtureOn(t, strings.NewReplacer("POOL", pool, "RULE", keyed).Replace(lessons), nil, slow)
	book := make(chan struct{})
	f.backend.set(func(string, string) (*BackendAnswer, error) {
		<-book
		return answers(201, `{"id":1}`), nil
	})
	replies := make([]*Reply, crowd)
	var all sync.WaitGroup
	var answered atomic.Int32
	for i := range crowd {
		all.Go(func() {
			replies[i] = f.book(call{student: fmt.Sprint("s", i), fields: underKey(fmt.Sprint(i))})
			answered.Add(1)
		})
	}
	waitFor(t, func() bool { return slow.waiting.Load() == maxDeciding })
	close(slow.open)
	waitFor(t, func() bool { return answered.Load() == crowd-seats })
	close(book)
	all.Wait()
	told := map[decision.Decision]int{}
	for _, r := range replies {
		told[r.Decision]++
	}
	if told[decision.DecisionAdmitted] != seats || told[decision.DecisionSoldOut] != crowd-seats {
		t.Errorf("told %v, want %d admitted and the rest sold-out", told, seats)
	}
	if n := f.backend.count(); n != seats {
		t.Errorf("%d reached the backend", n)
	}
	if n := slow.asked.Load(); n > crowd-maxDeciding {
		t.Errorf("the store was asked %d times by %d", n, crowd)
	}
	if s := f.slot("1"); s.Confirmed != seats || s.Held != 0 {
		t.Errorf("%d confirmed, %d held", s.Confirmed, s.Held)
	}
	if !f.turns.TryAcquire(maxDeciding) {
		t.Error("turns were not given back")
	}
}

// Who waits for another request, or for the backend, takes nobody's turn.
func TestATurnEndsWithTheFirstAnswer(t *testing.T) {
	f := newFixture(t, "capacity: 9", keyed)
	atBackend, goOn := make(chan struct{}), make(chan struct{})
	f.backend.set(func(string, string) (*BackendAnswer, error) {
		close(atBackend)
		<-goOn
		return answers(201, "made"), nil
	})
	var both sync.WaitGroup
	both.Go(func() { f.want(f.book(call{student: "ann", fields: underKey("one")}), decision.DecisionAdmitted, 201) })
	<-atBackend
	both.Go(func() { f.want(f.book(call{student: "ann", fields: underKey("one")}), decision.DecisionReplayed, 201) })
	waitFor(t, func() bool {
		if !f.turns.TryAcquire(maxDeciding) {
			return false
		}
		f.turns.Release(maxDeciding)
		return true
	})
	close(goOn)
	both.Wait()
}

// What is forwarded without a decision has no turn while it is at the backend.
func TestWhatNothingIsDecidedAboutTakesNoTurn(t *testing.T) {
	f := newFixtureYAML(t, `
upstream: { url: "http://127.0.0.1:9", timeout: 2s }
rules:
  - { name: book, match: { methods: [POST], path: "/lessons/{lesson}/bookings" }, action: guard }
`)
	free := false
	f.backend.set(func(string, string) (*BackendAnswer, error) {
		free = f.turns.TryAcquire(maxDeciding)
		return answers(201, "made"), nil
	})
	f.want(f.book(call{}), decision.DecisionAdmitted, 201)
	if !free {
		t.Error("a turn lasts as long as the backend takes")
	}
}

func TestWhoFindsNoTurnIsToldToComeBack(t *testing.T) {
	f := newFixture(t, "capacity: 9", "")
	if !f.turns.TryAcquire(maxDeciding) {
		t.Fatal("turns are out before anybody came")
	}
	reply := f.book(call{})
	f.want(reply, decision.DecisionBusy, 503)
	if field(reply, "Retry-After") == "" {
		t.Error("and not when")
	}
	f.turns.Release(maxDeciding)
	f.want(f.book(call{}), decision.DecisionAdmitted, 201)
}
