package growth

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/gate/store/redisstore"
	"github.com/slotgate/slotgate/luascripts"
	"github.com/slotgate/slotgate/rules"
)

// workers call the store at once.
const workers = 32

// manyUnits is a capacity that is never used up.
const manyUnits = 1 << 40

// retain keeps what is filled in for as long as a measurement takes.
const retain = 24 * time.Hour

// stride is a large prime: steps of it visit slots all over the keyspace, each once.
const stride = 7919

// answer is a stored response of the usual size.
var answer = make([]byte, 256)

// names are those of the store's keys, pool the only one.
var names = luascripts.Keys{Prefix: "growth"}

const pool = "lessons"

// filler makes a store know things, and books on it.
type filler struct {
	store     *redisstore.Store
	redis     *redis.Client // of the same server
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

// slots makes n slots known, with nothing booked: the last by the store's own call, the
// others as copies of what that left, each in the pool's index.
func (f *filler) slots(ctx context.Context, n int) error {
	f.slotCount = n
	_, err := f.store.Change(ctx, store.SlotQuery{
		Pool: pool, Slot: slotName(n - 1), Capacity: manyUnits, HoldTTL: retain, Retain: retain,
	}, store.SlotChange{Verify: true})
	if err != nil {
		return err
	}
	original, noted := names.Slot(pool, slotName(n-1)), time.Now().UnixMicro()
	return inBatches(ctx, f.redis, n-1, func(p redis.Pipeliner, i int) {
		slot := names.Slot(pool, slotName(i))
		p.Copy(ctx, original.State, slot.State, 0, false)
		p.Copy(ctx, original.Due, slot.Due, 0, false)
		p.ZAdd(ctx, names.Index(pool), redis.Z{Score: float64(noted + int64(i)), Member: slotName(i)})
	})
}

// booked makes n slots known and books a unit in each.
func (f *filler) booked(ctx context.Context, n int) error {
	if err := f.slots(ctx, n); err != nil {
		return err
	}
	return f.units(ctx, n)
}

// inBatches sends Redis what write says for each number below n.
func inBatches(ctx context.Context, client *redis.Client, n int, write func(p redis.Pipeliner, i int)) error {
	const batch = 1000
	for from := 0; from < n; from += batch {
		_, err := client.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i := from; i < min(n, from+batch); i++ {
				write(p, i)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// units books n units, each for a subject of its own, without keys.
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
			Pool: pool, Slot: slotName(number * stride % f.slotCount), Subject: fmt.Sprintf("student-%d", number), Units: 1,
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
