// Package peers notices gates of one store that decide by different rules or pools.
//
// Each gate announces a hash of what it decides by every two seconds, for seven, and is
// told how many gates run and how many of them announce another hash. During a rollout
// some always do for a while.
package peers

import (
	"context"
	"crypto/rand"
	"log/slog"
	"sync"
	"time"
)

const (
	every = 2 * time.Second
	life  = 7 * time.Second
	// patience is how long gates may differ before the log says so, longer than life: one
	// that was killed counts for as long, and none does when the store was away for longer.
	patience = life + 3*time.Second
	// lastWord bounds the time in which a gate that ends says so.
	lastWord = time.Second
)

// Registry is where the gates of one store announce themselves; see
// redisstore.Store.Announce.
type Registry interface {
	Announce(ctx context.Context, gate, policy string, life time.Duration) (running, differing int, err error)
}

// Seen is what was heard of all gates lately.
type Seen struct {
	Known     bool // the registry has answered within a gate's life
	Running   int  // gates, this one included
	Differing int  // of them, by other rules or pools than this one
}

// Peers announces one gate. It is safe for concurrent use.
type Peers struct {
	registry Registry
	policy   func() string
	log      *slog.Logger
	name     string

	mu      sync.Mutex
	seen    Seen
	heardAt time.Time

	stop    context.CancelFunc
	stopped chan struct{}
}

// Start announces a gate until Close. policy tells what it decides by at the moment.
func Start(registry Registry, policy func() string, log *slog.Logger) *Peers {
	ctx, stop := context.WithCancel(context.Background())
	p := &Peers{registry: registry, policy: policy, log: log, name: rand.Text(), stop: stop, stopped: make(chan struct{})}
	go p.run(ctx)
	return p
}

// Seen is what was heard lately. Nil Peers have heard nothing.
func (p *Peers) Seen() Seen {
	if p == nil {
		return Seen{}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.heardAt) > life {
		return Seen{}
	}
	return p.seen
}

// Close has the other gates know that this one ends. It may be called twice, and of nil
// Peers.
func (p *Peers) Close() {
	if p == nil {
		return
	}
	p.stop()
	<-p.stopped
}

func (p *Peers) run(ctx context.Context) {
	defer close(p.stopped)
	tick := time.NewTicker(every)
	defer tick.Stop()
	var differ difference
	for {
		running, differing, err := p.registry.Announce(ctx, p.name, p.policy(), life)
		if err == nil { // what a store that is away means, others say
			p.hear(Seen{Known: true, Running: running, Differing: differing})
			differ.note(p.log, running, differing)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			end, cancel := context.WithTimeout(context.Background(), lastWord)
			_, _, _ = p.registry.Announce(end, p.name, "", 0) // else it is dropped after life
			cancel()
			return
		}
	}
}

func (p *Peers) hear(seen Seen) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen, p.heardAt = seen, time.Now()
}

// difference decides when the log says that gates differ, or do no longer: once either
// has lasted.
type difference struct {
	said  bool      // that they differ
	since time.Time // when that was first seen to be otherwise; zero: it is so
}

func (d *difference) note(log *slog.Logger, running, differing int) {
	differ := differing > 0
	switch {
	case differ == d.said:
		d.since = time.Time{}
	case d.since.IsZero():
		d.since = time.Now()
	case time.Since(d.since) < patience:
	case differ:
		*d = difference{said: true}
		log.Warn("gates of this store decide by other rules or pools than this one: compare their files, "+
			"the modes set through their admin APIs, and their versions (config_hash in /v1/status)",
			"gates", running, "differing", differing)
	default:
		*d = difference{}
		log.Info("all gates of this store decide by the same rules and pools again", "gates", running)
	}
}
