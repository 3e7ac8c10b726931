package gate

import (
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/slotgate/slotgate/gate/degrade"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

// route is a rule with what this process keeps for it.
type route struct {
	rule        *rules.Rule
	limiter     *rate.Limiter // nil: no limit of the rule
	passthrough *degrade.Passthrough
	tally       *tally        // of requests in shadow
	pageShared  atomic.Bool   // the last page that was to bring an id is one for caches
	readsAnswer bool          // what an answer means depends on its body
	timeout     time.Duration // of one attempt at the backend
	settleTime  time.Duration // what a lease must leave for the settlement
	decide      store.Decide  // what is the same for every request of the rule
	pendingTTL  time.Duration // of a booking; 0: it is confirmed at once
	maxAnswer   int64         // of a kept answer's body
	waits       bool          // twins wait
	twinWait    time.Duration
}

func newRoute(rule *rules.Rule, cfg *rules.Config) *route {
	r := &route{
		rule:        rule,
		passthrough: degrade.NewPassthrough(rule.Passthrough),
		tally:       newTally(),
		readsAnswer: readsAnswer(rule),
		timeout:     rule.UpstreamTimeout(cfg),
		settleTime:  cfg.Store.Timeout,
		waits:       true,
		twinWait:    5 * time.Second,
	}
	if rule.Limits.Rule != nil {
		r.limiter = degrade.NewLimiter(*rule.Limits.Rule)
	}
	d := &r.decide
	d.Rule = rule.Name
	d.Action = actions[rule.Action]
	d.Lease = rule.Lease(cfg)
	d.RetryUnknown = rule.RetryUnknown()
	d.SubjectLimit = limit(rule.Limits.Subject)
	d.ClientLimit = limit(rule.Limits.Client)
	if p := rule.Pool; p != nil {
		d.Pool = p.Name
		d.Capacity, d.Truth = capacity(p)
		if t := p.Capacity.Truth; t != nil {
			d.Hot, d.Refresh = t.Hot, t.Refresh
		}
		r.pendingTTL = p.PendingTTL
		d.HoldTTL = p.HoldTTL
		d.Retain = p.Retain
		d.OnePerSubject = p.OnePerSubject
		d.MaxPerSubject = p.MaxPerSubject
		d.MaxInflight = p.MaxInflight
		d.KeepUnknown = p.KeepUnknown
		d.OpensAt = p.OpensAt
		d.SlotLimit = limit(rule.Limits.Slot)
	}
	if idem := rule.Idempotency; idem != nil {
		d.KeyTTL = idem.TTL
		r.maxAnswer = int64(idem.MaxResponse)
		r.waits = idem.InFlight != "reject"
		r.twinWait = idem.Wait
	}
	return r
}

var actions = map[string]store.Action{
	"book": store.Book, "guard": store.Book, "cancel": store.Cancel, "confirm": store.Confirm,
}

// capacity is what the configuration says of a pool's slots.
func capacity(p *rules.Pool) (int64, store.TruthKind) {
	switch {
	case p.Capacity.Kind == rules.CapacityNumber:
		return p.Capacity.Units, store.NoTruth
	case p.Capacity.Truth == nil:
		return store.Learned, store.NoTruth
	case p.Capacity.Recovers():
		return store.Learned, store.TruthRemaining
	}
	return store.Learned, store.TruthTotal
}

func limit(cfg *rules.LimitConfig) store.Limit {
	if cfg == nil {
		return store.Limit{}
	}
	return store.Limit{Count: cfg.Rate.Count, Per: cfg.Rate.Per, Burst: cfg.Burst}
}
