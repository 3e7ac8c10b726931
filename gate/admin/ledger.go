package admin

import (
	"net/http"
	"time"

	"github.com/slotgate/slotgate/gate/store"
)

// entryView is one transition of a hold. Who has it is told by a hash only: the
// ledger outlives bookings.
type entryView struct {
	ID          string    `json:"id"`
	Time        time.Time `json:"time"`
	Hold        string    `json:"hold"`
	SubjectHash string    `json:"subject_hash"`
	Units       int64     `json:"units"`
	From        string    `json:"from"` // "" for a new hold
	To          string    `json:"to"`
	Cause       string    `json:"cause"`
}

// getLedger shows the newest transitions of a slot, newest first.
func (s *Server) getLedger(w http.ResponseWriter, r *http.Request) {
	q, ok := s.slotInPath(w, r)
	if !ok {
		return
	}
	limit, ok := listLimit(w, r)
	if !ok {
		return
	}
	entries, err := s.slots.Ledger(r.Context(), q.Pool, q.Slot, limit)
	if err == nil && len(entries) == 0 {
		_, err = s.slots.Slot(r.Context(), q) // an operator's setting leaves no entry
	}
	if err != nil {
		failStore(w, err)
		return
	}
	answer(w, http.StatusOK, map[string]any{"entries": viewEntries(entries)})
}

func viewEntries(entries []store.Entry) []entryView {
	views := make([]entryView, len(entries))
	for i, e := range entries {
		views[i] = entryView{e.ID, e.Time.UTC(), e.Hold, e.SubjectHash, e.Units, e.From.String(), e.To.String(), e.Cause}
	}
	return views
}
