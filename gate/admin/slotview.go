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
	Source    string     `json:"source"` // config | operator | truth | learned
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
func viewSlot(s *store.Slot) slotView {
	view := slotView{
		Pool: s.Pool, Slot: s.Slot,
		Confirmed: s.Confirmed, Held: s.Held,
		Closed: s.Closed, Full: s.Full > 0, Dirty: s.Dirty,
		Version: s.Version, Inflight: s.Inflight,
		Source:    source(s),
		CheckedAt: orNull(s.CheckedAt),
		OpensAt:   orNull(s.OpensAt),
	}
	if available, known := s.Available(); known && !s.LookFailed {
		view.Capacity, view.Available = &s.Capacity, &available
	}
	view.Holds = make([]holdView, len(s.Holds))
	for i, h := range s.Holds {
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
