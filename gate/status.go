package gate

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
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
	Mode           string
	OnStoreFailure string
}

// Status is how the gate is at the moment.
type Status struct {
	Degraded        bool
	StoreBreaker    int // 0 closed, 1 half-open, 2 open
	UpstreamBreaker int
	Waiting         map[string]int // by pool
	SettleBacklog   int
	SettlementsLost int64             // found no room in the backlog
	Bound           map[string]string // by pool, while degraded
	StartedAt       time.Time
	Revision        string // of the configuration
	Policy          string // what gates of one store have in common
}

// Rules lists the rules in their order.
func (g *Gate) Rules() []RuleStatus {
	routes := g.book.Load().routes
	list := make([]RuleStatus, len(routes))
	for i, r := range routes {
		list[i] = RuleStatus{
			Name: r.rule.Name, Action: r.rule.Action, Pool: r.rule.RuleConfig.Pool,
			Mode: modeWord(r.mode()), OnStoreFailure: r.rule.OnStoreFailure,
		}
	}
	return list
}

func modeWord(mode int32) string {
	if mode == modeOff {
		return "off"
	}
	return "enforce"
}

func parseMode(word string) (int32, error) {
	switch word {
	case "enforce":
		return modeEnforce, nil
	case "off":
		return modeOff, nil
	case "shadow":
		return 0, fmt.Errorf("mode shadow is not available yet; use enforce or off")
	}
	return 0, fmt.Errorf("no such mode %q; use enforce or off", word)
}

// SetMode switches one rule. Requests under way end as they began.
func (g *Gate) SetMode(rule, mode string) error {
	m, err := parseMode(mode)
	if err != nil {
		return err
	}
	for _, r := range g.book.Load().routes {
		if r.rule.Name == rule {
			r.setMode.Store(m)
			g.log.Info("mode switched", "rule", rule, "mode", mode)
			return nil
		}
	}
	return fmt.Errorf("no such rule %q", rule)
}

// SetModeAll switches every rule.
func (g *Gate) SetModeAll(mode string) error {
	m, err := parseMode(mode)
	if err != nil {
		return err
	}
	for _, r := range g.book.Load().routes {
		r.setMode.Store(m)
	}
	g.log.Info("mode of every rule switched", "mode", mode)
	return nil
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
		sum.Write([]byte(modeWord(r.mode()) + "\n"))
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
		HoldTTL: p.HoldTTL, Retain: p.Retain, KeepUnknown: p.KeepUnknown, OpensAt: p.OpensAt,
	}
	q.Capacity, q.Truth = capacity(p)
	return q, true
}
