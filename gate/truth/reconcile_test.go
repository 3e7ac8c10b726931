package truth

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotgate/slotgate/gate"
	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/gate/store/redisstore"
	"github.com/slotgate/slotgate/gate/testbed"
	"github.com/slotgate/slotgate/rules"
)

// lesson loads a slot and sells it to subjects named after it.
func (b *bench) lesson(p *Pool, slot string, sold int) {
	b.Helper()
	b.backend.setTotal(slot, 6)
	if got := p.Load(context.Background(), slot); got != gate.LoadDone {
		b.Fatalf("load of %s: %v", slot, got)
	}
	for i := range sold {
		b.sell(slot, fmt.Sprintf("%s-student-%d", slot, i))
	}
}

// found lists differences as "slot kind", in order.
func found(r *Report) (list []string) {
	for _, d := range r.Rows {
		list = append(list, d.Slot+" "+string(d.Kind))
	}
	slices.Sort(list)
	return list
}

func (b *bench) reconcile(p *Pool, o ReconcileOptions) *Report {
	b.Helper()
	o.Rate = rules.Rate{Count: 100_000, Per: time.Second}
	r, err := p.Reconcile(context.Background(), o)
	if err != nil {
		b.Fatal(err)
	}
	return r
}

// plantDifferences makes seven kinds of damage among slots that are right; pause lets
// time pass for the store. It returns what a report has to find, as found does.
func (b *bench) plantDifferences(p *Pool, pause func(time.Duration)) (want []string) {
	b.Helper()
	b.lesson(p, "high", 2) // 1: somebody booked behind the gate
	b.backend.book("high", "outside")
	b.lesson(p, "low", 2) // 2: a total was raised behind the gate
	b.backend.setTotal("low", 8)
	b.lesson(p, "full", 1) // 3: the backend said sold out, and has units
	d, got := b.decide("full", "unlucky")
	b.settle(settlement(&d, &got, rules.SoldOut))
	b.lesson(p, "doubted", 1) // 4: the last look failed
	pause(10 * time.Millisecond)
	b.backend.failWith(errBackend)
	if p.Resync(context.Background(), "doubted") == nil {
		b.Fatal("a source that fails told something")
	}
	b.backend.failWith(nil)
	b.lesson(p, "deleted", 1)  // 5: the lesson is gone
	b.lesson(p, "returned", 2) // 6: cancelled in the console
	b.backend.cancel("returned", "returned-student-0")
	b.lesson(p, "lost", 2) // 7: an attempt of which nothing came
	d, got = b.decide("lost", "nobody")
	b.settle(settlement(&d, &got, rules.Unknown))
	b.backend.mu.Lock()
	delete(b.backend.total, "deleted")
	b.backend.mu.Unlock()
	pause((store.MaxAdoptions + 2) * b.config.HoldTTL)
	return []string{
		"deleted slot-missing", "doubted unverified", "full marked-full", "high available-too-high",
		"lost unknown-without-booking", "low available-too-low", "returned available-too-low", "returned hold-without-booking",
	}
}

// wantRepaired reconciles dry, with repair, and dry again.
func (b *bench) wantRepaired(p *Pool, slots int, want []string) {
	b.Helper()
	dry := b.reconcile(p, ReconcileOptions{})
	if got := found(dry); !slices.Equal(got, want) {
		b.Errorf("found\n %q, want\n %q", got, want)
	}
	if dry.Slots != slots || dry.Failed != 0 || dry.Partial != 0 || dry.Repaired != 0 || dry.Differences != len(want) {
		b.Errorf("report %+v", dry)
	}
	for _, d := range dry.Rows {
		if d.Slot == "high" && (*d.Store != 4 || *d.Truth != 3 || d.Difference != 1) {
			b.Errorf("high: %d in the store, %d in truth, %d", *d.Store, *d.Truth, d.Difference)
		}
	}
	repaired := b.reconcile(p, ReconcileOptions{Repair: true})
	if got := found(repaired); !slices.Equal(got, want) || repaired.Repaired != len(want) {
		b.Errorf("repaired %d of %q", repaired.Repaired, got)
	}
	if again := b.reconcile(p, ReconcileOptions{}); again.Differences != 0 || again.Slots != slots {
		b.Errorf("after the repair: %q of %d slots", found(again), again.Slots)
	}
	b.wantLeft("high", 3)
	b.wantLeft("low", 6)
	b.wantLeft("returned", 5)
	b.wantLeft("lost", 4)
	b.sell("returned", "returned-student-0")
}

func TestReconcileFindsRepairsAndIsCleanAfterwards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, newBackend(6))
		b.config.OnePerSubject = true
		b.config.KeepUnknown = true
		o := b.options("gate-a")
		o.Lister = b.backend
		p := b.open(o)
		for i := range 300 { // more than a page, and nothing wrong with them
			b.lesson(p, fmt.Sprintf("right-%03d", i), i%3)
		}
		b.wantRepaired(p, 307, b.plantDifferences(p, time.Sleep))
	})
}

