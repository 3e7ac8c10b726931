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
	"github.com/slotgate/slotgate/cmd/slotgate/e2e/stage"
	"github.com/slotgate/slotgate/gate/storm"
	"github.com/slotgate/slotgate/gate/testbed"
)

func TestRedisKilledInMidSaleAndEmptyAfterwards(t *testing.T) {
	const lessonCount, seats = 5, 40
	backend := stage.StartBackend(t, booking.Options{Style: booking.Conditional, Delay: 2 * time.Millisecond, Lessons: lessonCount, Seats: seats})
	redis := testbed.Redis(t)
	config := stage.Lessons(backend.URL, stage.QuickRedis(redis.Addr()), "", "capacity: 40, one_per_subject: true", stage.Keyed+stage.OpenPass)
	a, b := stage.StartGate(t, config), stage.StartGate(t, config)
	wait := stage.Sale(t, []string{a.URL, b.URL}, lessonCount, 1200, 250)
	time.Sleep(600 * time.Millisecond) // into the sale: seats are taken by then, and left
	redis.Kill()
	time.Sleep(1200 * time.Millisecond)
	redis.Restart()
	back := stage.NormalAgain(t, a, b)
	report, s := wait()
	stage.No500(t, report)
	won := s.Winners(t)
	t.Logf("%d answers, decisions %v, modes %v; %d booked; normal %v after the return", report.Answered, report.Decisions, report.Modes, len(won), back.Round(time.Millisecond))
	if report.Decisions["admitted"] == 0 || report.Decisions["passthrough"] == 0 {
		t.Errorf("decisions %v, want admitted and passthrough", report.Decisions)
	}
	if back > 3*time.Second {
		t.Errorf("normal only %v after the return", back)
	}
	stage.NoSubjectTwice(t, won)
	expectSold(t, backend, won, lessonCount, seats)

	// The counters of a store that lost its data are not believed until somebody
	// vouches for them.
	if slot := a.Slot("lessons", "1"); slot.Capacity != nil || !slot.Dirty {
		t.Errorf("lesson 1 has capacity %v, dirty %v; want null and true", slot.Capacity, slot.Dirty)
	}
	stage.Send("POST", b.Admin+"/v1/slots/lessons/1/resync", "")
	if slot := a.Slot("lessons", "1"); slot.Capacity == nil || *slot.Capacity != seats || slot.Dirty {
		t.Errorf("after the resync lesson 1 is %+v", slot)
	}
}

func TestRedisPausedInMidSale(t *testing.T) {
	const lessonCount, seats = 4, 100
	backend := stage.StartBackend(t, booking.Options{Style: booking.Conditional, Lessons: lessonCount, Seats: seats})
	redis := testbed.Redis(t)
	config := stage.Lessons(backend.URL, stage.QuickRedis(redis.Addr()), "", "capacity: 100, one_per_subject: true", stage.Keyed+stage.OpenPass)
	a, b := stage.StartGate(t, config), stage.StartGate(t, config)
	wait := stage.Sale(t, []string{a.URL, b.URL}, lessonCount, 300, 40)
	time.Sleep(time.Second)
	redis.Freeze()
	time.Sleep(5 * time.Second)
	redis.Resume()
	back := stage.NormalAgain(t, a, b)
	report, s := wait()
	stage.No500(t, report)
	won := s.Winners(t)
	stage.NoSubjectTwice(t, won)
	t.Logf("decisions %v, modes %v; normal %v after the return", report.Decisions, report.Modes, back.Round(time.Millisecond))
	if back > 3*time.Second || report.Decisions["passthrough"] == 0 {
		t.Errorf("normal %v after the return, decisions %v", back, report.Decisions)
	}
	total := int64(0)
	for lesson := 1; lesson <= lessonCount; lesson++ {
		counted := a.Settled("lessons", fmt.Sprint(lesson))
		got := stage.Send("GET", fmt.Sprintf("%s/api/lessons/%d", backend.URL, lesson), "")
		if want := fmt.Sprintf(`"booked":%d`, counted); !bytes.Contains(got.Body, []byte(want+"}")) {
			t.Errorf("lesson %d: the gate counts %d, the backend says %s", lesson, counted, got.Body)
		}
		total += counted
	}
	if total != backend.Stats().Bookings {
		t.Errorf("the gate counts %d, the backend has %d", total, backend.Stats().Bookings)
	}
}

