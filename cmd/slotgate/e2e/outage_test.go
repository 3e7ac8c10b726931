package e2e

import (
	"bytes"
	"fmt"
	"net"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slotgate/slotgate/cmd/legacybooking/booking"
	"github.com/slotgate/slotgate/gate/storm"
	"github.com/slotgate/slotgate/gate/testbed"
)

const openPass = "    passthrough: { slot: { rate: 1000/s, burst: 1000 }, rule: { rate: 5000/s, burst: 5000 }, max_inflight: 256 }\n"

// sale is a crowd at its own pace, so that an outage falls into the middle of it.
func sale(t testing.TB, targets []string, lessons, requests int, perSecond float64) (wait func() (*storm.Report, *seen)) {
	t.Helper()
	s := &seen{}
	o := storm.Options{
		Header:  []string{"Authorization: Bearer {subject}", "Content-Type: application/json", "Idempotency-Key: {key}"},
		Body:    `{"student_id":"s{subject}"}`,
		Clients: 64, Requests: requests, Subjects: requests / 2, Rate: perSecond,
		Timeout: 30 * time.Second, MaxTime: 2 * time.Minute, Seed: 11, OnResponse: s.note,
	}
	for _, target := range targets {
		o.Targets = append(o.Targets, fmt.Sprintf("%s/api/lessons/{n%%%d+1}/bookings", target, lessons))
	}
	type result struct {
		report *storm.Report
		err    error
	}
	ended := make(chan result, 1)
	go func() {
		report, err := storm.Run(t.Context(), o)
		ended <- result{report, err}
	}()
	return func() (*storm.Report, *seen) {
		t.Helper()
		r := <-ended
		if r.err != nil {
			t.Fatal(r.err)
		}
		return r.report, s
	}
}

