package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slotgate/slotgate/cmd/legacybooking/booking"
	"github.com/slotgate/slotgate/cmd/slotgate/e2e/stage"
	"github.com/slotgate/slotgate/gate/testbed"
)

// trafficTime is how long bookings and cancels go on.
func trafficTime() time.Duration {
	if os.Getenv("SLOTGATE_SOAK") != "" {
		return time.Minute
	}
	return 8 * time.Second
}

// openFor is how long a naive backend has a booking between read and write: long enough
// that most looks find some open.
const openFor = 40 * time.Millisecond

// TestCountersFollowTheDatabase: bookings and cancels come through two gates and past
// them at once. Nothing is ever oversold, and at rest the counters are the database's.
//
// Where tables have no constraints, the style holds the row while it decides. The naive
// one has nothing but the gate: for it bookings all come through the gates, for one
// that does not is a race that nobody in front of the backend can see; cancels come
// from everywhere.
func TestCountersFollowTheDatabase(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		tables        func(testing.TB) stage.Tables
		style         booking.Style
		noConstraints bool
	}{
		{"PostgreSQL", stage.PostgresTables, booking.Conditional, false},
		{"MariaDB", stage.MariaDBTables, booking.Conditional, false},
		{"SQLite without constraints", stage.SQLiteTables, booking.Conditional, true},
		{"PostgreSQL, naive and without constraints", stage.PostgresTables, booking.Naive, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			database := c.tables(t)
			o := booking.Options{Database: database.Database, Style: c.style, NoConstraints: c.noConstraints, Lessons: 6, Seats: 10}
			if c.style == booking.Naive {
				o.Delay = openFor
			}
			backend := stage.StartBackend(t, o)
			o.NoConstraints = false // the tables are there
			config := stage.Lessons(backend.URL, stage.RedisStore(testbed.Redis(t).Addr()), ", timeout: 15s",
				database.Remainder("lesson_slot", stage.QuickLooks)+", hold_ttl: 60s, one_per_subject: true", stage.FollowUps)
			run := &traffic{
				t: t, o: o, backend: backend, second: stage.StartBackend(t, o),
				gates: []*stage.Gate{stage.StartGate(t, config), stage.StartGate(t, config)},
			}
			run.bookBehind = c.style != booking.Naive
			run.forAWhile(trafficTime())
			run.rest()
		})
	}
}

// traffic is bookings and cancels of all kinds.
type traffic struct {
	t          *testing.T
	o          booking.Options
	backend    *stage.Backend // behind the gates
	second     *stage.Backend // another writer to the same tables
	gates      []*stage.Gate
	bookBehind bool

	mu      sync.Mutex
	booked  []place
	counted map[string]int
	watched int // looks at the database while it went on
}

// place is a booking that somebody was told of.
type place struct {
	lesson  int
	student string
	id      int64
}

const studentsOfALesson = 30

