package rules

// settles reports whether the rule's action ends or completes a booking that was
// made before.
func (r *RuleConfig) settles() bool { return r.Action == "cancel" || r.Action == "confirm" }

// action checks what a rule has to name for its action, and what it may not.
func (v *validator) action(p place, r *RuleConfig) {
	switch {
	case r.Action == "guard":
		v.guard(p, r)
	case r.settles():
		v.settling(p, r)
	default:
		v.booking(p, r)
	}
	v.poolOf(p.field("pool"), r)
	if r.Action != "book" && len(r.Reference) > 0 {
		p.field("reference").faultf("is for action book, whose answer has the booking's id: remove the line, or write it on the book rule")
	}
	if !r.settles() && len(r.Hold) > 0 {
		p.field("hold").faultf("is for actions cancel and confirm, which look a booking up by it: remove the line")
	}
	for name, list := range map[string]Extractors{"units": r.Units, "reference": r.Reference, "hold": r.Hold} {
		if len(list) > 1 {
			p.field(name).faultf("takes one extractor, not a list of %d", len(list))
		}
	}
}

func (v *validator) guard(p place, r *RuleConfig) {
	if r.Pool != "" {
		p.field("pool").faultf("a guard takes no units: remove the pool, or write action: book")
	}
	if len(r.Units) > 0 {
		p.field("units").faultf("a guard takes no units: remove the line, or write action: book")
	}
}

func (v *validator) booking(p place, r *RuleConfig) {
	if r.Pool == "" {
		p.field("pool").faultf("is required for action book: name one of pools, or write action: guard for dedupe and limits only")
	}
	if slot := p.field("slot"); len(r.Slot) == 0 && !slot.faulty() {
		slot.faultf("is required for action book: write where the request says what is booked, such as path:lesson")
	}
	reference := p.field("reference")
	for i, e := range r.Reference {
		if e.Source != FromJSON && e.Source != FromHeader && !reference.faulty() {
			reference.item(i).faultf("%s cannot be read from an answer: write where the backend tells the booking's id, such as json:/data/booking_id or header:X-Booking-Id", e)
		}
	}
}

// settling: a cancel or confirm finds the booking by its reference, or by slot and
// subject.
func (v *validator) settling(p place, r *RuleConfig) {
	hold, slot, subject := p.field("hold"), p.field("slot"), p.field("subject")
	if r.Pool == "" {
		p.field("pool").faultf("is required for action %s: name the pool of the bookings", r.Action)
	}
	if len(r.Units) > 0 {
		p.field("units").faultf("a %s is for all units of a booking: remove the line", r.Action)
	}
	if len(r.Hold) > 0 || hold.faulty() {
		return
	}
	if len(r.Slot) == 0 && !slot.faulty() {
		slot.faultf("is required for action %s without hold: write where the request says what was booked, such as path:lesson, or hold with the booking's id, such as path:booking", r.Action)
	}
	if len(r.Subject) == 0 && !subject.faulty() {
		subject.faultf("is required for action %s without hold: write where the request says whose booking it is, such as json:/student_id, or hold with the booking's id, such as path:booking", r.Action)
	}
}

func (v *validator) poolOf(p place, r *RuleConfig) {
	pools := v.doc.top().field("pools")
	if r.Action != "guard" && r.Pool != "" && !pools.field(r.Pool).written && !pools.hidesKeys() {
		p.faultf("there is no pool %s%s", r.Pool, didYouMean(r.Pool, sortedKeys(v.cfg.Pools)))
	}
}

// probe checks that unknown: probe has somebody to ask.
func (v *validator) probe(rule place, r *RuleConfig) {
	p := rule.field("idempotency").field("unknown")
	if r.Idempotency.Unknown != "probe" {
		return
	}
	if r.Action != "book" {
		p.faultf("probe is for action book, it asks the pool's truth whether the subject has the slot: write retry or reject")
		return
	}
	if len(r.Subject) == 0 && !rule.field("subject").faulty() {
		p.faultf("probe asks the pool's truth whether the subject has the slot: write where the request says the subject, such as subject: json:/student_id")
		return
	}
	pool := v.cfg.Pools[r.Pool]
	at := v.doc.top().field("pools").field(r.Pool).field("capacity")
	if pool == nil || at.faulty() {
		return
	}
	if truth := pool.Capacity.Truth; truth == nil || truth.Bookings == nil {
		p.faultf("probe asks truth, and pool %s has no bookings in its capacity: write bookings: { query: … } beside sql, or bookings: { path: … } beside http", r.Pool)
	}
}
