package truth

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/gate/store/memstore"
	"github.com/slotgate/slotgate/gate/truth/source"
	"github.com/slotgate/slotgate/rules"
)

func TestMain(m *testing.M) {
	if role := childRole(); role != nil {
		role()
		return
	}
	goleak.VerifyTestMain(m)
}

// backend is truth as tests write it: the units of each slot and who has booked them.
// As a source it is exact; before, if set, runs at the beginning of each read.
type backend struct {
	mu     sync.Mutex
	total  map[string]int64
	rows   map[string][]source.Booking
	left   map[string]int64 // a remainder of its own, which may be wrong
	nextID int
	reads  int
	fail   error
	before func(ctx context.Context, slot string) error
}

func newBackend(total int64, slots ...string) *backend {
	b := &backend{total: map[string]int64{}, rows: map[string][]source.Booking{}, left: map[string]int64{}}
	for _, slot := range slots {
		b.total[slot] = total
	}
	return b
}

func (b *backend) Read(ctx context.Context, slot string) (source.Value, error) {
	b.mu.Lock()
	b.reads++
	before := b.before
	b.mu.Unlock()
	if before != nil {
		if err := before(ctx, slot); err != nil {
			return source.Value{}, err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	total, there := b.total[slot]
	switch {
	case b.fail != nil:
		return source.Value{}, b.fail
	case !there:
		return source.Value{Missing: true}, nil
	}
	if left, told := b.left[slot]; told {
		return source.Value{N: left, Total: store.Learned}, nil
	}
	return source.Value{N: total - int64(len(b.rows[slot])), Total: total}, nil
}

func (b *backend) Bookings(_ context.Context, slot string) ([]source.Booking, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.rows[slot]), b.fail
}

func (b *backend) Booked(_ context.Context, slot, subject string) (bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.ContainsFunc(b.rows[slot], func(r source.Booking) bool { return r.Subject == subject }), b.fail
}

// book makes bookings, behind the gate's back where the test does not settle them.
func (b *backend) book(slot string, subjects ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, subject := range subjects {
		b.nextID++
		b.rows[slot] = append(b.rows[slot], source.Booking{ID: strconv.Itoa(b.nextID), Subject: subject, At: time.Now()})
	}
}

func (b *backend) setTotal(slot string, units int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.total[slot] = units
}

// remain sets the remainder that the backend keeps beside its bookings.
func (b *backend) remain(slot string, left int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left[slot] = left
}

// cancel removes a subject's bookings.
func (b *backend) cancel(slot, subject string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rows[slot] = slices.DeleteFunc(b.rows[slot], func(r source.Booking) bool { return r.Subject == subject })
}

func (b *backend) failWith(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fail = err
}

func (b *backend) readCount() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.reads
}

// meter keeps what it is told.
type meter struct {
	mu       sync.Mutex
	drift    int64
	debt     int64
	looks    map[LookResult]int
	oversold int64
	reports  [][2]int
}

func (m *meter) Drift(_ string, units int64) { m.locked(func() { m.drift = units }) }
func (m *meter) Debt(_ string, units int64)  { m.locked(func() { m.debt = units }) }
func (m *meter) Oversold(_ string, n int64)  { m.locked(func() { m.oversold += n }) }
func (m *meter) Report(_ string, differences, damage int) {
	m.locked(func() { m.reports = append(m.reports, [2]int{differences, damage}) })
}
func (m *meter) Look(_ string, r LookResult) {
	m.locked(func() {
		if m.looks == nil {
			m.looks = map[LookResult]int{}
		}
		m.looks[r]++
	})
}

func (m *meter) locked(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f()
}

func (m *meter) counted() map[LookResult]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.looks)
}

func (m *meter) reported() [][2]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.reports)
}

func (m *meter) gauges() (drift, debt int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.drift, m.debt
}

// bench is a pool over a store and a backend.
type bench struct {
	*testing.T
	store   Store
	backend *backend
	meter   *meter
	config  *rules.PoolConfig
	gate    *Pool
}

func poolConfig() *rules.PoolConfig {
	return &rules.PoolConfig{
		Capacity: rules.Capacity{Kind: rules.CapacitySQL, Truth: &rules.TruthConfig{
			SQL:     &rules.SQLSource{Driver: "sqlite", Means: rules.MeansRemaining},
			Refresh: time.Minute, Hot: 5 * time.Second, Lag: 0, Timeout: 2 * time.Second,
			MaxRate: rules.Rate{Count: 1000, Per: time.Second},
		}},
		HoldTTL: 30 * time.Second, Retain: time.Hour,
	}
}

