package e2e

import (
	"database/sql"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/slotgate/slotgate/cmd/legacybooking/booking"
	"github.com/slotgate/slotgate/cmd/slotgate/e2e/stage"
	"github.com/slotgate/slotgate/gate/testbed"
)

// TestASourceThatFails: bookings go on as where capacity is learned, the database is the
// last word, and operators can see it. When the source is back, so is truth.
func TestASourceThatFails(t *testing.T) {
	t.Parallel()
	const looks = "refresh: 2s, hot: 500ms, lag: 100ms, timeout: 1s, max_rate: 200/s"
	for name, start := range map[string]func(t *testing.T) (backend *stage.Backend, url, capacity string, breaks, mends func()){
		"its query": func(t *testing.T) (*stage.Backend, string, string, func(), func()) {
			database := stage.SQLiteTables(t)
			backend := stage.StartBackend(t, booking.Options{Database: database.Database, Style: booking.Conditional, Lessons: 1, Seats: 8})
			create := "CREATE VIEW truth AS SELECT slot_id, remain FROM lesson_slot"
			execute(t, "sqlite", database.Database, create)
			return backend, backend.URL, database.Remainder("truth", looks),
				func() { execute(t, "sqlite", database.Database, "DROP VIEW truth") },
				func() { execute(t, "sqlite", database.Database, create) }
		},
		"its server": func(t *testing.T) (*stage.Backend, string, string, func(), func()) {
			database := stage.PostgresTables(t)
			backend := stage.StartBackend(t, booking.Options{Database: database.Database, Style: booking.Conditional, Lessons: 1, Seats: 8})
			way := newPath(t, database.DSN)
			database.DSN = way.dsn
			return backend, backend.URL, database.Remainder("lesson_slot", looks), way.shut, way.open
		},
		"its answers": func(t *testing.T) (*stage.Backend, string, string, func(), func()) {
			backend := stage.StartBackend(t, booking.Options{Style: booking.Conditional, Lessons: 1, Seats: 8})
			var silent atomic.Bool
			url := stage.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodGet && silent.Load() {
					<-r.Context().Done()
					return
				}
				backend.ServeHTTP(w, r)
			}))
			return backend, url, stage.OverHTTP(looks), func() { silent.Store(true) }, func() { silent.Store(false) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			backend, url, capacity, breaks, mends := start(t)
			config := stage.Lessons(url, stage.RedisStore(testbed.Redis(t).Addr()), ", timeout: 15s", capacity+", hold_ttl: 60s, one_per_subject: true", "")
			gates := []*stage.Gate{stage.StartGate(t, config), stage.StartGate(t, config)}
			students := 0
			books := func() stage.Answer {
				students++
				return stage.Book(gates[students%2].URL, 1, fmt.Sprint("s", students))
			}
			for range 3 {
				stage.Expect(t, books(), 201, "admitted", "booked")
			}
			if s, _ := gates[0].Lesson(1); s.Source != "truth" || s.Available == nil || *s.Available != 5 {
				t.Fatalf("before: %v", s)
			}
			breaks()
			stage.Expect(t, books(), 201, "admitted", "booked")
			noticed := stage.Eventually(t, refresh+time.Second+patience, func() string {
				if gates[0].Looks("failed")+gates[1].Looks("failed") == 0 {
					return "no look is counted as failed"
				}
				return ""
			})
			if s, _ := gates[0].Lesson(1); s.Source != "learned" || s.Available != nil || s.Capacity != nil {
				t.Errorf("while the source fails: %v", s)
			}
			for range 2 {
				stage.Expect(t, books(), 201, "admitted", "booked")
			}
			if a := stage.Book(backend.URL, 1, "past"); a.Status != 201 {
				t.Fatal(a)
			}
			stage.Expect(t, books(), 201, "admitted", "booked") // the last seat
			if a := books(); a.Status != 409 || a.Header.Get("Gate-Outcome") != "sold_out" {
				t.Errorf("beyond the last seat: %v", a)
			}
			mends()
			// A breaker may have been opened, for 2.4 s at most.
			back := stage.Eventually(t, refresh+2400*time.Millisecond+patience, func() string { return stage.Behind(t, gates[0], backend) })
			if s, _ := gates[0].Lesson(1); s.Source != "truth" {
				t.Errorf("after: %v", s)
			}
			if s := backend.Counts(t)[0]; s.Remain != 0 || s.Bookings != 8 {
				t.Errorf("the database has %+v", s)
			}
			saw := backend.Stats().Requests.Book
			stage.Expect(t, books(), 409, "sold-out", "")
			if n := backend.Stats().Requests.Book; n != saw {
				t.Error("the backend was asked although truth is back")
			}
			t.Logf("noticed %v after the source failed, truth %v after it was back", noticed.Round(time.Millisecond), back.Round(time.Millisecond))
		})
	}
}

func execute(t testing.TB, driver, dsn, statement string) {
	t.Helper()
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}

// path is a way to a database that can be shut: connections end, new ones are refused.
type path struct {
	t       testing.TB
	address string // of the database
	listen  string
	dsn     string // by this way

	mu       sync.Mutex
	listener net.Listener
	links    []net.Conn
	running  sync.WaitGroup
}

func newPath(t testing.TB, dsn string) *path {
	t.Helper()
	_, rest, _ := strings.Cut(dsn, "@")
	address, _, _ := strings.Cut(rest, "/")
	p := &path{t: t, address: address, listen: fmt.Sprintf("127.0.0.1:%d", testbed.FreePort(t))}
	p.dsn = strings.Replace(dsn, address, p.listen, 1)
	p.open()
	t.Cleanup(func() {
		p.shut()
		p.running.Wait()
	})
	return p
}

func (p *path) open() {
	p.t.Helper()
	listener, err := net.Listen("tcp", p.listen)
	if err != nil {
		p.t.Fatal(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.listener = listener
	p.running.Go(func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			p.running.Go(func() { p.link(from) })
		}
	})
}

func (p *path) shut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.listener.Close()
	for _, c := range p.links {
		c.Close()
	}
	p.links = nil
}

func (p *path) link(from net.Conn) {
	defer from.Close()
	to, err := net.Dial("tcp", p.address)
	if err != nil {
		return
	}
	defer to.Close()
	p.mu.Lock()
	p.links = append(p.links, from, to)
	p.mu.Unlock()
	var one sync.WaitGroup
	one.Go(func() { _, _ = io.Copy(to, from); to.Close() })
	_, _ = io.Copy(from, to)
	from.Close()
	one.Wait()
}
