package admin

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/slotgate/slotgate/gate/store"
)

const (
	defaultListLimit = 100
	maxListLimit     = 10_000
	listedHolds      = 100       // of each slot
	maxCapacity      = 1<<53 - 1 // exact in every JSON reader and in Lua
)

// listSlots pages through a pool: cursor "" starts and ends. A slot that moves
// in the store meanwhile may be listed twice.
func (s *Server) listSlots(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	pool := query.Get("pool")
	if pool == "" {
		fail(w, http.StatusBadRequest, "say which pool: ?pool=NAME; pools are "+strings.Join(s.gate.Pools(), ", "))
		return
	}
	q, ok := s.gate.Query(pool, "")
	if !ok {
		s.noPool(w, pool)
		return
	}
	limit, ok := listLimit(w, r)
	if !ok {
		return
	}
	page := struct {
		Slots  []slotView `json:"slots"`
		Cursor string     `json:"cursor"`
	}{[]slotView{}, query.Get("cursor")}
	q.Holds = listedHolds
	// A store answers in pages of its own size.
	for {
		slots, cursor, err := s.slots.Slots(r.Context(), q, page.Cursor, limit-len(page.Slots))
		if err != nil {
			failStore(w, err)
			return
		}
		for i := range slots {
			page.Slots = append(page.Slots, s.viewSlot(&slots[i]))
		}
		page.Cursor = cursor
		if cursor == "" || len(page.Slots) >= limit {
			break
		}
	}
	answer(w, http.StatusOK, page)
}

