package gate

import (
	"crypto/sha256"
	"reflect"
	"slices"
	"sync/atomic"
	"time"

	"github.com/slotgate/slotgate/rules"
)

// Rules are what a reload puts in effect: a configuration and what is made from it.
type Rules struct {
	Config  *rules.Config
	Set     *rules.Set
	Backend Backend
	Truth   Truth // nil: no pool has a source
}

// rulebook is the rules in effect, with what this process keeps for them. A request
// ends under the one that it began with, whatever is put in effect meanwhile.
type rulebook struct {
	Rules
	routes   []*route          // by Rule.Index
	queues   map[string]queue  // by pool
	revision string            // tells this configuration from others
	digest   [sha256.Size]byte // … its rules and pools
	running  atomic.Int64      // requests that began with it
	modes    atomic.Pointer[modes]
	// shadowQueues are the lines of those in shadow, who do not wait in them.
	shadowQueues map[string]queue
}

// newRulebook takes from the one before what a request must not find anew because
// another part of the file was changed: limits, lines, what shadow has counted, and modes that were switched.
func newRulebook(r Rules, before *rulebook) *rulebook {
	b := &rulebook{Rules: r, queues: make(map[string]queue, len(r.Set.Pools)), shadowQueues: make(map[string]queue, len(r.Set.Pools)), revision: revision(r.Config), digest: r.Config.Digest()}
	for name, pool := range r.Set.Pools {
		b.queues[name], b.shadowQueues[name] = newQueue(pool.Queue.Size), newQueue(pool.Queue.Size)
		if before != nil && before.Set.Pools[name] != nil && before.Set.Pools[name].Queue.Size == pool.Queue.Size {
			b.queues[name], b.shadowQueues[name] = before.queues[name], before.shadowQueues[name]
		}
	}
	for _, rule := range r.Set.Rules {
		route := newRoute(rule, r.Config)
		if before != nil {
			route.inherit(before.route(rule.Name))
		}
		b.routes = append(b.routes, route)
	}
	b.modes.Store(firstModes(b, before))
	return b
}

// route is that of a rule, nil where there is none of the name.
func (b *rulebook) route(name string) *route {
	if b == nil {
		return nil
	}
	for _, r := range b.routes {
		if r.rule.Name == name {
			return r
		}
	}
	return nil
}

// inherit goes on where the same rule was before the reload.
func (r *route) inherit(before *route) {
	if before == nil {
		return
	}
	r.tally = before.tally
	if reflect.DeepEqual(before.rule.Limits.Rule, r.rule.Limits.Rule) {
		r.limiter = before.limiter
	}
	if before.rule.Passthrough == r.rule.Passthrough {
		r.passthrough.Close()
		r.passthrough = before.passthrough
	}
}

// begin is the rulebook for a request that arrives now. It is left with end.
func (g *Gate) begin() *rulebook {
	for {
		b := g.book.Load()
		b.running.Add(1)
		if b == g.book.Load() {
			return b
		}
		b.end() // it was put out of effect meanwhile, and perhaps is gone
	}
}

func (b *rulebook) end() { b.running.Add(-1) }

// learn has the process remember what is left of slots where a rule wants to know.
func (g *Gate) learn(set *rules.Set) {
	if slices.ContainsFunc(set.Rules, func(r *rules.Rule) bool { return r.OnStoreFailure == "local" }) {
		g.local.Know()
	}
}

// idleCheck is how often a rulebook is looked at that still has requests.
const idleCheck = 50 * time.Millisecond

// Reload puts other rules in effect for requests that arrive afterwards; those under
// way end as they began. When the last of them has ended it calls retired, in the
// background: what the old rules were made with can be closed. The store and what it
// was opened with stay. Reloads must not run at the same time.
func (g *Gate) Reload(r Rules, retired func()) {
	g.switching.Lock()
	before := g.book.Load()
	after := newRulebook(r, before)
	g.learn(r.Set)
	g.book.Store(after)
	g.switching.Unlock()
	g.reloads.Go(func() {
		tick := time.NewTicker(idleCheck)
		defer tick.Stop()
		for before.running.Load() > 0 {
			select {
			case <-tick.C:
			case <-g.closed:
			}
		}
		before.retire(after)
		retired()
	})
}

// retire ends the background work of what nobody uses any more.
func (b *rulebook) retire(after *rulebook) {
	for _, r := range b.routes {
		if next := after.route(r.rule.Name); next == nil || next.passthrough != r.passthrough {
			r.passthrough.Close()
		}
	}
}