// TestFloodWithoutTheStore: the backend sees no more than the declared limits, and
// memory stays flat.
func TestFloodWithoutTheStore(t *testing.T) {
	backend := stage.StartBackend(t, booking.Options{Style: booking.Conditional, Lessons: 1, Seats: 1000})
	gate := stage.StartGate(t, stage.Lessons(backend.URL, stage.QuickRedis("127.0.0.1:1"), "", "capacity: 1000",
		stage.Keyed+"    passthrough: { slot: { rate: 20/s, burst: 10 }, rule: { rate: 200/s, burst: 200 }, max_inflight: 8 }\n"))
	for i := range 20 { // warm
		stage.Book(gate.URL, 1, fmt.Sprint("warm", i))
	}
	before, warm := gate.RSS(), backend.Stats().Requests.Book
	s := &stage.Seen{}
	began := time.Now()
	report, err := storm.Run(t.Context(), storm.Options{
		Targets: []string{gate.URL + "/api/lessons/1/bookings"},
		Header:  []string{"Content-Type: application/json", "Idempotency-Key: {key}"},
		Body:    `{"student_id":"s{subject}"}`,
		Clients: 64, Requests: 20000, Rate: 2000, Timeout: 30 * time.Second, MaxTime: time.Minute, Seed: 3, OnResponse: s.Note,
	})
	if err != nil {
		t.Fatal(err)
	}
	took := time.Since(began)
	most := 10 + int64(20*took.Seconds()) + 2
	stats := backend.Stats()
	reached := stats.Requests.Book - warm
	t.Logf("%d requests in %v: decisions %v; the backend saw %d (at most %d allowed), %d at once; RSS grew by %.1f MiB",
		report.Sent, took.Round(time.Millisecond), report.Decisions, reached, most, stats.InFlight.Max, float64(gate.RSS()-before)/(1<<20))
	if reached > most || stats.InFlight.Max > 8 || report.Decisions["passthrough"] == 0 {
		t.Errorf("the backend saw %d requests, %d at once; want at most %d and 8", reached, stats.InFlight.Max, most)
	}
	if grown := gate.RSS() - before; grown > rssGrowth() {
		t.Errorf("RSS grew by %d MiB", grown>>20)
	}
	stage.No500(t, report)
}

func TestAKeyCompletedWithoutTheStoreIsReplayedByTheOtherGate(t *testing.T) {
	backend := stage.StartBackend(t, booking.Options{Style: booking.Conditional, Lessons: 50, Seats: 5})
	redis := testbed.Redis(t)
	config := stage.Lessons(backend.URL, stage.QuickRedis(redis.Addr()), "", "capacity: 5", stage.Keyed+stage.OpenPass)
	a, b := stage.StartGate(t, config), stage.StartGate(t, config)
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
		first := stage.Book(a.URL, lesson, "ann", fields...)
		stage.Expect(t, first, 201, "passthrough", "booked")
		stage.Expect(t, stage.Book(a.URL, lesson, "ann", fields...), 201, "replayed", "booked")
		if how == "paused" {
			redis.Resume()
		} else {
			redis.Restart()
		}
		stage.NormalAgain(t, a, b)
		a.Settled("lessons", fmt.Sprint(lesson))
		for _, gate := range []*stage.Gate{a, b} {
			again := stage.Book(gate.URL, lesson, "ann", fields...)
			stage.Expect(t, again, 201, "replayed", "booked")
			if !bytes.Equal(again.Body, first.Body) {
				t.Errorf("%s: replayed %s, want %s", how, again.Body, first.Body)
			}
		}
		if counted := a.Settled("lessons", fmt.Sprint(lesson)); counted != 1 {
			t.Errorf("%s: %d units confirmed", how, counted)
		}
	}
	if n := backend.Stats().Bookings; n != 2 {
		t.Errorf("%d bookings", n)
	}
}

func TestAGateKilledWithoutItsStoreLosesNothingOfItsJournal(t *testing.T) {
	const bookings = 12
	backend := stage.StartBackend(t, booking.Options{Style: booking.Conditional, Lessons: 1, Seats: 100})
	redis := testbed.Redis(t)
	store := stage.QuickRedis(redis.Addr()) + `, journal: "` + filepath.Join(t.TempDir(), "gate.journal") + `"`
	config := stage.Lessons(backend.URL, store, "", "capacity: 100", stage.Keyed+stage.OpenPass)
	gate := stage.StartGate(t, config)
	redis.Freeze()
	for i := range bookings {
		stage.Expect(t, stage.Book(gate.URL, 1, fmt.Sprint("s", i), fmt.Sprintf("Idempotency-Key: 0123456789abcdef-%d", i)), 201, "passthrough", "booked")
	}
	gate.Kill()
	redis.Resume()
	again := stage.StartGate(t, config)
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		a := stage.Send("GET", again.Admin+"/v1/slots/lessons/1", "")
		if a.Status == 200 && again.Slot("lessons", "1").Confirmed == bookings {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("after the restart: %v, want %d confirmed", a, bookings)
		}
	}
	for i := range bookings {
		stage.Expect(t, stage.Book(again.URL, 1, fmt.Sprint("s", i), fmt.Sprintf("Idempotency-Key: 0123456789abcdef-%d", i)), 201, "replayed", "booked")
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
	backend := stage.StartBackend(t, booking.Options{Style: booking.Conditional, Lessons: 3, Seats: 5})
	gate := stage.StartGate(t, stage.Lessons(backend.URL, stage.QuickRedis(store), "", "capacity: 5, one_per_subject: true", stage.Keyed+stage.OpenPass))
	begin()
	var booked atomic.Int64
	var clients sync.WaitGroup
	for c := range 8 {
		clients.Go(func() {
			for n := range 12 {
				a := stage.Book(gate.URL, n%3+1, fmt.Sprintf("s%d-%d", c, n), fmt.Sprintf("Idempotency-Key: k-%d-%d", c, n))
				switch a.Header.Get("Gate-Decision") {
				case "passthrough":
					if a.Status == 201 {
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
	status := stage.Send("GET", gate.Admin+"/v1/status", "")
	if !status.Degraded(t) {
		t.Errorf("not degraded: %s", status.Body)
	}
	if booked.Load() != 15 || backend.Stats().Bookings != 15 {
		t.Errorf("%d told, %d booked, want 15", booked.Load(), backend.Stats().Bookings)
	}
}
