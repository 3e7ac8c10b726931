package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/slotgate/slotgate/cmd/legacybooking/booking"
	"github.com/slotgate/slotgate/cmd/slotgate/e2e/stage"
	"github.com/slotgate/slotgate/gate/testbed"
)

// lease is the longest that a pool is without a leader after one was killed.
const lease = 5 * time.Second

// leaderOf waits until one of two gates leads, and returns it and the other.
func leaderOf(t testing.TB, a, b *stage.Gate) (leader, other *stage.Gate) {
	t.Helper()
	stage.Eventually(t, lease+patience, func() string {
		switch {
		case a.Leads():
			leader, other = a, b
		case b.Leads():
			leader, other = b, a
		default:
			return "no gate leads"
		}
		return ""
	})
	return leader, other
}

// TestTheLeaderIsKilled: the other gate goes on with the looks within one lease.
func TestTheLeaderIsKilled(t *testing.T) {
	t.Parallel()
	database := stage.SQLiteTables(t)
	backend := stage.StartBackend(t, booking.Options{Database: database.Database, Style: booking.Conditional, Lessons: 1, Seats: 100})
	config := stage.Lessons(backend.URL, stage.RedisStore(testbed.Redis(t).Addr()), ", timeout: 15s",
		database.Remainder("lesson_slot", stage.QuickLooks)+", hold_ttl: 60s", stage.FollowUps)
	leader, other := leaderOf(t, stage.StartGate(t, config), stage.StartGate(t, config))
	stage.Expect(t, stage.Book(other.URL, 1, "ann"), 201, "admitted", "booked")
	stage.Eventually(t, refresh+patience, func() string {
		if leader.Looks("applied") == 0 {
			return "the leader has not looked"
		}
		return ""
	})
	before := other.Looks("applied")
	leader.Kill()
	killed := time.Now()
	// What comes past the gates is seen by a look and by nothing else.
	if a := stage.Book(backend.URL, 1, "bob"); a.Status != 201 {
		t.Fatal(a)
	}
	stage.Eventually(t, lease+time.Second, func() string {
		if !other.Leads() {
			return "nobody leads"
		}
		return ""
	})
	led := time.Since(killed)
	stage.Eventually(t, lease+refresh+patience, func() string { return stage.Behind(t, other, backend) })
	t.Logf("another led after %v, what came past the gates was seen after %v", led.Round(time.Millisecond), time.Since(killed).Round(time.Millisecond))
	if other.Looks("applied") == before {
		t.Error("the other gate has not looked")
	}
}

// TestTheLeaderStandsStillPastItsLease: it has read what is left and is stopped before
// it can say so. Meanwhile the other gate leads, and the rest is sold past both. What
// the first then comes with must not bring a unit back. The backend is naive and without
// constraints.
func TestTheLeaderStandsStillPastItsLease(t *testing.T) {
	t.Parallel()
	const seats = 5
	backend := stage.StartBackend(t, booking.Options{Style: booking.Naive, NoConstraints: true, Lessons: 1, Seats: seats})
	held := newHeldReads(backend)
	config := stage.Lessons(stage.Serve(t, held), stage.RedisStore(testbed.Redis(t).Addr()), ", timeout: 15s",
		stage.OverHTTP("refresh: 2s, hot: 500ms, lag: 100ms, timeout: 20s, max_rate: 200/s")+", hold_ttl: 60s", stage.FollowUps)
	leader, other := leaderOf(t, stage.StartGate(t, config), stage.StartGate(t, config))
	stage.Expect(t, stage.Book(other.URL, 1, "ann"), 201, "admitted", "booked")
	held.arm()
	<-held.read // by the leader: nobody else sweeps, and nothing else needs a look
	if err := leader.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	stopped := time.Now()
	close(held.answer)
	for n := range seats - 1 {
		if a := stage.Book(backend.URL, 1, fmt.Sprint("early", n)); a.Status != 201 {
			t.Fatal(a)
		}
	}
	stage.Eventually(t, lease+time.Second, func() string {
		if !other.Leads() {
			return "nobody else leads"
		}
		return ""
	})
	led := time.Since(stopped)
	// The stopped look has the slot's lease until the source's time-out: an operator's
	// look does not wait for it.
	stage.Expect(t, stage.Send("POST", other.Admin+"/v1/slots/lessons/1/resync", ""), 200, "", "")
	if n := other.Available(1); n != 0 {
		t.Fatalf("%d available by the other's look", n)
	}
	if err := leader.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	resumed := time.Now()
	late := ""
	stage.Eventually(t, patience, func() string {
		if n := other.Available(1); n != 0 {
			t.Fatalf("%d available after the leader went on", n)
		}
		if leader.Leads() {
			return "the first has not noticed"
		}
		late = fmt.Sprint(leader.Looks("refused"), " looks of it refused")
		return ""
	})
	noticed := time.Since(resumed)
	for _, g := range []*stage.Gate{leader, other} {
		stage.Expect(t, stage.Book(g.URL, 1, "late"), 409, "sold-out", "")
	}
	for until := time.Now().Add(refresh); time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
		if n := other.Available(1); n != 0 {
			t.Fatalf("%d available later", n)
		}
	}
	if difference := stage.Behind(t, leader, backend); difference != "" {
		t.Error(difference)
	}
	if n := backend.Counts(t)[0].Bookings; n != seats {
		t.Errorf("%d bookings", n)
	}
	t.Logf("the other led %v after the stop; the first noticed %v after it went on, %s", led.Round(time.Millisecond), noticed.Round(time.Millisecond), late)
}

