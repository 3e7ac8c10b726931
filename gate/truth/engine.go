package truth

import (
	"context"

	"github.com/slotgate/slotgate/gate"
	"github.com/slotgate/slotgate/gate/store"
)

// Engine is the pools that name a source, by their names. It is what the journey
// asks (gate.Truth). It is not changed once it is in use.
type Engine map[string]*Pool

var _ gate.Truth = Engine(nil)

// Load implements gate.Truth. A pool without a source is not known.
func (e Engine) Load(ctx context.Context, pool, slot string) gate.Loaded {
	p := e[pool]
	if p == nil {
		return gate.LoadFailed
	}
	return p.Load(ctx, slot)
}

// Probe implements gate.Truth.
func (e Engine) Probe(s *store.Settle) {
	if p := e[s.Pool]; p != nil && p.probes != nil {
		p.probes.Watch(s)
	}
}

// Start starts every pool.
func (e Engine) Start() {
	for _, p := range e {
		p.Start()
	}
}

// Close closes every pool. It may be called twice.
func (e Engine) Close() {
	for _, p := range e {
		p.stop() // all at once: each may have a look to end
	}
	for _, p := range e {
		p.Close()
	}
}