// listLimit is how many things the caller wants. If it reports false, it has
// answered.
func listLimit(w http.ResponseWriter, r *http.Request) (int, bool) {
	text := r.URL.Query().Get("limit")
	if text == "" {
		return defaultListLimit, true
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxListLimit {
		fail(w, http.StatusBadRequest, fmt.Sprintf("limit must be a whole number from 1 to %d", maxListLimit))
		return 0, false
	}
	return n, true
}

func (s *Server) getSlot(w http.ResponseWriter, r *http.Request) {
	q, ok := s.slotInPath(w, r)
	if !ok {
		return
	}
	slot, err := s.slots.Slot(r.Context(), q)
	if err != nil {
		failStore(w, err)
		return
	}
	answer(w, http.StatusOK, s.viewSlot(&slot))
}

// putSlot changes what the body names and answers with the slot as it is then. A
// slot that was never seen is created.
func (s *Server) putSlot(w http.ResponseWriter, r *http.Request) {
	q, ok := s.slotInPath(w, r)
	if !ok {
		return
	}
	var body slotBody
	if !readBody(w, r, &body) {
		return
	}
	change, err := body.change()
	if err != nil {
		fail(w, http.StatusBadRequest, err.Error())
		return
	}
	if change.Capacity != nil && q.Truth != store.NoTruth {
		fail(w, http.StatusConflict, fmt.Sprintf("pool %s takes its capacity from truth: change it in the backend, then POST …/resync", clip(q.Pool)))
		return
	}
	slot, err := s.slots.Change(r.Context(), q, change)
	if err != nil {
		failStore(w, err)
		return
	}
	s.log.Info("slot changed by operator", "pool", q.Pool, "slot", q.Slot, "change", body.String(), "remote", r.RemoteAddr)
	answer(w, http.StatusOK, s.viewSlot(&slot))
}

// resyncSlot looks at the slot's truth where the pool has a source. Elsewhere it
// takes the operator's word that the slot's counters are right: it is learned and
// marked full no longer and has its configured number of units. A slot that was never
// seen is created.
func (s *Server) resyncSlot(w http.ResponseWriter, r *http.Request) {
	q, ok := s.slotInPath(w, r)
	if !ok {
		return
	}
	var slot store.Slot
	var err error
	if q.Truth != store.NoTruth && s.truth != nil {
		if err = s.truth.Resync(r.Context(), q.Pool, q.Slot); err != nil {
			failTruth(w, err)
			return
		}
		slot, err = s.slots.Slot(r.Context(), q)
	} else {
		slot, err = s.slots.Change(r.Context(), q, store.SlotChange{ClearCapacity: true, Verify: true})
	}
	if err != nil {
		failStore(w, err)
		return
	}
	s.log.Info("slot resynced by operator", "pool", q.Pool, "slot", q.Slot, "remote", r.RemoteAddr)
	answer(w, http.StatusOK, s.viewSlot(&slot))
}

// deleteHold frees a hold, a confirmed one too, on the operator's word.
func (s *Server) deleteHold(w http.ResponseWriter, r *http.Request) {
	q, ok := s.slotInPath(w, r)
	if !ok {
		return
	}
	hold := r.PathValue("hold")
	was, err := s.slots.Release(r.Context(), q, hold)
	if err != nil {
		failStore(w, err)
		return
	}
	s.log.Info("hold released by operator", "pool", q.Pool, "slot", q.Slot, "hold", hold, "was", was.String(), "remote", r.RemoteAddr)
	answer(w, http.StatusOK, map[string]string{"hold": hold, "was": was.String(), "state": "released"})
}

// slotInPath resolves {pool} and {slot}. If it reports false, it has answered.
func (s *Server) slotInPath(w http.ResponseWriter, r *http.Request) (store.SlotQuery, bool) {
	pool, slot := r.PathValue("pool"), r.PathValue("slot")
	if len(slot) > maxSlotName {
		fail(w, http.StatusBadRequest, fmt.Sprintf("a slot is at most %d bytes", maxSlotName))
		return store.SlotQuery{}, false
	}
	q, ok := s.gate.Query(pool, slot)
	if !ok {
		s.noPool(w, pool)
	}
	return q, ok
}

func (s *Server) noPool(w http.ResponseWriter, pool string) {
	fail(w, http.StatusNotFound, fmt.Sprintf("there is no pool %q; pools are %s", clip(pool), strings.Join(s.gate.Pools(), ", ")))
}

var errOpensAt = errors.New(`"opens_at" must be a time such as "2030-09-01T10:00:00+02:00" (RFC 3339), or null for the pool's own`)

// slotBody keeps members as text, to tell an absent one from null.
type slotBody struct {
	Capacity jsontext.Value `json:"capacity"`
	Closed   jsontext.Value `json:"closed"`
	OpensAt  jsontext.Value `json:"opens_at"`
}

// String is the body as the log shows it.
func (b *slotBody) String() string {
	var parts []string
	for _, member := range []struct {
		name  string
		value jsontext.Value
	}{{"capacity", b.Capacity}, {"closed", b.Closed}, {"opens_at", b.OpensAt}} {
		if member.value != nil {
			parts = append(parts, member.name+"="+member.value.String())
		}
	}
	return strings.Join(parts, " ")
}

func (b *slotBody) change() (store.SlotChange, error) {
	var c store.SlotChange
	if b.Capacity == nil && b.Closed == nil && b.OpensAt == nil {
		return c, errors.New(`nothing to change: send "capacity", "closed" or "opens_at"`)
	}
	switch {
	case b.Capacity == nil:
	case b.Capacity.Kind() == 'n':
		c.ClearCapacity = true
	default:
		n := new(int64)
		if err := json.Unmarshal(b.Capacity, n); err != nil || *n < 0 || *n > maxCapacity {
			return c, fmt.Errorf(`"capacity" must be a whole number from 0 to %d, or null for the pool's own`, int64(maxCapacity))
		}
		c.Capacity = n
	}
	if b.Closed != nil {
		switch b.Closed.Kind() {
		case 't', 'f':
			closed := b.Closed.Kind() == 't'
			c.Closed = &closed
		default:
			return c, errors.New(`"closed" must be true or false`)
		}
	}
	if b.OpensAt != nil {
		c.OpensAt = new(time.Time)
		if b.OpensAt.Kind() != 'n' {
			var text string
			if err := json.Unmarshal(b.OpensAt, &text); err != nil {
				return c, errOpensAt
			}
			t, err := time.Parse(time.RFC3339, text)
			if year := t.UTC().Year(); err != nil || year < 1970 || year > 9999 {
				return c, errOpensAt // also what neither JSON nor the store can hold
			}
			c.OpensAt = &t
		}
	}
	return c, nil
}
