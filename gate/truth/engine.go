package truth

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/slotgate/slotgate/gate"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/gate/truth/source"
	"github.com/slotgate/slotgate/rules"
)

// EngineOptions are the parts that all pools share. Source and Gate may be empty.
type EngineOptions struct {
	Store  Store
	Meter  Meter
	Logger *slog.Logger
	Source source.Options
	Gate   string // see Options; "" makes one up
}

// Engine is the pools of a configuration whose capacity is told by a source. The
// journey asks it (gate.Truth), and so does the admin API. It is safe for concurrent
// use.
type Engine struct {
	pools   map[string]*Pool
	sources []io.Closer
}

var _ gate.Truth = (*Engine)(nil)

// Open makes a pool for each of the configuration that names a source. Nothing is
// connected yet: a database that is down fails looks, not the start. Close ends it.
func Open(config *rules.Config, o EngineOptions) (*Engine, error) {
	e := &Engine{pools: map[string]*Pool{}}
	if o.Gate == "" {
		o.Gate = newID()
	}
	for _, name := range slices.Sorted(maps.Keys(config.Pools)) {
		if config.Pools[name].Capacity.Truth == nil {
			continue
		}
		if err := e.add(config, name, o); err != nil {
			e.Close()
			return nil, fmt.Errorf("pool %s: %w", name, err)
		}
	}
	return e, nil
}

func (e *Engine) add(config *rules.Config, name string, o EngineOptions) error {
	pool := config.Pools[name]
	from, err := source.Open(pool.Capacity.Truth, o.Source)
	if err != nil {
		return err
	}
	e.sources = append(e.sources, from)
	lister, _ := from.(Lister)
	looker, _ := from.(Looker)
	p, err := New(Options{
		Name: name, Config: pool, Store: o.Store, Source: from, Looker: looker, Lister: lister,
		Meter: o.Meter, Logger: o.Logger, Gate: o.Gate, Awaited: awaitedIn(config, name),
	})
	if err != nil {
		return err
	}
	e.pools[name] = p
	return nil
}

// awaitedIn is the longest that an attempt on the pool's slots is awaited.
func awaitedIn(config *rules.Config, pool string) (longest time.Duration) {
	for _, r := range config.Rules {
		if r.Pool == pool {
			longest = max(longest, r.Lease(config))
		}
	}
	return longest
}

// Pool is the pool of this name, nil where it has no source.
func (e *Engine) Pool(name string) *Pool { return e.pools[name] }

// Pools are the names of the pools that have a source, in order.
func (e *Engine) Pools() []string { return slices.Sorted(maps.Keys(e.pools)) }

// Load implements gate.Truth. A pool without a source fails.
func (e *Engine) Load(ctx context.Context, pool, slot string) gate.Loaded {
	p := e.pools[pool]
	if p == nil {
		return gate.LoadFailed
	}
	return p.Load(ctx, slot)
}

// Probe implements gate.Truth.
func (e *Engine) Probe(s *store.Settle) {
	if p := e.pools[s.Pool]; p != nil && p.probes != nil {
		p.probes.Watch(s)
	}
}

// Resync looks at a slot now, whoever else is looking; see Pool.Resync.
func (e *Engine) Resync(ctx context.Context, pool, slot string) error {
	p := e.pools[pool]
	if p == nil {
		return errors.New("pool " + pool + " takes no capacity from truth")
	}
	return p.Resync(ctx, slot)
}

// Start starts every pool.
func (e *Engine) Start() {
	for _, p := range e.pools {
		p.Start()
	}
}

// Close closes every pool, then the sources. It may be called twice.
func (e *Engine) Close() {
	for _, p := range e.pools {
		p.stop() // all at once: each may have a look to end
	}
	for _, p := range e.pools {
		p.Close()
	}
	for _, s := range e.sources {
		_ = s.Close()
	}
}
