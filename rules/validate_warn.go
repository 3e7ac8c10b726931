package rules

import (
	"slices"
	"time"
)

// warner says what is allowed and probably not meant, or what the configuration
// leans on. It looks only at parts that have no fault.
type warner struct {
	doc *document
	cfg *Config
}

func warn(doc *document, cfg *Config) {
	w := &warner{doc, cfg}
	top := doc.top()
	w.timeouts(top)
	w.store(top.field("store"))
	for _, name := range sortedKeys(cfg.Pools) {
		if p := top.field("pools").field(name); !p.broken() {
			w.pool(p, name, cfg.Pools[name])
		}
	}
	rules := top.field("rules")
	for i, r := range cfg.Rules {
		if p := rules.item(i); !p.broken() {
			w.shadowed(rules, i)
			w.outcomes(p.field("outcomes"), r)
			w.idempotency(p.field("idempotency"), r)
			w.issue(p.field("idempotency"), r)
			w.settling(p, r)
		}
	}
}

// backendIdle is when common backends close an idle connection by themselves.
const backendIdle = 5 * time.Second

func (w *warner) timeouts(top place) {
	server, upstream, store := top.field("server"), top.field("upstream"), top.field("store")
	if server.written && server.broken() || upstream.broken() || store.written && store.broken() {
		return
	}
	u := &w.cfg.Upstream
	if u.KeepAlive >= backendIdle {
		upstream.field("keep_alive").warnf("%s is longer than many backends keep an idle connection (Node and Apache 5s): make sure that yours keeps it longer, a request sent on a closing one fails", FormatDuration(u.KeepAlive))
	}
	if u.ConnectTimeout >= u.Timeout {
		upstream.field("connect_timeout").warnf("%s leaves nothing of upstream.timeout, which is %s: keep it well below", FormatDuration(u.ConnectTimeout), FormatDuration(u.Timeout))
	}
	if w.cfg.Store.Timeout >= u.Timeout {
		store.field("timeout").warnf("%s is not below upstream.timeout, which is %s: deciding should take a small part of a request", FormatDuration(w.cfg.Store.Timeout), FormatDuration(u.Timeout))
	}
	if longest := w.longestTimeout(); w.cfg.Server.Drain < longest {
		server.field("drain").warnf("%s is shorter than a request may take at the backend, which is %s: a stop will cut such requests off", FormatDuration(w.cfg.Server.Drain), FormatDuration(longest))
	}
}

func (w *warner) longestTimeout() time.Duration {
	longest := w.cfg.Upstream.Timeout
	for _, r := range w.cfg.Rules {
		longest = max(longest, r.Timeout)
	}
	return longest
}

func (w *warner) store(p place) {
	if s := w.cfg.Store.Secret; s != "" && len(s) < 16 {
		p.field("secret").warnf("is short, so that stored hashes could be guessed: use 16 characters or more")
	}
}

// learnedInflight is how many requests of a slot a store lets to the backend at once
// while the slot's capacity is not known (store.LearnedInflight).
const learnedInflight = 4

func (w *warner) pool(p place, name string, pool *PoolConfig) {
	used := false
	for i, r := range w.cfg.Rules {
		if r.Pool != name {
			continue
		}
		used = true
		soldOut := slices.ContainsFunc(r.Outcomes, func(o OutcomeConfig) bool { return o.Is == SoldOut })
		rule := w.doc.top().field("rules").item(i)
		if pool.Capacity.Kind == CapacityLearned && r.Action == "book" && !soldOut && !rule.broken() {
			rule.field("outcomes").warnf("pool %s is learned, and no line says sold_out: the gate can learn it from nothing else", name)
		}
	}
	if !used {
		p.warnf("no rule uses this pool")
	}
	if pool.Capacity.Kind == CapacityNumber {
		p.field("capacity").warnf("a number without truth: after a lapsed hold whose outcome is not known, after retain, and after a restart of a memory store, only the backend's own constraints keep the slot from being oversold")
	}
	if pool.Capacity.Kind == CapacityLearned && pool.MaxInflight > learnedInflight {
		p.field("max_inflight").warnf("has no effect: at most %d requests of a slot are at the backend at once while its capacity is learned; more can be only of a slot that an operator gave a number", learnedInflight)
	}
	w.truth(p.field("capacity"), name, pool)
	w.unsettled(p, name, pool)
	if pool.Retain < pool.HoldTTL {
		p.field("retain").warnf("%s is shorter than hold_ttl, which is %s", FormatDuration(pool.Retain), FormatDuration(pool.HoldTTL))
	}
	if pool.Retain < pool.PendingTTL {
		p.field("retain").warnf("%s is shorter than pending_ttl, which is %s", FormatDuration(pool.Retain), FormatDuration(pool.PendingTTL))
	}
}

func (w *warner) idempotency(p place, r *RuleConfig) {
	idem := r.Idempotency
	if idem == nil {
		return
	}
	unknown := p.field("unknown")
	if auto := !unknown.written || unknown.value.Value == "auto"; auto && idem.Unknown == "reject" {
		why := "since no outcomes line says duplicate"
		if r.settles() {
			why = "where retry would let the backend hear a repeated " + r.Action
		}
		unknown.warnf("auto means reject here, %s: a request whose first attempt got no answer is refused as outcome-unknown for the key's ttl of %s", why, FormatDuration(idem.TTL))
	}
	w.probe(unknown, r)
	timeout := r.Timeout
	if timeout == 0 {
		timeout = w.cfg.Upstream.Timeout
	}
	if idem.InFlight == "wait" && idem.Wait < timeout {
		p.field("wait").warnf("%s is shorter than the backend may take, which is %s: a twin gives up before the first request is answered", FormatDuration(idem.Wait), FormatDuration(timeout))
	}
	for _, other := range w.cfg.Rules {
		if other == r {
			return // rules further down report themselves
		}
		o := other.Idempotency
		if o == nil || o.Group != idem.Group {
			continue
		}
		if o.TTL != idem.TTL || o.Unknown != idem.Unknown || !slices.Equal(o.Scope, idem.Scope) {
			p.field("group").warnf("shares the keys of rule %s, but differs from it in ttl, unknown or scope: what holds for a key depends on which rule saw it first", other.Name)
		}
	}
}