// heldReads holds up one answer to a read of a lesson.
type heldReads struct {
	backend http.Handler
	armed   chan struct{}
	read    chan struct{} // has a value once the backend has read
	answer  chan struct{} // closed: let it go
}

func newHeldReads(backend *stage.Backend) *heldReads {
	return &heldReads{backend: backend, armed: make(chan struct{}, 1), read: make(chan struct{}, 1), answer: make(chan struct{})}
}

func (h *heldReads) arm() { h.armed <- struct{}{} }

func (h *heldReads) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, "/api/lessons/") {
		select {
		case <-h.armed:
			w = &lateAnswer{w, h}
		default:
		}
	}
	h.backend.ServeHTTP(w, r)
}

// lateAnswer gives its status and body only when told to.
type lateAnswer struct {
	http.ResponseWriter
	held *heldReads
}

func (a *lateAnswer) WriteHeader(status int) {
	a.held.read <- struct{}{}
	<-a.held.answer
	a.ResponseWriter.WriteHeader(status)
}

// TestTrafficWhileTheLeadChanges: the leader is stopped past its lease, and goes on
// later, while bookings come through both gates. The backend is naive and without
// constraints.
func TestTrafficWhileTheLeadChanges(t *testing.T) {
	t.Parallel()
	database := stage.SQLiteTables(t)
	o := booking.Options{Database: database.Database, Style: booking.Naive, NoConstraints: true, Delay: openFor, Lessons: 6, Seats: 10}
	backend := stage.StartBackend(t, o)
	config := stage.Lessons(backend.URL, stage.RedisStore(testbed.Redis(t).Addr()), ", timeout: 15s",
		database.Remainder("lesson_slot", stage.QuickLooks)+", hold_ttl: 60s, one_per_subject: true", stage.FollowUps)
	gates := []*stage.Gate{stage.StartGate(t, config), stage.StartGate(t, config)}
	leader, other := leaderOf(t, gates[0], gates[1])
	run := &traffic{t: t, o: o, backend: backend, second: backend, gates: gates}
	changed := make(chan string, 1)
	go func() {
		began := time.Now()
		_ = leader.Signal(syscall.SIGSTOP)
		for !other.Leads() && time.Since(began) < lease+patience {
			time.Sleep(10 * time.Millisecond)
		}
		led := time.Since(began)
		_ = leader.Signal(syscall.SIGCONT)
		changed <- fmt.Sprintf("the other led %v after the stop", led.Round(time.Millisecond))
	}()
	run.forAWhile(trafficTime())
	t.Log(<-changed)
	if leader.Leads() || !other.Leads() {
		t.Error("the lead has not changed")
	}
	run.rest()
}
