package gate

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

// RuleStatus is a rule as the admin API lists it.
type RuleStatus struct {
	Name           string
	Action         string
	Pool           string
	Mode           string // in effect: enforce | shadow | off
	FileMode       string // what the configuration says
	OnStoreFailure string
}

// Status is how the gate is at the moment.
type Status struct {
	Degraded        bool
	StoreBreaker    int // 0 closed, 1 half-open, 2 open
	UpstreamBreaker int
	Waiting         map[string]int // by pool
	SettleBacklog   int
	SettlementsLost int64                   // found no room in the backlog
	Bound           map[string]string       // by pool, while degraded
	Shadow          map[string]ShadowReport // by rule; "": it could not be told
	StartedAt       time.Time
	Revision        string // of the configuration
	Policy          string // what gates of one store have in common
}

// Rules lists the rules in their order.
func (g *Gate) Rules() []RuleStatus {
	book := g.book.Load()
	list := make([]RuleStatus, len(book.routes))
	for i, r := range book.routes {
		list[i] = RuleStatus{
			Name: r.rule.Name, Action: r.rule.Action, Pool: r.rule.RuleConfig.Pool,
			Mode: book.mode(r).String(), FileMode: fileMode(r.rule).String(), OnStoreFailure: r.rule.OnStoreFailure,
		}
	}
	return list
}

// Status gathers the state of all parts.
func (g *Gate) Status() Status {
	book := g.book.Load()
	s := Status{
		StoreBreaker:    g.store.State(),
		UpstreamBreaker: breakerState(book.Backend),
		Waiting:         make(map[string]int, len(book.queues)),
		SettleBacklog:   g.backlog.Len(),
		SettlementsLost: g.backlog.Lost(),
		Bound:           map[string]string{},
		Shadow:          book.shadows(g.strays),
		StartedAt:       g.started,
		Revision:        book.revision,
		Policy:          book.policy(),
	}
	s.Degraded = g.back.Away()
	for pool, q := range book.queues {
		s.Waiting[pool] = q.len()
	}
	if s.Degraded {
		s.Bound = g.bounds()
	}
	return s
}

func breakerState(b Backend) int {
	if b, ok := b.(interface{ BreakerState() int }); ok {
		return b.BreakerState()
	}
	return 0
}

// revision tells two configurations apart without showing anything of them.
func revision(cfg *rules.Config) string {
	b, err := json.Marshal(cfg)
	if err != nil {
		return ""
	}
	policy := cfg.Digest() // what JSON does not show: the sources of truth
	sum := sha256.Sum256(append(b, policy[:]...))
	return hex.EncodeToString(sum[:6])
}

// Policy tells gates apart that would decide differently: a hash of the rules and pools
// (rules.Config.Digest) and of the modes that the rules are in at the moment.
func (g *Gate) Policy() string { return g.book.Load().policy() }

func (b *rulebook) policy() string {
	sum := sha256.New()
	sum.Write(b.digest[:])
	for _, r := range b.routes {
		sum.Write([]byte(b.mode(r).String() + "\n"))
	}
	return hex.EncodeToString(sum.Sum(nil)[:6])
}

// Pools lists the pools' names, sorted.
func (g *Gate) Pools() []string { return slices.Sorted(maps.Keys(g.book.Load().Set.Pools)) }

// Query says what the configuration knows of a slot; false: no such pool. An
// empty slot asks for the pool.
func (g *Gate) Query(pool, slot string) (store.SlotQuery, bool) {
	return g.book.Load().query(pool, slot)
}

func (b *rulebook) query(pool, slot string) (store.SlotQuery, bool) {
	p, ok := b.Set.Pools[pool]
	if !ok {
		return store.SlotQuery{}, false
	}
	q := store.SlotQuery{
		Pool: pool, Slot: slot,
		HoldTTL: p.HoldTTL, Retain: p.Retain, KeepUnknown: p.KeepUnknown, MaxPerSubject: p.MaxPerSubject, OpensAt: p.OpensAt,
	}
	q.Capacity, q.Truth = capacity(p)
	return q, true
}