func (r *traffic) forAWhile(d time.Duration) {
	r.counted = map[string]int{}
	until := time.Now().Add(d)
	var writers, watcher sync.WaitGroup
	for n := range 6 {
		writers.Go(func() {
			random := rand.New(rand.NewPCG(5, uint64(n)))
			for time.Now().Before(until) {
				if n < 4 {
					r.act(random, r.gates[n%2].URL, "gate", true)
				} else {
					r.act(random, []string{r.backend.URL, r.second.URL}[n%2], "behind", r.bookBehind)
				}
			}
		})
	}
	stop := make(chan struct{})
	watcher.Go(func() {
		for {
			r.watch()
			select {
			case <-stop:
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	})
	writers.Wait()
	close(stop)
	watcher.Wait()
}

// act makes one booking or one cancel at base.
func (r *traffic) act(random *rand.Rand, base, way string, books bool) {
	time.Sleep(time.Duration(random.Int64N(int64(5 * time.Millisecond)))) // people think
	if !books || random.IntN(5) < 2 {
		if p, some := r.one(random); some {
			url := fmt.Sprintf("%s/api/bookings/%d", base, p.id)
			if random.IntN(2) == 0 {
				url = fmt.Sprintf("%s/api/lessons/%d/students/%s", base, p.lesson, p.student)
			}
			r.count(way+" cancel", stage.Send("DELETE", url, ""))
		}
		return
	}
	p := place{lesson: random.IntN(r.o.Lessons) + 1, student: fmt.Sprint("s", random.IntN(studentsOfALesson))}
	a := stage.Book(base, p.lesson, p.student)
	r.count(way+" book", a)
	if a.Status != 201 {
		return
	}
	var body struct {
		Data struct {
			ID int64 `json:"booking_id"`
		}
	}
	if err := json.Unmarshal(a.Body, &body); err != nil {
		r.t.Errorf("%v: %v", err, a)
	}
	p.id = body.Data.ID
	r.mu.Lock()
	defer r.mu.Unlock()
	r.booked = append(r.booked, p)
}

// one takes a booking from the list, unless too few are booked to keep lessons full;
// now and then it leaves it there for another.
func (r *traffic) one(random *rand.Rand) (place, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.booked) < r.o.Lessons*r.o.Seats*5/6 {
		return place{}, false
	}
	n := random.IntN(len(r.booked))
	p := r.booked[n]
	if random.IntN(4) > 0 {
		r.booked[n] = r.booked[len(r.booked)-1]
		r.booked = r.booked[:len(r.booked)-1]
	}
	return p, true
}

func (r *traffic) count(what string, a stage.Answer) {
	if a.Err != nil || a.Status >= 500 {
		r.t.Errorf("%s: %v", what, a)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	by := a.Header.Get("Gate-Decision")
	if by == "" || by == "admitted" {
		by = "backend"
	}
	r.counted[fmt.Sprintf("%s %d %s", what, a.Status, by)]++
}

// watch looks for damage in the database.
func (r *traffic) watch() {
	sales, err := r.backend.Sales(r.t.Context())
	if err != nil {
		r.t.Error(err)
		return
	}
	r.watched++
	for _, s := range sales {
		if s.Remain < 0 || s.Remain+s.Seats != int64(r.o.Seats) || s.Students != s.Bookings {
			r.t.Errorf("the database is damaged: %+v of %d seats", s, r.o.Seats)
		}
	}
}

// rest waits until the counters are the database's, and drift is told no more.
func (r *traffic) rest() {
	t := r.t
	equal := stage.Eventually(t, refresh+patience, func() string { return stage.Behind(t, r.gates[0], r.backend) })
	// Drift is told until a look finds none; the next one comes a refresh after that
	// which found the last.
	still := stage.Eventually(t, 2*refresh+patience, func() string {
		for _, g := range r.gates {
			if d := g.Drift(); d != 0 {
				return fmt.Sprintf("drift of %v", d)
			}
		}
		return ""
	})
	r.watch()
	if difference := stage.Behind(t, r.gates[1], r.backend); difference != "" {
		t.Error(difference)
	}
	var applied, failed float64
	for _, g := range r.gates {
		applied += g.Looks("applied")
		failed += g.Looks("failed")
		if n := g.Metric(`slotgate_oversold_units{pool="lessons"}`); n != 0 {
			t.Errorf("%v units oversold by late bookings", n)
		}
	}
	if failed > 0 {
		t.Errorf("%v looks failed", failed)
	}
	for _, what := range []string{"gate book 201", "gate book 409 sold-out", "gate cancel 200", "behind cancel 200"} {
		if r.total(what) < 10 {
			t.Errorf("only %d times %s: this shows nothing", r.total(what), what)
		}
	}
	t.Logf("counters equal after %v, drift 0 %v later; %v looks applied, the database was looked at %d times; %v",
		equal.Round(time.Millisecond), still.Round(time.Millisecond), applied, r.watched, r.counted)
}

func (r *traffic) total(what string) (n int) {
	for name, times := range r.counted {
		if strings.HasPrefix(name, what) {
			n += times
		}
	}
	return n
}