func newBench(t *testing.T, b *backend) *bench {
	m := memstore.New(memstore.Options{})
	t.Cleanup(func() { _ = m.Close() })
	return &bench{T: t, store: m, backend: b, meter: &meter{}, config: poolConfig()}
}

func (b *bench) truth() *rules.TruthConfig { return b.config.Capacity.Truth }

func (b *bench) options(gate string) Options {
	return Options{
		Name: "lessons", Config: b.config, Store: b.store, Source: b.backend, Looker: b.backend,
		Meter: b.meter, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), Gate: gate, Awaited: time.Second,
	}
}

func (b *bench) open(o Options) *Pool {
	b.Helper()
	p, err := New(o)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(p.Close)
	return p
}

func (b *bench) pool() *Pool { b.Helper(); return b.open(b.options("gate-a")) }

func (b *bench) query(slot string) store.SlotQuery {
	return store.SlotQuery{
		Pool: "lessons", Slot: slot, Capacity: store.Learned, Truth: store.TruthRemaining,
		HoldTTL: b.config.HoldTTL, Retain: b.config.Retain, KeepUnknown: b.config.KeepUnknown,
	}
}

// decide asks for one unit and returns the question with its answer.
func (b *bench) decide(slot, subject string) (store.Decide, store.Decided) {
	b.Helper()
	d := store.Decide{
		ID: newID(), Rule: "book", Pool: "lessons", Slot: slot, Subject: subject, Units: 1,
		Capacity: store.Learned, Truth: store.TruthRemaining,
		Hot: b.truth().Hot, Refresh: b.truth().Refresh,
		HoldTTL: b.config.HoldTTL, Retain: b.config.Retain, Lease: time.Second,
		OnePerSubject: b.config.OnePerSubject, KeepUnknown: b.config.KeepUnknown,
	}
	got, err := b.store.Decide(context.Background(), &d)
	if err != nil {
		b.Fatal(err)
	}
	return d, got
}

func settlement(d *store.Decide, got *store.Decided, outcome rules.Outcome) *store.Settle {
	return &store.Settle{
		ID: d.ID, Hold: got.Hold, Truth: d.Truth, Pool: d.Pool, Slot: d.Slot, Subject: d.Subject, Units: d.Units,
		Capacity: d.Capacity, HoldTTL: d.HoldTTL, Retain: d.Retain, KeepUnknown: d.KeepUnknown,
		ReleaseSeq: got.ReleaseSeq, Outcome: outcome,
	}
}

func (b *bench) settle(s *store.Settle) store.Settled {
	b.Helper()
	got, err := b.store.Settle(context.Background(), s)
	if err != nil {
		b.Fatal(err)
	}
	return got
}

// sell books through the gate, from decide to settlement.
func (b *bench) sell(slot string, subjects ...string) {
	b.Helper()
	for _, subject := range subjects {
		d, got := b.decide(slot, subject)
		if got.Verdict != decision.Admitted {
			b.Fatalf("%s on %s: %v, want admitted", subject, slot, got.Verdict)
		}
		b.backend.book(slot, subject)
		b.settle(settlement(&d, &got, rules.Booked))
	}
}

func (b *bench) slot(slot string) store.Slot {
	b.Helper()
	got, err := b.store.Slot(context.Background(), b.query(slot))
	if err != nil {
		b.Fatalf("slot %s: %v", slot, err)
	}
	return got
}

// wantLeft checks what the store counts as free, -1 for not known.
func (b *bench) wantLeft(slot string, want int64) {
	b.Helper()
	s := b.slot(slot)
	left, known := s.Available()
	if !known {
		left = -1
	}
	if left != want {
		b.Errorf("slot %s: %d units left, want %d", slot, left, want)
	}
}

var errBackend = errors.New("the database is on fire")

// deafStore loses every Lead call while it is deaf.
type deafStore struct {
	Store
	deaf atomic.Bool
}

func (s *deafStore) Lead(ctx context.Context, pool, who string, ttl time.Duration) (int64, bool, error) {
	if s.deaf.Load() {
		return 0, false, &store.Error{Op: "lead", Kind: store.KindTimeout, Err: context.DeadlineExceeded}
	}
	return s.Store.Lead(ctx, pool, who, ttl)
}
