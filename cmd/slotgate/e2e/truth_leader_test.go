package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/slotgate/slotgate/cmd/legacybooking/booking"
	"github.com/slotgate/slotgate/gate/testbed"
)

// lease is the longest that a pool is without a leader after one was killed.
const lease = 5 * time.Second

// leaderOf waits until one of two gates leads, and returns it and the other.
func leaderOf(t testing.TB, a, b *gateProcess) (leader, other *gateProcess) {
	t.Helper()
	eventually(t, lease+patience, func() string {
		switch {
		case a.leads():
			leader, other = a, b
		case b.leads():
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
	database := sqliteTables(t)
	backend := startLegacy(t, booking.Options{Database: database.database, Style: booking.Conditional, Lessons: 1, Seats: 100})
	config := lessons(backend.url, redisStore(testbed.Redis(t).Addr()), ", timeout: 15s",
		database.remainder("lesson_slot", quickLooks)+", hold_ttl: 60s", followUps)
	leader, other := leaderOf(t, startGate(t, config), startGate(t, config))
	expect(t, book(other.url, 1, "ann"), 201, "admitted", "booked")
	eventually(t, refresh+patience, func() string {
		if leader.looks("applied") == 0 {
			return "the leader has not looked"
		}
		return ""
	})
	before := other.looks("applied")
	leader.kill()
	killed := time.Now()
	// What comes past the gates is seen by a look and by nothing else.
	if a := book(backend.url, 1, "bob"); a.status != 201 {
		t.Fatal(a)
	}
	eventually(t, lease+time.Second, func() string {
		if !other.leads() {
			return "nobody leads"
		}
		return ""
	})
	led := time.Since(killed)
	eventually(t, lease+refresh+patience, func() string { return behind(t, other, backend) })
	t.Logf("another led after %v, what came past the gates was seen after %v", led.Round(time.Millisecond), time.Since(killed).Round(time.Millisecond))
	if other.looks("applied") == before {
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
	backend := startLegacy(t, booking.Options{Style: booking.Naive, NoConstraints: true, Lessons: 1, Seats: seats})
	held := newHeldReads(backend)
	config := lessons(serve(t, held), redisStore(testbed.Redis(t).Addr()), ", timeout: 15s",
		overHTTP("refresh: 2s, hot: 500ms, lag: 100ms, timeout: 20s, max_rate: 200/s")+", hold_ttl: 60s", followUps)
	leader, other := leaderOf(t, startGate(t, config), startGate(t, config))
	expect(t, book(other.url, 1, "ann"), 201, "admitted", "booked")
	held.arm()
	<-held.read // by the leader: nobody else sweeps, and nothing else needs a look
	if err := leader.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	stopped := time.Now()
	close(held.answer)
	for n := range seats - 1 {
		if a := book(backend.url, 1, fmt.Sprint("early", n)); a.status != 201 {
			t.Fatal(a)
		}
	}
	eventually(t, lease+time.Second, func() string {
		if !other.leads() {
			return "nobody else leads"
		}
		return ""
	})
	led := time.Since(stopped)
	// The stopped look has the slot's lease until the source's time-out: an operator's
	// look does not wait for it.
	expect(t, send("POST", other.admin+"/v1/slots/lessons/1/resync", ""), 200, "", "")
	if n := other.available(1); n != 0 {
		t.Fatalf("%d available by the other's look", n)
	}
	if err := leader.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	resumed := time.Now()
	late := ""
	eventually(t, patience, func() string {
		if n := other.available(1); n != 0 {
			t.Fatalf("%d available after the leader went on", n)
		}
		if leader.leads() {
			return "the first has not noticed"
		}
		late = fmt.Sprint(leader.looks("refused"), " looks of it refused")
		return ""
	})
	noticed := time.Since(resumed)
	for _, g := range []*gateProcess{leader, other} {
		expect(t, book(g.url, 1, "late"), 409, "sold-out", "")
	}
	for until := time.Now().Add(refresh); time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
		if n := other.available(1); n != 0 {
			t.Fatalf("%d available later", n)
		}
	}
	if difference := behind(t, leader, backend); difference != "" {
		t.Error(difference)
	}
	if n := backend.sales(t)[0].Bookings; n != seats {
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

func newHeldReads(backend *legacy) *heldReads {
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
	database := sqliteTables(t)
	o := booking.Options{Database: database.database, Style: booking.Naive, NoConstraints: true, Delay: openFor, Lessons: 6, Seats: 10}
	backend := startLegacy(t, o)
	config := lessons(backend.url, redisStore(testbed.Redis(t).Addr()), ", timeout: 15s",
		database.remainder("lesson_slot", quickLooks)+", hold_ttl: 60s, one_per_subject: true", followUps)
	gates := []*gateProcess{startGate(t, config), startGate(t, config)}
	leader, other := leaderOf(t, gates[0], gates[1])
	run := &traffic{t: t, o: o, backend: backend, second: backend, gates: gates}
	changed := make(chan string, 1)
	go func() {
		began := time.Now()
		_ = leader.cmd.Process.Signal(syscall.SIGSTOP)
		for !other.leads() && time.Since(began) < lease+patience {
			time.Sleep(10 * time.Millisecond)
		}
		led := time.Since(began)
		_ = leader.cmd.Process.Signal(syscall.SIGCONT)
		changed <- fmt.Sprintf("the other led %v after the stop", led.Round(time.Millisecond))
	}()
	run.forAWhile(trafficTime())
	t.Log(<-changed)
	if leader.leads() || !other.leads() {
		t.Error("the lead has not changed")
	}
	run.rest()
}
