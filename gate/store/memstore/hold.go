package memstore

import (
	"time"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
)

// hold is units taken for one request. Its deadline is when it lapses, or, once it
// is gone, when it is forgotten; a confirmed hold has none.
type hold struct {
	deadline
	id          string
	order       int64 // among the slot's holds
	subject     string
	units       int64
	state       decision.HoldState
	taken       int64
	scope       string
	fingerprint [32]byte
	adoptions   int
	kept        bool   // past hold_ttl and kept as unknown
	unpaid      bool   // was pending, and is unknown for good
	booked      int64  // when it was booked
	doubted     int64  // until when an unanswered attempt of it may be booked, too
	standsIn    bool   // for a booking of the subject that nobody has told of
	doubtful    bool   // a cancel of it may have been done, and an attempt booked before or since
	reference   string // of its booking in the backend's answer
	quota       bool   // counts towards max_per_subject
	attempts    []*attempt
	cost        int64

	first    attempt     // most holds have one attempt
	firstRef [1]*attempt // and need no slice of their own
}

// attempt is one request that went on under a hold. Its deadline is its lease, in
// the slot's queue of running attempts; out of that queue it is not awaited.
type attempt struct {
	deadline
	id       string
	hold     *hold
	answered bool // struck out
	unknown  bool // settled as unknown; may still be answered
	probe    bool
	releases int64 // the slot's release counter when it was decided
}

// start adds an attempt and returns it.
func (h *hold) start(id string) *attempt {
	a := &h.first
	if h.attempts == nil {
		h.attempts = h.firstRef[:0]
	} else {
		a = new(attempt)
	}
	a.id, a.hold = id, h
	h.attempts = append(h.attempts, a)
	return a
}

// attempt returns the attempt of this id, or nil.
func (h *hold) attempt(id string) *attempt {
	for _, a := range h.attempts {
		if a.id == id {
			return a
		}
	}
	return nil
}

// running returns an attempt that is awaited now, or nil.
func (h *hold) running(now int64) *attempt {
	for _, a := range h.attempts {
		if a.place > 0 && a.at > now {
			return a
		}
	}
	return nil
}

// unanswered reports whether an attempt may still turn out to be booked.
func (h *hold) unanswered() bool {
	for _, a := range h.attempts {
		if !a.answered {
			return true
		}
	}
	return false
}

// adoptable reports whether the request may go on under the hold as if it were the
// one that took it.
func (h *hold) adoptable(d *store.Decide) bool {
	return d.RetryUnknown && !h.unpaid && !h.doubtful && h.scope == d.Scope && h.fingerprint == d.Fingerprint && h.units == d.Units
}

// stands reports whether the hold is booked.
func (h *hold) stands() bool { return h.state == decision.Confirmed || h.state == decision.Pending }

func (h *hold) gone() bool { return h.state == decision.Released || h.state == decision.Lapsed }

// forgetAt is when no copy of a call of this hold can arrive any more.
func (h *hold) forgetAt(now int64) int64 {
	at := now + int64(store.CopyWindow)
	for _, a := range h.attempts {
		if a.place > 0 {
			at = max(at, a.at)
		}
	}
	return at
}

// view is the hold as operators see it.
func (h *hold) view(keepUnknown bool) store.Hold {
	v := store.Hold{ID: h.id, Subject: h.subject, Units: h.units, State: h.state, Reference: h.reference, TakenAt: time.Unix(0, h.taken)}
	if h.state.Open() && !h.kept && !h.unpaid && !(keepUnknown && h.state == decision.HoldUnknown) {
		v.ExpiresAt = time.Unix(0, h.at)
	}
	return v
}