// normalAgain waits until a gate decides by its store again and returns how long
// that took.
func normalAgain(t testing.TB, gates ...*gateProcess) time.Duration {
	t.Helper()
	began := time.Now()
	for _, g := range gates {
		for send("GET", g.admin+"/v1/status", "").degraded(t) {
			if time.Since(began) > 15*time.Second {
				t.Fatal("still degraded")
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	return time.Since(began)
}

func (a answer) degraded(t testing.TB) bool {
	t.Helper()
	if a.status != 200 {
		t.Fatalf("status: %v", a)
	}
	return bytes.Contains(a.body, []byte(`"mode":"degraded"`))
}

func no500(t testing.TB, r *storm.Report) {
	t.Helper()
	if n := r.Statuses[500]; n != 0 || r.TransportErrors() != 0 {
		t.Errorf("%d answers were 500, %d requests got none", n, r.TransportErrors())
	}
}

func TestRedisKilledInMidSaleAndEmptyAfterwards(t *testing.T) {
	const lessonCount, seats = 5, 40
	backend := startLegacy(t, booking.Options{Style: booking.Conditional, Delay: 2 * time.Millisecond, Lessons: lessonCount, Seats: seats})
	redis := testbed.Redis(t)
	config := lessons(backend.url, quickRedis(redis.Addr()), "", "capacity: 40, one_per_subject: true", keyed+openPass)
	a, b := startGate(t, config), startGate(t, config)
	wait := sale(t, []string{a.url, b.url}, lessonCount, 1200, 250)
	time.Sleep(600 * time.Millisecond) // into the sale: seats are taken by then, and left
	redis.Kill()
	time.Sleep(1200 * time.Millisecond)
	redis.Restart()
	back := normalAgain(t, a, b)
	report, s := wait()
	no500(t, report)
	won := s.winners(t)
	t.Logf("%d answers, decisions %v, modes %v; %d booked; normal %v after the return", report.Answered, report.Decisions, report.Modes, len(won), back.Round(time.Millisecond))
	if report.Decisions["admitted"] == 0 || report.Decisions["passthrough"] == 0 {
		t.Errorf("decisions %v, want admitted and passthrough", report.Decisions)
	}
	if back > 3*time.Second {
		t.Errorf("normal only %v after the return", back)
	}
	noSubjectTwice(t, won)
	expectSold(t, backend, won, lessonCount, seats)

	// The counters of a store that lost its data are not believed until somebody
	// vouches for them.
	if slot := a.slot("lessons", "1"); slot.Capacity != nil || !slot.Dirty {
		t.Errorf("lesson 1 has capacity %v, dirty %v; want null and true", slot.Capacity, slot.Dirty)
	}
	send("POST", b.admin+"/v1/slots/lessons/1/resync", "")
	if slot := a.slot("lessons", "1"); slot.Capacity == nil || *slot.Capacity != seats || slot.Dirty {
		t.Errorf("after the resync lesson 1 is %+v", slot)
	}
}

func TestRedisPausedInMidSale(t *testing.T) {
	const lessonCount, seats = 4, 100
	backend := startLegacy(t, booking.Options{Style: booking.Conditional, Lessons: lessonCount, Seats: seats})
	redis := testbed.Redis(t)
	config := lessons(backend.url, quickRedis(redis.Addr()), "", "capacity: 100, one_per_subject: true", keyed+openPass)
	a, b := startGate(t, config), startGate(t, config)
	wait := sale(t, []string{a.url, b.url}, lessonCount, 300, 40)
	time.Sleep(time.Second)
	redis.Freeze()
	time.Sleep(5 * time.Second)
	redis.Resume()
	back := normalAgain(t, a, b)
	report, s := wait()
	no500(t, report)
	won := s.winners(t)
	noSubjectTwice(t, won)
	t.Logf("decisions %v, modes %v; normal %v after the return", report.Decisions, report.Modes, back.Round(time.Millisecond))
	if back > 3*time.Second || report.Decisions["passthrough"] == 0 {
		t.Errorf("normal %v after the return, decisions %v", back, report.Decisions)
	}
	total := int64(0)
	for lesson := 1; lesson <= lessonCount; lesson++ {
		counted := a.settled("lessons", fmt.Sprint(lesson))
		got := send("GET", fmt.Sprintf("%s/api/lessons/%d", backend.url, lesson), "")
		if want := fmt.Sprintf(`"booked":%d`, counted); !bytes.Contains(got.body, []byte(want+"}")) {
			t.Errorf("lesson %d: the gate counts %d, the backend says %s", lesson, counted, got.body)
		}
		total += counted
	}
	if total != backend.Stats().Bookings {
		t.Errorf("the gate counts %d, the backend has %d", total, backend.Stats().Bookings)
	}
}

// settled is the confirmed units of a slot once nothing waits to be settled and
// nothing of the slot is open.
func (g *gateProcess) settled(pool, slot string) int64 {
	g.t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		status := send("GET", g.admin+"/v1/status", "")
		seen := send("GET", g.admin+"/v1/slots/"+pool+"/"+slot, "")
		if bytes.Contains(status.body, []byte(`"settle_backlog":0`)) && !status.degraded(g.t) && seen.status == 200 {
			if s := g.slot(pool, slot); s.Held == 0 {
				return s.Confirmed
			}
		}
		if time.Now().After(deadline) {
			g.t.Fatalf("slot %s/%s does not come to rest: %v, %v", pool, slot, status, seen)
		}
	}
}

// TestFloodWithoutTheStore: the backend sees no more than the declared limits, and
// memory stays flat.
func TestFloodWithoutTheStore(t *testing.T) {
	backend := startLegacy(t, booking.Options{Style: booking.Conditional, Lessons: 1, Seats: 1000})
	gate := startGate(t, lessons(backend.url, quickRedis("127.0.0.1:1"), "", "capacity: 1000",
		keyed+"    passthrough: { slot: { rate: 20/s, burst: 10 }, rule: { rate: 200/s, burst: 200 }, max_inflight: 8 }\n"))
	for i := range 20 { // warm
		book(gate.url, 1, fmt.Sprint("warm", i))
	}
	before, warm := gate.rss(), backend.Stats().Requests.Book
	s := &seen{}
	began := time.Now()
	report, err := storm.Run(t.Context(), storm.Options{
		Targets: []string{gate.url + "/api/lessons/1/bookings"},
		Header:  []string{"Content-Type: application/json", "Idempotency-Key: {key}"},
		Body:    `{"student_id":"s{subject}"}`,
		Clients: 64, Requests: 20000, Rate: 2000, Timeout: 30 * time.Second, MaxTime: time.Minute, Seed: 3, OnResponse: s.note,
	})
	if err != nil {
		t.Fatal(err)
	}
	took := time.Since(began)
	most := 10 + int64(20*took.Seconds()) + 2
	stats := backend.Stats()
	reached := stats.Requests.Book - warm
	t.Logf("%d requests in %v: decisions %v; the backend saw %d (at most %d allowed), %d at once; RSS grew by %.1f MiB",
		report.Sent, took.Round(time.Millisecond), report.Decisions, reached, most, stats.InFlight.Max, float64(gate.rss()-before)/(1<<20))
	if reached > most || stats.InFlight.Max > 8 || report.Decisions["passthrough"] == 0 {
		t.Errorf("the backend saw %d requests, %d at once; want at most %d and 8", reached, stats.InFlight.Max, most)
	}
	if grown := gate.rss() - before; grown > rssGrowth {
		t.Errorf("RSS grew by %d MiB", grown>>20)
	}
	no500(t, report)
}

func TestAKeyCompletedWithoutTheStoreIsReplayedByTheOtherGate(t *testing.T) {
	backend := startLegacy(t, booking.Options{Style: booking.Conditional, Lessons: 50, Seats: 5})
	redis := testbed.Redis(t)
	config := lessons(backend.url, quickRedis(redis.Addr()), "", "capacity: 5", keyed+openPass)
	a, b := startGate(t, config), startGate(t, config)
	who := []string{"Idempotency-Key: 0123456789abcdef-outage", "Authorization: Bearer ann"}
	for _, how := range []string{"paused", "restarted empty"} {
		lesson := map[string]int{"paused": 1, "restarted empty": 2}[how]
		fields := append([]string{}, who...)
		fields[0] += fmt.Sprint(lesson)
		if how == "paused" {
			redis.Freeze()
		} else {
			redis.Kill()
		}
		first := book(a.url, lesson, "ann", fields...)
		expect(t, first, 201, "passthrough", "booked")
		expect(t, book(a.url, lesson, "ann", fields...), 201, "replayed", "booked")
		if how == "paused" {
			redis.Resume()
		} else {
			redis.Restart()
		}
		normalAgain(t, a, b)
		a.settled("lessons", fmt.Sprint(lesson))
		for _, gate := range []*gateProcess{a, b} {
			again := book(gate.url, lesson, "ann", fields...)
			expect(t, again, 201, "replayed", "booked")
			if !bytes.Equal(again.body, first.body) {
				t.Errorf("%s: replayed %s, want %s", how, again.body, first.body)
			}
		}
		if counted := a.settled("lessons", fmt.Sprint(lesson)); counted != 1 {
			t.Errorf("%s: %d units confirmed", how, counted)
		}
	}
	if n := backend.Stats().Bookings; n != 2 {
		t.Errorf("%d bookings", n)
	}
}

func TestAGateKilledWithoutItsStoreLosesNothingOfItsJournal(t *testing.T) {
	const bookings = 12
	backend := startLegacy(t, booking.Options{Style: booking.Conditional, Lessons: 1, Seats: 100})
	redis := testbed.Redis(t)
	store := quickRedis(redis.Addr()) + `, journal: "` + filepath.Join(t.TempDir(), "gate.journal") + `"`
	config := lessons(backend.url, store, "", "capacity: 100", keyed+openPass)
	gate := startGate(t, config)
	redis.Freeze()
	for i := range bookings {
		expect(t, book(gate.url, 1, fmt.Sprint("s", i), fmt.Sprintf("Idempotency-Key: 0123456789abcdef-%d", i)), 201, "passthrough", "booked")
	}
	gate.kill()
	redis.Resume()
	again := startGate(t, config)
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		a := send("GET", again.admin+"/v1/slots/lessons/1", "")
		if a.status == 200 && again.slot("lessons", "1").Confirmed == bookings {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("after the restart: %v, want %d confirmed", a, bookings)
		}
	}
	for i := range bookings {
		expect(t, book(again.url, 1, fmt.Sprint("s", i), fmt.Sprintf("Idempotency-Key: 0123456789abcdef-%d", i)), 201, "replayed", "booked")
	}
	if n := backend.Stats().Requests.Book; n != bookings {
		t.Errorf("the backend saw %d requests", n)
	}
}

// TestAStoreThatLies: whatever a broken store says, no decision is made of it.
func TestAStoreThatLies(t *testing.T) {
	t.Run("garbage", func(t *testing.T) {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		go func() {
			for {
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				go func() {
					defer conn.Close()
					buffer := make([]byte, 4096)
					for {
						if _, err := conn.Read(buffer); err != nil {
							return
						}
						if _, err := conn.Write([]byte("*3\r\n$8\r\nadmitted\r\n:1\r\n$-1\r\n+OK\r\nHTTP/1.1 200 OK\r\n\r\n")); err != nil {
							return
						}
					}
				}()
			}
		}()
		lies(t, listener.Addr().String(), func() {})
	})
	t.Run("300 ms late", func(t *testing.T) {
		proxy := testbed.Proxy(t, testbed.Redis(t).Addr())
		lies(t, proxy.Addr(), func() { proxy.DelayReplies(300 * time.Millisecond) })
	})
}

func lies(t *testing.T, store string, begin func()) {
	backend := startLegacy(t, booking.Options{Style: booking.Conditional, Lessons: 3, Seats: 5})
	gate := startGate(t, lessons(backend.url, quickRedis(store), "", "capacity: 5, one_per_subject: true", keyed+openPass))
	begin()
	var booked atomic.Int64
	var clients sync.WaitGroup
	for c := range 8 {
		clients.Go(func() {
			for n := range 12 {
				a := book(gate.url, n%3+1, fmt.Sprintf("s%d-%d", c, n), fmt.Sprintf("Idempotency-Key: k-%d-%d", c, n))
				switch a.header.Get("Gate-Decision") {
				case "passthrough":
					if a.status == 201 {
						booked.Add(1)
					}
				case "sold-out": // the backend's own word
				default:
					t.Errorf("%v", a)
				}
			}
		})
	}
	clients.Wait()
	status := send("GET", gate.admin+"/v1/status", "")
	if !status.degraded(t) {
		t.Errorf("not degraded: %s", status.body)
	}
	if booked.Load() != 15 || backend.Stats().Bookings != 15 {
		t.Errorf("%d told, %d booked, want 15", booked.Load(), backend.Stats().Bookings)
	}
}
