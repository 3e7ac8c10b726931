package e2e

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/slotgate/slotgate/cmd/legacybooking/booking"
	"github.com/slotgate/slotgate/cmd/slotgate/e2e/stage"
	"github.com/slotgate/slotgate/gate/testbed"
)

// TestTenThousandOfEverything: memory and metrics are bounded by configuration,
// whatever arrives.
func TestTenThousandOfEverything(t *testing.T) {
	const n = 10000
	backend := stage.StartBackend(t, booking.Options{Style: booking.Conditional, Lessons: n, Seats: 1})
	for _, kind := range []string{"memory", "redis"} {
		t.Run(kind, func(t *testing.T) {
			if err := backend.Reset(t.Context()); err != nil {
				t.Fatal(err)
			}
			store := stage.MemoryStore + ", max_memory: 64MiB"
			var redis *testbed.RedisServer
			if kind == "redis" {
				redis = testbed.Redis(t)
				store = stage.RedisStore(redis.Addr())
			}
			gate := stage.StartGate(t, stage.Lessons(backend.URL, store, "", "capacity: 1, one_per_subject: true",
				stage.Keyed+"    limits: { subject: { rate: 100/s, burst: 100 }, client: { rate: 100000/s, burst: 100000 } }\n"))
			stage.Crowd(t, []string{gate.URL}, n, 200, 16, 200, 0.001) // warm
			before, series := gate.RSS(), countSeries(t, gate)
			report, _ := stage.Crowd(t, []string{gate.URL}, n, n, 32, n, 0.001)
			grown, more := gate.RSS()-before, countSeries(t, gate)-series
			stored := "in the process"
			if redis != nil {
				stored = fmt.Sprintf("%d KiB in Redis", redisMemory(t, redis.Addr())>>10)
			}
			t.Logf("%s: %d requests; RSS %.1f MiB, grown by %.1f MiB; state %s; %d series, %d more",
				kind, report.Sent, float64(gate.RSS())/(1<<20), float64(grown)/(1<<20), stored, series, more)
			if grown > rssGrowth() {
				t.Errorf("RSS grew by %d MiB", grown>>20)
			}
			if more > 100 { // what is counted for the first time meanwhile, never one per slot
				t.Errorf("%d more series", more)
			}
		})
	}
}

func countSeries(t testing.TB, g *stage.Gate) (n int) {
	t.Helper()
	resp, err := http.Get(g.Admin + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if line := lines.Text(); line != "" && !strings.HasPrefix(line, "#") {
			n++
		}
	}
	return n
}

func redisMemory(t testing.TB, addr string) (bytes int64) {
	t.Helper()
	conn := stage.Dial(t, addr)
	if _, err := fmt.Fprint(conn, "INFO memory\r\n"); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		if _, err := fmt.Sscanf(lines.Text(), "used_memory_dataset:%d", &bytes); err == nil {
			return bytes
		}
	}
	t.Fatal("no used_memory_dataset")
	return 0
}

// TestRedisComesAndGoes: the gate starts without its store, passes through while
// it is away, and decides again when it is back. No answer is a 500.
func TestRedisComesAndGoes(t *testing.T) {
	backend := stage.StartBackend(t, booking.Options{Style: booking.Conditional, Lessons: 200, Seats: 1})
	redis := testbed.Redis(t)
	redis.Kill()
	gate := stage.StartGate(t, stage.Lessons(backend.URL, stage.QuickRedis(redis.Addr()), "", "capacity: 1", ""))
	a := stage.Book(gate.URL, 1, "ann")
	stage.Expect(t, a, 201, "passthrough", "booked")
	if a.Header.Get("Gate-Mode") != "degraded" || a.Header.Get("Gate-Bound") != "backend" {
		t.Fatalf("%v", a)
	}
	redis.Restart()
	lesson := 1
	awaitDecision := func(want string) {
		t.Helper()
		for deadline := time.Now().Add(10 * time.Second); ; {
			lesson++
			a := stage.Book(gate.URL, lesson, "ann")
			if a.Err != nil || a.Status != 201 {
				t.Fatalf("lesson %d: %v", lesson, a)
			}
			if a.Header.Get("Gate-Decision") == want {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("still %v", a)
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	awaitDecision("admitted")
	redis.Freeze()
	awaitDecision("passthrough")
	redis.Resume()
	awaitDecision("admitted")
	if n := backend.Stats().Bookings; n != int64(lesson) {
		t.Errorf("%d bookings of %d requests", n, lesson)
	}

	reject := stage.StartGate(t, stage.Lessons(backend.URL, stage.QuickRedis("127.0.0.1:1"), "", "capacity: 1", "    on_store_failure: reject\n"))
	a = stage.Book(reject.URL, 200, "ann")
	stage.Expect(t, a, 503, "store-down", "")
	if a.Header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
}

// TestSIGTERMFinishesWhatRuns: a forwarded request is answered and settled, then the
// program ends with status 0.
func TestSIGTERMFinishesWhatRuns(t *testing.T) {
	redis := testbed.Redis(t)
	inside, release := make(chan struct{}, 1), make(chan struct{})
	backend := stage.StartBackend(t, booking.Options{Style: booking.Conditional, Lessons: 1, Seats: 1, BeforeWrite: func() { inside <- struct{}{}; <-release }})
	config := stage.Lessons(backend.URL, stage.RedisStore(redis.Addr()), "", "capacity: 1", "")
	gate := stage.StartGate(t, config)
	answered := make(chan stage.Answer, 1)
	go func() { answered <- stage.Book(gate.URL, 1, "ann") }()
	<-inside
	stopped := make(chan error, 1)
	go func() { stopped <- gate.Stop() }()
	for { // the listener closes
		conn, err := net.Dial("tcp", strings.TrimPrefix(gate.URL, "http://"))
		if err != nil {
			break
		}
		conn.Close()
		time.Sleep(5 * time.Millisecond)
	}
	close(release)
	stage.Expect(t, <-answered, 201, "admitted", "booked")
	if err := <-stopped; err != nil {
		t.Errorf("slotgate ended with %v\n%s", err, gate.Log)
	}
	if s := stage.StartGate(t, config).Slot("lessons", "1"); s.Confirmed != 1 || s.Held != 0 {
		t.Errorf("not settled: confirmed %d, held %d", s.Confirmed, s.Held)
	}
}

// TestUnmatchedTrafficPasses: what no rule matches is the backend's business.
func TestUnmatchedTrafficPasses(t *testing.T) {
	backend := stage.StartBackend(t, booking.Options{Style: booking.Conditional, Lessons: 1, Seats: 3})
	gate := stage.StartGate(t, stage.Lessons(backend.URL, stage.MemoryStore, "", "capacity: 3", ""))
	for _, path := range []string{"/api/lessons/1", "/_stats", "/nowhere?a=1&a=2"} {
		direct, through := stage.Send("GET", backend.URL+path, ""), stage.Send("GET", gate.URL+path, "")
		if through.Status != direct.Status || (path == "/api/lessons/1" && string(through.Body) != string(direct.Body)) {
			t.Errorf("%s: %v, want %v", path, through, direct)
		}
		for name := range through.Header {
			if strings.HasPrefix(name, "Gate-") {
				t.Errorf("%s carries %s", path, name)
			}
		}
	}
	booked := stage.Book(gate.URL, 1, "ann", "Gate-Decision: admitted")
	stage.Expect(t, booked, 201, "admitted", "booked")
	cancel := stage.Send("DELETE", gate.URL+booked.Header.Get("Location"), "")
	if cancel.Status != 200 {
		t.Errorf("cancel through the gate: %v", cancel)
	}
}
