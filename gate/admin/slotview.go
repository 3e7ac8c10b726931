package admin

import (
	"time"

	"github.com/slotgate/slotgate/gate/store"
)

// slotView is a slot in the API. Capacity and Available are null when not known, and
// while truth does not tell: the store then goes on by what it knew, but only to refuse.
// CheckedAt while truth has not been asked, Holds in a list.
type slotView struct {
	Pool      string     `json:"pool"`
	Slot      string     `json:"slot"`
	Capacity  *int64     `json:"capacity"`
	Confirmed int64      `json:"confirmed"`
	Held      int64      `json:"held"`
	Available *int64     `json:"available"`
	Closed    bool       `json:"closed"`
	Full      bool       `json:"full"`
	Dirty     bool       `json:"dirty"`
	Version   int64      `json:"version"`
	Inflight  int        `json:"inflight"`
	Waiting   int        `json:"waiting"`  // requests in this gate's queue
	Rejected  int64      `json:"rejected"` // by this gate itself, see gate.Demand
	Source    string     `json:"source"`   // config | operator | truth | learned
	CheckedAt *time.Time `json:"checked_at"`
	OpensAt   *time.Time `json:"opens_at"`
	Holds     []holdView `json:"holds"`
}

type holdView struct {
	ID        string     `json:"id"`
	Subject   string     `json:"subject"`
	Units     int64      `json:"units"`
	State     string     `json:"state"`
	Reference string     `json:"reference"`
	ExpiresAt *time.Time `json:"expires_at"`
}

// viewSlot shows a slot as the admin API's lists and reads do.
func (s *Server) viewSlot(slot *store.Slot) slotView {
	demand := s.gate.Demand(slot.Pool, slot.Slot)
	view := slotView{
		Pool: slot.Pool, Slot: slot.Slot,
		Confirmed: slot.Confirmed, Held: slot.Held,
		Closed: slot.Closed, Full: slot.Full > 0, Dirty: slot.Dirty,
		Version: slot.Version, Inflight: slot.Inflight,
		Waiting: demand.Waiting, Rejected: demand.Rejected,
		Source:    source(slot),
		CheckedAt: orNull(slot.CheckedAt),
		OpensAt:   orNull(slot.OpensAt),
	}
	if available, known := slot.Available(); known && !slot.LookFailed {
		view.Capacity, view.Available = &slot.Capacity, &available
	}
	view.Holds = make([]holdView, len(slot.Holds))
	for i, h := range slot.Holds {
		view.Holds[i] = holdView{h.ID, h.Subject, h.Units, h.State.String(), h.Reference, orNull(h.ExpiresAt)}
	}
	return view
}

// source tells where the slot's capacity comes from.
func source(s *store.Slot) string {
	switch {
	case s.Capacity == store.Learned, s.LookFailed:
		return "learned"
	case s.Own:
		return "operator"
	case !s.CheckedAt.IsZero():
		return "truth"
	}
	return "config"
}

func orNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}
