package truth

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

// Store is what a pool needs of its store.
type Store interface {
	store.Truth
	Decide(ctx context.Context, d *store.Decide) (store.Decided, error)
	Settle(ctx context.Context, s *store.Settle) (store.Settled, error)
	WatchSlot(pool, slot string) store.Watch
	Slot(ctx context.Context, q store.SlotQuery) (store.Slot, error)
	Slots(ctx context.Context, q store.SlotQuery, cursor string, limit int) ([]store.Slot, string, error)
	Ledger(ctx context.Context, pool, slot string, limit int) ([]store.Entry, error)
	Release(ctx context.Context, q store.SlotQuery, hold string) (decision.HoldState, error)
}

// Meter takes a pool's figures. Implementations are safe for concurrent use; they
// get names from the configuration and fixed words, never a slot or a subject.
type Meter interface {
	// Drift is the units that the last look of each slot had to change, of looks in
	// the last two `refresh`. A gauge.
	Drift(pool string, units int64)
	// Debt is the units by which slots are oversold by their last look, of looks in
	// the last two `refresh`. A gauge.
	Debt(pool string, units int64)
	// Look counts one look by how it ended.
	Look(pool string, result LookResult)
	// Oversold adds units that a probed booking put over a slot's capacity.
	Oversold(pool string, units int64)
	// Report is what the last scheduled report found. Gauges.
	Report(pool string, differences, damage int)
}

// LookResult is a fixed word for how a look ended.
type LookResult string

const (
	LookApplied LookResult = "applied" // the store took what the source said
	LookMissing LookResult = "missing" // the source has no such slot
	LookFailed  LookResult = "failed"  // the source did not say
	LookRefused LookResult = "refused" // a later look, or a newer leader, came before
	LookPaced   LookResult = "paced"   // not made: max_rate leaves no room in time
)

// LookResults lists every word, for metrics that start at zero.
func LookResults() []LookResult {
	return []LookResult{LookApplied, LookMissing, LookFailed, LookRefused, LookPaced}
}

// Options are the parts of a Pool.
type Options struct {
	Name   string
	Config *rules.PoolConfig // Capacity.Truth is set
	Store  Store
	Source Source
	// Looker finds a subject's booking for probes, Lister lists a slot's bookings for
	// reports and to find what was given back behind the gate. Either may be nil.
	Looker Looker
	Lister Lister
	Meter  Meter
	Logger *slog.Logger
	// Gate names this process among the gates of the pool, [0-9A-Za-z_-].
	Gate string
	// Lease is the longest the pool is without a leader after one was killed;
	// 0: 5 s.
	Lease time.Duration
	// Awaited is the longest that an attempt of the pool's rules is awaited.
	Awaited time.Duration
}

// Pool looks at the truth of one pool's slots. It is safe for concurrent use.
type Pool struct {
	name   string
	config *rules.PoolConfig
	truth  *rules.TruthConfig
	store  Store
	source Source
	guard  guard
	lister Lister
	meter  Meter
	log    *slog.Logger
	kind   store.TruthKind

	pace    pace
	missing missing
	flights flights
	tally   tally
	lead    *leadership
	quiet   quiet
	givenUp returns
	// subjects: a subject of a hold was seen in a list of bookings.
	subjects atomic.Bool
	probes   *Prober // nil: nothing to look in

	ctx   context.Context // ends with Close
	stop  context.CancelFunc
	tasks tasks
	once  sync.Once // Start
}

const defaultLease = 5 * time.Second

// New makes a pool that answers loads. Close ends it.
func New(o Options) (*Pool, error) {
	if o.Name == "" || o.Config == nil || o.Config.Capacity.Truth == nil || o.Store == nil || o.Source == nil || o.Meter == nil || o.Logger == nil || o.Gate == "" {
		return nil, errors.New("truth: Name, Config with a source, Store, Source, Meter, Logger and Gate are required")
	}
	if o.Lease == 0 {
		o.Lease = defaultLease
	}
	config := o.Config.Capacity.Truth
	log := o.Logger.With("pool", o.Name)
	p := &Pool{
		name: o.Name, config: o.Config, truth: config, store: o.Store,
		source: o.Source, guard: newGuard(o.Name), lister: o.Lister,
		meter: o.Meter, log: log, kind: kind(config),
		pace:    newPace(o.Store, o.Name, config.MaxRate),
		missing: missing{keep: config.Hot},
		tally:   tally{keep: 2 * config.Refresh},
		lead:    newLeadership(o.Store, o.Name, o.Gate, o.Lease, log),
	}
	p.ctx, p.stop = context.WithCancel(context.Background())
	if o.Looker != nil {
		p.probes = newProber(p, o.Looker, o.Awaited)
	}
	return p, nil
}

// kind is how the pool's counters follow its source.
func kind(t *rules.TruthConfig) store.TruthKind {
	if t.Means() == rules.MeansCapacity {
		return store.TruthTotal
	}
	return store.TruthRemaining
}

// Start takes part in the election of the pool's leader, and sweeps while it leads.
// Further calls do nothing.
func (p *Pool) Start() {
	p.once.Do(func() {
		p.tasks.Go(func() { p.lead.campaign(p.ctx, p.sweep) })
		p.tasks.Go(p.reportDaily)
	})
}

// Leads reports whether this gate leads the pool.
func (p *Pool) Leads() bool { return p.lead.holds() }

// Close gives the lead up, drops what is under way and returns when nothing of it
// runs any more. It may be called twice.
func (p *Pool) Close() {
	p.stop()
	p.tasks.Close()
}

func (p *Pool) query(slot string) store.SlotQuery {
	return store.SlotQuery{
		Pool: p.name, Slot: slot, Capacity: store.Learned, Truth: p.kind,
		HoldTTL: p.config.HoldTTL, Retain: p.config.Retain,
		KeepUnknown: p.config.KeepUnknown, MaxPerSubject: p.config.MaxPerSubject, OpensAt: p.config.OpensAt,
	}
}

// newID is unique for ever.
func newID() string { return rand.Text() }

// tasks are goroutines that Close waits for. None starts after it.
type tasks struct {
	mu     sync.Mutex
	closed bool
	wait   sync.WaitGroup
}

// Go runs f unless Close has been called.
func (t *tasks) Go(f func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false
	}
	t.wait.Go(f)
	return true
}

func (t *tasks) Close() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.wait.Wait()
}