func TestReconcileOfRedis(t *testing.T) {
	b := newBench(t, newBackend(6))
	s, err := redisstore.Open(t.Context(), redisstore.Options{
		Addresses: []string{testbed.Redis(t).Addr()}, Timeout: 5 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	b.store = s
	b.config.OnePerSubject = true
	b.config.KeepUnknown = true
	b.config.HoldTTL = 50 * time.Millisecond
	o := b.options("gate-a")
	o.Lister = b.backend
	p := b.open(o)
	b.lesson(p, "right", 3)
	b.wantRepaired(p, 8, b.plantDifferences(p, time.Sleep))

	// Looking at a slot is no movement of it: one observation is enough at rest.
	x := newExaminer(p, &ExamineOptions{})
	for range 2 {
		if seen, err := x.observe(t.Context(), "right"); err != nil || !seen.atRest() {
			t.Errorf("%+v, %v: want it at rest", seen, err)
		}
	}
}

func TestReconcileTellsOversoldAndTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, newBackend(6))
		p := b.pool()
		b.lesson(p, "over", 6)
		b.backend.book("over", "outside")
		b.lesson(p, "twice", 0)
		b.sell("twice", "ann", "ann") // before one_per_subject was set
		b.config.OnePerSubject = true
		time.Sleep(time.Minute)
		p.Load(t.Context(), "over")
		got := b.reconcile(p, ReconcileOptions{Repair: true})
		if want := []string{"over oversold", "twice held-twice"}; !slices.Equal(found(got), want) {
			t.Errorf("found %q, want %q", found(got), want)
		}
		// What truth itself has wrong stays.
		if want := []string{"over oversold"}; !slices.Equal(found(b.reconcile(p, ReconcileOptions{})), want) {
			t.Errorf("afterwards not only %q", want)
		}
	})
}

func TestAMarkThatIsRightIsNoDifference(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, newBackend(6))
		p := b.pool()
		b.lesson(p, "1", 5)
		b.backend.book("1", "outside")
		d, got := b.decide("1", "late")
		b.settle(settlement(&d, &got, rules.SoldOut))
		time.Sleep(time.Minute)
		p.Load(t.Context(), "1")
		if s := b.slot("1"); s.Full == 0 {
			t.Fatal("the slot is not marked full")
		}
		if got := b.reconcile(p, ReconcileOptions{}); got.Differences != 0 {
			t.Errorf("found %q", found(got))
		}
	})
}

func TestReconcileDoesNotTakeTrafficForDamage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, newBackend(6))
		b.truth().Lag = time.Second
		o := b.options("gate-a")
		o.Lister = b.backend
		p := b.open(o)
		slots := make([]string, 20)
		for i := range slots {
			slots[i] = fmt.Sprint(i)
			b.lesson(p, slots[i], 0)
		}
		ctx, stop := context.WithCancel(t.Context())
		var traffic sync.WaitGroup
		for i, slot := range slots {
			traffic.Go(func() {
				for n := 0; ctx.Err() == nil; n++ {
					subject := fmt.Sprint(slot, "-", n)
					d, got := b.decide(slot, subject)
					time.Sleep(time.Duration(7+i) * time.Millisecond)
					if got.Verdict != decision.Admitted {
						continue
					}
					if n%3 == 0 {
						b.settle(settlement(&d, &got, rules.Refused))
						continue
					}
					b.backend.book(slot, subject)
					time.Sleep(3 * time.Millisecond)
					b.settle(settlement(&d, &got, rules.Booked))
				}
			})
		}
		b.lesson(p, "wrong", 1)
		time.Sleep(2 * time.Second)
		b.backend.book("wrong", "outside")
		for range 3 {
			got := b.reconcile(p, ReconcileOptions{})
			if want := []string{"wrong available-too-high"}; !slices.Equal(found(got), want) {
				t.Errorf("found %q, want %q", found(got), want)
			}
		}
		stop()
		traffic.Wait()
	})
}

func TestReconcileOfOneSlotAndOfWhatCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, newBackend(6))
		p := b.pool()
		for _, slot := range []string{"a", "b"} {
			b.lesson(p, slot, 1)
			b.backend.book(slot, "outside")
		}
		one := ReconcileOptions{}
		one.Slot = "b"
		if got := b.reconcile(p, one); !slices.Equal(found(got), []string{"b available-too-high"}) {
			t.Errorf("found %q in b", found(got))
		}
		b.backend.failWith(errBackend)
		got := b.reconcile(p, ReconcileOptions{Repair: true})
		if got.Failed != 2 || got.Slots != 0 || got.Differences != 0 || !strings.Contains(got.Error, "on fire") {
			t.Errorf("report %+v", got)
		}
		b.backend.failWith(nil)
		var rows int
		stopAt := fmt.Errorf("the pipe is closed")
		_, err := p.Reconcile(t.Context(), ReconcileOptions{Row: func(Difference) error { rows++; return stopAt }})
		if err != stopAt || rows != 1 {
			t.Errorf("%v after %d rows, want to stop at the first", err, rows)
		}
	})
}

// A total that the source tells, and nothing more, is compared as a total.
func TestReconcileOfACapacity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, newBackend(6, "1"))
		b.truth().SQL.Means = rules.MeansCapacity
		p := b.pool()
		if p.kind != store.TruthTotal {
			t.Fatal("means: capacity is not truth")
		}
		p.Load(t.Context(), "1")
		time.Sleep(time.Second)
		b.backend.setTotal("1", 9)
		if got := b.reconcile(p, ReconcileOptions{Repair: true}); !maps.Equal(got.ByKind, map[Kind]int{CapacityDiffers: 1}) || got.Repaired != 1 {
			t.Errorf("found %q, %d repaired", found(got), got.Repaired)
		}
		if got := b.reconcile(p, ReconcileOptions{}); got.Differences != 0 {
			t.Errorf("afterwards %q", found(got))
		}
	})
}
