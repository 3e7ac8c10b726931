package dashboard

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"testing"
	"time"
)

// scenes are how many the driver plays.
const scenes = 24

func TestDashboard(t *testing.T) {
	h := openHall(t)
	ctx, cancel := context.WithTimeout(t.Context(), 12*time.Minute)
	defer cancel()
	var compared bool
	steps := drive(ctx, t, map[string]any{
		"admin": h.admin, "url": h.url, "backend": h.backend.URL, "token": token, "seats": seats, "screenshots": screenshots(t),
	}, func(ask string, value json.RawMessage) any {
		switch ask {
		case "storm":
			h.storm()
		case "storm over":
			return h.ended().Answered
		case "compare":
			compared = true
			h.compare(value)
		case "store away":
			h.redis.Kill()
		case "store back":
			h.redis.Restart()
		default:
			t.Errorf("the driver asks for %q", ask)
		}
		return nil
	})
	if len(steps) != scenes || !compared {
		t.Errorf("%d scenes (compared %v), want %d: %q", len(steps), compared, scenes, steps)
	}
}

// compare holds what the page shows once the storm is over against what its clients were
// told and what the database has.
func (h *hall) compare(value json.RawMessage) {
	h.t.Helper()
	var page struct {
		Decisions          map[string]int
		Lessons, Workshops []struct {
			Slot                                 string
			Capacity, Available, Confirmed, Held int64
		}
	}
	if err := json.Unmarshal(value, &page); err != nil {
		h.t.Fatal(err)
	}
	if !maps.Equal(page.Decisions, h.report.Decisions) {
		h.t.Errorf("the page counts %v, the clients %v", page.Decisions, h.report.Decisions)
	}
	for _, decision := range []string{"admitted", "replayed", "sold-out", "duplicate", "closed"} {
		if page.Decisions[decision] == 0 {
			h.t.Errorf("no request of the storm was %s", decision)
		}
	}
	sales := h.backend.Counts(h.t)
	if len(page.Lessons) != counted || len(page.Workshops) != len(sales)-counted {
		h.t.Fatalf("the page has %d lessons and %d workshops, the database %d in all", len(page.Lessons), len(page.Workshops), len(sales))
	}
	for i, slot := range slices.Concat(page.Lessons, page.Workshops) {
		sale := sales[i]
		booked := seats - sale.Remain
		if slot.Confirmed != booked || slot.Held != 0 || slot.Available != slot.Capacity-booked || slot.Available < 0 {
			h.t.Errorf("the page says of slot %s %+v, the database has sold %d of %d", slot.Slot, slot, booked, seats)
		}
	}
	if open := page.Workshops[0]; open.Available != sales[counted].Remain {
		h.t.Errorf("%d workshops left by the page, %d by the database", open.Available, sales[counted].Remain)
	}
}
