package rules

import "time"

func (v *validator) pools(p place) {
	for _, name := range sortedKeys(v.cfg.Pools) {
		v.pool(p.field(name), name, v.cfg.Pools[name])
	}
}

func (v *validator) pool(p place, name string, pool *PoolConfig) {
	checkName(p, name)
	if at := p.field("capacity"); !at.written {
		at.faultf("is required: it %s", wantCapacity)
	} else {
		v.truth(at, pool.Capacity.Truth)
	}
	for i, r := range v.cfg.Rules {
		if r.Pool != name {
			continue
		}
		rule := v.doc.top().field("rules").item(i)
		v.holdTTL(p.field("hold_ttl"), pool, rule, r)
		if r.Action != "book" || rule.field("subject").written {
			continue
		}
		subject := rule.field("subject")
		switch {
		case pool.OnePerSubject:
			subject.faultf("is required, since pool %s has one_per_subject: write where the request says whom the units are for, such as json:/student_id", name)
		case pool.MaxPerSubject > 0:
			subject.faultf("is required, since pool %s has max_per_subject: write where the request says whom the units are for, such as json:/student_id", name)
		}
	}
}

// holdTTL: a hold that lapses while its request may still be committed is sold a
// second time.
func (v *validator) holdTTL(p place, pool *PoolConfig, rule place, r *RuleConfig) {
	for _, involved := range []place{rule.field("timeout"), rule.field("retry"), v.doc.top().field("upstream").field("timeout"), v.doc.top().field("store").field("timeout")} {
		if involved.written && involved.broken() {
			return
		}
	}
	least := r.Lease(v.cfg)
	if pool.HoldTTL > least {
		return
	}
	timeout, whose := r.UpstreamTimeout(v.cfg), "its timeout"
	if r.Timeout == 0 {
		whose = "upstream.timeout"
	}
	around := least - time.Duration(r.Attempts())*(timeout+r.Retry.MaxBackoff)
	p.faultf("%s is too short, it must be more than %s: rule %s may take %d × (%s %s + max_backoff %s) + %s, and a hold that lapses before is sold again",
		FormatDuration(pool.HoldTTL), FormatDuration(least), r.Name, r.Attempts(), whose, FormatDuration(timeout), FormatDuration(r.Retry.MaxBackoff), FormatDuration(around))
}
