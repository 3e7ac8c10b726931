package growth

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/gate/store/redisstore"
	"github.com/slotgate/slotgate/rules"
)

// workers call the store at once.
const workers = 32

// manyUnits is a capacity that is never used up.
const manyUnits = 1 << 40

// retain keeps what is filled in for as long as a measurement takes.
const retain = 24 * time.Hour

// answer is a stored response of the usual size.
var answer = make([]byte, 256)

// filler makes a store know things, and books on it.
type filler struct {
	store     *redisstore.Store
	slotCount int
	taken     int // numbers of bookings, each used once
}

// prime makes one slot known and books once, so that Redis has every script, and keeps
// all workers busy for a moment, so that they have their connections: the store asks
// each new one a question by a script.
func (f *filler) prime(ctx context.Context) error {
	if err := f.slots(ctx, 1); err != nil {
		return err
	}
	if err := f.keys(ctx, 10*workers); err != nil {
		return err
	}
	return f.book(ctx, f.orders(1))
}

// slots makes n slots known, with nothing booked.
func (f *filler) slots(ctx context.Context, n int) error {
	f.slotCount = n
	return each(n, func(i int) error {
		_, err := f.store.Change(ctx, store.SlotQuery{
			Pool: "lessons", Slot: slotName(i), Capacity: manyUnits, HoldTTL: retain, Retain: retain,
		}, store.SlotChange{Verify: true})
		return err
	})
}

// units books n units in one slot, each for a subject of its own, without keys.
func (f *filler) units(ctx context.Context, n int) error {
	return f.fill(ctx, n, func(o *store.Decide) { o.Key = "" })
}

// keys stores n answers under keys of a rule that takes no units.
func (f *filler) keys(ctx context.Context, n int) error {
	return f.fill(ctx, n, func(o *store.Decide) {
		o.Pool, o.Slot, o.Subject, o.Units, o.OnePerSubject = "", "", "", 0, false
	})
}

// fill books n orders as change leaves them, some thousands at a time.
func (f *filler) fill(ctx context.Context, n int, change func(*store.Decide)) error {
	for n > 0 {
		orders := f.orders(min(n, 10_000))
		for _, o := range orders {
			change(o)
		}
		if err := f.book(ctx, orders); err != nil {
			return err
		}
		n -= len(orders)
	}
	return nil
}

// book is the whole journey of each order.
func (f *filler) book(ctx context.Context, orders []*store.Decide) error {
	if err := f.decide(ctx, orders); err != nil {
		return err
	}
	return f.settle(ctx, orders)
}

// orders are n bookings that nobody has made yet, spread over the slots.
func (f *filler) orders(n int) []*store.Decide {
	orders := make([]*store.Decide, n)
	for i := range orders {
		number := f.taken + i
		orders[i] = &store.Decide{
			ID: fmt.Sprintf("request-%012d", number), Rule: "book",
			// Steps of a large prime visit slots all over the keyspace.
			Pool: "lessons", Slot: slotName(number * 7919 % f.slotCount), Subject: fmt.Sprintf("student-%d", number), Units: 1,
			Capacity: manyUnits, HoldTTL: retain, Retain: retain, OnePerSubject: true, Lease: time.Hour,
			Group: "book", Key: fmt.Sprintf("key-%016d", number), KeyTTL: retain, Scope: "bearer",
		}
	}
	f.taken += n
	return orders
}

func (f *filler) decide(ctx context.Context, orders []*store.Decide) error {
	return each(len(orders), func(i int) error {
		got, err := f.store.Decide(ctx, orders[i])
		if err == nil && got.Verdict != decision.Admitted {
			err = fmt.Errorf("booking %s is not admitted but %s", orders[i].ID, got.Verdict)
		}
		return err
	})
}

func (f *filler) settle(ctx context.Context, orders []*store.Decide) error {
	return each(len(orders), func(i int) error {
		d := orders[i]
		s := &store.Settle{
			ID: d.ID, Pool: d.Pool, Slot: d.Slot, Subject: d.Subject, Units: d.Units,
			Capacity: d.Capacity, HoldTTL: d.HoldTTL, Retain: d.Retain, Outcome: rules.Booked,
			Group: d.Group, Key: d.Key, KeyTTL: d.KeyTTL, Keep: d.Key != "", Answer: answer, Scope: d.Scope,
		}
		if d.Pool != "" {
			s.Hold = d.ID
		}
		got, err := f.store.Settle(ctx, s)
		if err == nil && !got.Applied {
			err = fmt.Errorf("settling %s does nothing", d.ID)
		}
		return err
	})
}

func slotName(i int) string { return fmt.Sprintf("lesson-%d", i) }

// each calls do with the numbers below n, by several workers, until one fails.
func each(n int, do func(i int) error) error {
	var next atomic.Int64
	var failed atomic.Pointer[error]
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for failed.Load() == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				if err := do(i); err != nil {
					failed.CompareAndSwap(nil, &err)
				}
			}
		})
	}
	group.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}
