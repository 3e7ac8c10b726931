package stage

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Slot is a slot as operators see it.
type Slot struct {
	Capacity, Available *int64
	Confirmed, Held     int64
	Full, Closed, Dirty bool
	Source              string
	Holds               []struct{ ID, Subject, State, Reference string }
}

func (s Slot) String() string {
	number := func(n *int64) string {
		if n == nil {
			return "null"
		}
		return strconv.FormatInt(*n, 10)
	}
	return fmt.Sprintf("capacity %s, available %s, confirmed %d, held %d, full %v, source %q",
		number(s.Capacity), number(s.Available), s.Confirmed, s.Held, s.Full, s.Source)
}

// Lesson reads a slot of the pool lessons; found is false while the store has none.
func (g *Gate) Lesson(lesson int64) (view Slot, found bool) {
	g.t.Helper()
	return g.Find("lessons", strconv.FormatInt(lesson, 10))
}

// Slot reads a slot that the store must have.
func (g *Gate) Slot(pool, slot string) Slot {
	g.t.Helper()
	view, found := g.Find(pool, slot)
	if !found {
		g.t.Fatalf("no slot %s/%s", pool, slot)
	}
	return view
}

// Find reads a slot; found is false while the store has none.
func (g *Gate) Find(pool, slot string) (view Slot, found bool) {
	g.t.Helper()
	view, a := g.Read(pool, slot)
	if a.Status != http.StatusOK && a.Status != http.StatusNotFound {
		g.t.Fatalf("slot %s/%s: %v", pool, slot, a)
	}
	return view, a.Status == http.StatusOK
}

// Read reads a slot, whose view is empty unless the answer is 200.
func (g *Gate) Read(pool, slot string) (view Slot, a Answer) {
	g.t.Helper()
	a = Send("GET", g.Admin+"/v1/slots/"+pool+"/"+slot, "")
	if a.Status == http.StatusOK {
		if err := json.Unmarshal(a.Body, &view); err != nil {
			g.t.Fatalf("slot %s/%s: %v in %s", pool, slot, err, a.Body)
		}
	}
	return view, a
}

// Available is the units that a slot has left by its counters, -1 while that is not
// known.
func (g *Gate) Available(lesson int64) int64 {
	g.t.Helper()
	if s, found := g.Lesson(lesson); found && s.Available != nil {
		return *s.Available
	}
	return -1
}

// Settled is the confirmed units of a slot once nothing waits to be settled and
// nothing of the slot is open.
func (g *Gate) Settled(pool, slot string) int64 {
	g.t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		status := Send("GET", g.Admin+"/v1/status", "")
		seen := Send("GET", g.Admin+"/v1/slots/"+pool+"/"+slot, "")
		if bytes.Contains(status.Body, []byte(`"settle_backlog":0`)) && !status.Degraded(g.t) && seen.Status == 200 {
			if s := g.Slot(pool, slot); s.Held == 0 {
				return s.Confirmed
			}
		}
		if time.Now().After(deadline) {
			g.t.Fatalf("slot %s/%s does not come to rest: %v, %v", pool, slot, status, seen)
		}
	}
}

// NormalAgain waits until a gate decides by its store again and returns how long
// that took.
func NormalAgain(t testing.TB, gates ...*Gate) time.Duration {
	t.Helper()
	began := time.Now()
	for _, g := range gates {
		for Send("GET", g.Admin+"/v1/status", "").Degraded(t) {
			if time.Since(began) > 15*time.Second {
				t.Fatal("still degraded")
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	return time.Since(began)
}

// Degraded reads the answer of /v1/status.
func (a Answer) Degraded(t testing.TB) bool {
	t.Helper()
	if a.Status != 200 {
		t.Fatalf("status: %v", a)
	}
	return bytes.Contains(a.Body, []byte(`"mode":"degraded"`))
}

// Behind tells where a gate's counters and the database differ; "" where nowhere.
func Behind(t testing.TB, g *Gate, backend *Backend) string {
	t.Helper()
	for _, sale := range backend.Counts(t) {
		slot, found := g.Lesson(sale.Lesson)
		if !found || slot.Available == nil || *slot.Available != sale.Remain || slot.Held != 0 {
			return fmt.Sprintf("lesson %d has %d left, its slot says (found %v) %v", sale.Lesson, sale.Remain, found, slot)
		}
	}
	return ""
}

// Metric is the value of one series, with its labels in order of their names.
func (g *Gate) Metric(series string) float64 {
	g.t.Helper()
	resp, err := http.Get(g.Admin + "/metrics")
	if err != nil {
		g.t.Fatal(err)
	}
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if text, found := strings.CutPrefix(lines.Text(), series+" "); found {
			value, err := strconv.ParseFloat(text, 64)
			if err != nil {
				g.t.Fatal(err)
			}
			return value
		}
	}
	g.t.Fatalf("no series %s", series)
	return 0
}

// Drift is what looks had to change, in units.
func (g *Gate) Drift() float64 { return g.Metric(`slotgate_drift_units{pool="lessons"}`) }

// Looks counts the looks with one result: applied, failed, missing or refused.
func (g *Gate) Looks(result string) float64 {
	return g.Metric(`slotgate_looks_total{pool="lessons",result="` + result + `"}`)
}
