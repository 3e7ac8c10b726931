package faults

import (
	"cmp"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/slotgate/slotgate/cmd/slotgate/e2e/stage"
	"github.com/slotgate/slotgate/gate/testbed"
)

// cell is one fault in one topology, and what is expected of it beyond what holds in
// every cell:
//
//   - no 500, nothing of one principal shown to another
//   - with the backend's constraints: nothing oversold, no student twice
//   - without, under reject: the same
//   - without, under local: at most the declared bound oversold, and no student twice
//     but by passing through two gates that could not ask each other
//   - what a student was told to have is confirmed in the store, also in one that has
//     lost its data meanwhile: gates tell it their last seconds again
//   - under pass, no request fails for a fault of the store
type cell struct {
	fault    string
	topology string
	options  []testbed.Option // of the topology
	timeout  time.Duration    // of the store; 0: limits knows
	lasts    time.Duration    // of the sale; 0: brief
	strike   func(*scene)     // the fault, begun and ended, in the midst of the sale

	backend bool                                    // the fault is the backend's, or a gate's: requests fail under pass too
	outage  func(*scene) time.Duration              // most that clients may see under reject; nil: no promise
	mustSee func(*scene, map[string]*result) string // what shows that the fault struck; "" if it did
}

const brief = 3 * time.Second

// scene is a cell being played.
type scene struct {
	*hall
	cell     *cell
	place    *place
	sale     *sale
	struckAt time.Time
	detected time.Duration // until the others called a server down and had another lead
	count    int           // how often a fault of many parts struck
}

// midst waits until enough of the crowd has come, and calls this the moment at which
// the fault strikes.
func (s *scene) midst() {
	<-s.sale.midst
	s.struckAt = time.Now()
}

// pause lets a fault last.
func (s *scene) pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	<-timer.C
}

// TestMatrix plays every cell where the table is asked for, and under SLOTGATE_SOAK; else
// all but those whose outage is measured against time, which a busy machine does not have.
func TestMatrix(t *testing.T) {
	everywhere := os.Getenv("SLOTGATE_TABLE") != "" || os.Getenv("SLOTGATE_SOAK") != ""
	var sheet sheet
	row := 0
	t.Run("cells", func(t *testing.T) {
		for _, cells := range [][]cell{
			standaloneCells, storeCells(standalone),
			storeCells(sentinel), failoverCells(sentinel),
			storeCells(cluster), failoverCells(cluster), clusterCells,
			backendCells, gateCells,
		} {
			for _, c := range cells {
				if row++; c.outage != nil && !everywhere {
					continue
				}
				row := row // of this cell
				t.Run(c.fault+"/"+c.topology, func(t *testing.T) {
					t.Parallel()
					c.play(t, &sheet, row)
				})
			}
		}
	})
	if file := os.Getenv("SLOTGATE_TABLE"); file != "" {
		if err := os.WriteFile(file, []byte(sheet.markdown()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func (c *cell) play(t *testing.T, sheet *sheet, row int) {
	s := &scene{cell: c, place: openPlace(t, c.topology, c.options...)}
	s.hall = openHall(t, s.place.topology, c.limits())
	var wait func() []told
	s.sale, wait = s.open(time.Duration(size()) * cmp.Or(c.lasts, brief))
	c.strike(s)
	all := wait()
	s.rest()
	counts := told.away
	if c.backend {
		counts = told.failed
	}
	results := s.measure(all, counts, s.struckAt)
	for _, pool := range pools {
		t.Logf("%s: %v", pool, results[pool])
	}
	if s.detected != 0 {
		t.Logf("detected and agreed within %v", s.detected.Round(time.Millisecond))
	}
	t.Logf("students came up to %v late", s.sale.late.Round(time.Millisecond))
	for _, theft := range stolen(all) {
		t.Error(theft)
	}
	s.judge(results)
	s.converge()
	sheet.add(row, s, results)
}

// limits are the time-outs of a cell. On a cluster one decision is several calls.
func (c *cell) limits() timeouts {
	switch {
	case c.backend:
		return timeouts{store: 5 * time.Second, upstream: 1500 * time.Millisecond}
	case c.topology == cluster && c.outage == nil:
		return timeouts{store: cmp.Or(c.timeout, 2*time.Second), upstream: 4 * time.Second}
	default:
		return timeouts{store: cmp.Or(c.timeout, time.Second), upstream: 4 * time.Second}
	}
}

// judge holds the results against what is promised.
func (s *scene) judge(results map[string]*result) {
	c := s.cell
	for _, pool := range pools {
		r := results[pool]
		if r.errors != 0 {
			s.t.Errorf("%s: %d answers were 500", pool, r.errors)
		}
		if r.lost != 0 {
			s.t.Errorf("%s: the store lost %d bookings that students were told of", pool, r.lost)
		}
	}
	if results[pass].sold == 0 {
		s.t.Error("nothing was sold")
	}
	if r := results[pass]; r.oversold != 0 || r.twice != 0 {
		s.t.Errorf("with constraints %d were oversold and %d students have a lesson twice", r.oversold, r.twice)
	} else if !c.backend && r.away != 0 {
		s.t.Errorf("under pass %d requests failed", r.away)
	}
	if r := results[reject]; r.oversold != 0 || r.twice != 0 {
		s.t.Errorf("under reject %d were oversold and %d students have a lesson twice", r.oversold, r.twice)
	} else if c.outage != nil {
		if most := c.outage(s); r.outage > most {
			s.t.Errorf("under reject clients saw an outage of %v, want at most %v", r.outage, most)
		}
	}
	if r := results[local]; int64(r.oversold) > r.bound {
		s.t.Errorf("under local %d were oversold, declared were %d", r.oversold, r.bound)
	} else if r.twice > r.passed {
		s.t.Errorf("under local %d students have a lesson twice, and %d requests passed through", r.twice, r.passed)
	}
	if c.mustSee != nil {
		if missing := c.mustSee(s, results); missing != "" {
			s.t.Errorf("the fault did not strike: %s", missing)
		}
	}
}

// patience is what a step may take on a busy machine beyond what is promised.
const patience = 5 * time.Second

// converge waits until the counters are what truth says, less what is unknown. A slot
// that the store does not know any more is read when somebody asks for it.
func (s *scene) converge() {
	s.t.Helper()
	late := 0
	stage.Eventually(s.t, s.holdTTL+2*refresh+patience, func() string {
		for _, pool := range []string{reject, local} {
			sales, err := s.backend[pool].Sales(s.t.Context())
			if err != nil {
				return err.Error()
			}
			for _, sale := range sales {
				slot, answer := s.gate(0).Read(pool, strconv.FormatInt(sale.Lesson, 10))
				if slot.Available == nil {
					late++
					s.sale.ask(0, order{pool: pool, lesson: int(sale.Lesson), student: fmt.Sprint("late-", late), key: fmt.Sprint("key-0123456789abcdef-late-", late)})
				}
				want := max(0, sale.Remain-slot.Held)
				if slot.Available == nil || *slot.Available != want {
					return fmt.Sprintf("%s lesson %d has %d left, its slot says %d %v", pool, sale.Lesson, sale.Remain, answer.Status, slot)
				}
			}
		}
		return ""
	})
}
