package rules

// truth says where a pool's truth tells less, or later, than it seems to.
func (w *warner) truth(p place, name string, pool *PoolConfig) {
	t := pool.Capacity.Truth
	if t == nil {
		return
	}
	source := p.field("sql")
	if t.HTTP != nil {
		source = p.field("http")
	}
	switch {
	case t.Means() == MeansCapacity:
		source.field("means").warnf("capacity tells how many units a slot has and recovers nothing: bookings and cancels behind the gate, and lapsed holds whose outcome is not known, stay unseen; use remaining or booked where the backend counts them")
	case t.Lag >= t.Hot:
		p.field("lag").warnf("%s is not shorter than hot, which is %s: each look counts the bookings of the last %s twice, for truth may or may not have them, so that a slot's last units are sold late", FormatDuration(t.Lag), FormatDuration(t.Hot), FormatDuration(t.Lag))
	}
	if t.ReportDir != "" && t.Report == "" {
		p.field("report_dir").warnf("is of no use without report, the time of day at which reports are made")
	}
	for i, r := range w.cfg.Rules {
		if rule := w.doc.top().field("rules").item(i); r.Pool == name && !rule.broken() {
			w.joined(rule.field("slot"), r.Slot, "pool "+name+" asks its truth for that: the source has to take it apart")
			if t.Bookings != nil {
				w.joined(rule.field("subject"), r.Subject, "the bookings of pool "+name+" are compared with that: they have to be made up alike")
			}
		}
	}
}

// joined: the backend knows the parts, and hardly the text that they make here.
func (w *warner) joined(p place, list Extractors, use string) {
	if len(list) > 1 {
		p.warnf("is joined from %d parts to a text such as |3:abc|2:xy, and %s", len(list), use)
	}
}

// unsettled says which holds of a pool stay until somebody ends them.
func (w *warner) unsettled(p place, name string, pool *PoolConfig) {
	confirms, probes := false, false
	for _, r := range w.cfg.Rules {
		if r.Pool == name {
			confirms = confirms || r.Action == "confirm"
			probes = probes || r.Idempotency != nil && r.Idempotency.Unknown == "probe"
		}
	}
	recovers := pool.Capacity.Recovers()
	if pending := p.field("pending_ttl"); pool.PendingTTL > 0 {
		if !confirms {
			pending.warnf("no rule of this pool has action confirm: every booking counts as expired %s after it was made", FormatDuration(pool.PendingTTL))
		}
		if !recovers {
			pending.warnf("a booking that expires unconfirmed keeps its units until an operator releases it, for no truth tells whether the backend has given them back")
		}
	}
	if pool.KeepUnknown && recovers && !probes {
		p.field("keep_unknown").warnf("a hold whose outcome stays unknown is counted besides the booking that truth may have of it, so that its units are missing until an operator releases it: write unknown: probe on the book rule, or look after such holds")
	}
}

// probe says what a look for an unanswered booking cannot tell apart: bookings have a
// subject, but not the request that made them.
func (w *warner) probe(p place, r *RuleConfig) {
	pool := w.cfg.Pools[r.Pool]
	if at := w.doc.top().field("pools").field(r.Pool); pool == nil || at.broken() || r.Idempotency.Unknown != "probe" || pool.OnePerSubject || pool.MaxPerSubject == 1 {
		return
	}
	p.warnf("probe takes an earlier booking of the subject for the one that was not answered, for it looks whether the subject has the slot: write one_per_subject: true on pool %s, or reject here", r.Pool)
}

// settling says what a cancel or confirm of a rule cannot find or change.
func (w *warner) settling(p place, r *RuleConfig) {
	pool := w.cfg.Pools[r.Pool]
	if at := w.doc.top().field("pools").field(r.Pool); !r.settles() || pool == nil || at.broken() {
		return
	}
	if r.Action == "confirm" && pool.PendingTTL == 0 {
		p.field("action").warnf("pool %s has no pending_ttl, so that its bookings are final at once: this rule changes none", r.Pool)
	}
	if len(r.Hold) == 0 {
		return
	}
	for _, other := range w.cfg.Rules {
		if other.Pool == r.Pool && len(other.Reference) > 0 {
			return
		}
	}
	p.field("hold").warnf("no book rule of pool %s has a reference: no booking will be found by this", r.Pool)
}
