package dashboard

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/slotgate/slotgate/cmd/legacybooking/booking"
	"github.com/slotgate/slotgate/cmd/slotgate/e2e/stage"
	"github.com/slotgate/slotgate/gate/storm"
	"github.com/slotgate/slotgate/gate/testbed"
	"github.com/slotgate/slotgate/gate/testbed/child"
)

const (
	token    = "of-the-operators-of-this-hall"
	lessons  = 24 // the first of them in a pool with a number, the rest in one with truth
	counted  = 16
	seats    = 80 // in the database
	requests = 1200
	pace     = 150 // requests a second
)

// hall is a gate whose operators have a token, the API behind it and its store.
type hall struct {
	t       *testing.T
	redis   *testbed.RedisServer
	backend *stage.Backend
	url     string // where bookings go
	admin   string
	stormed chan outcome
	report  *storm.Report // of the storm, once it has ended
}

// outcome is how a storm ended.
type outcome struct {
	report *storm.Report
	err    error
}

// rulesOf has two pools over one API: lessons 1 to 16 by a number, the others by the
// API's own table.
func rulesOf(listen, admin, backend, redis string, tables stage.Tables) string {
	rule := func(name, pool, lesson string) string {
		return fmt.Sprintf(`
  - name: %s
    match: { methods: [POST], path: "/api/lessons/{lesson}/bookings", params: { lesson: "%s" } }
    action: book
    pool: %s
    slot: path:lesson
    subject: json:/student_id
    reference: json:/data/booking_id
    idempotency: { key: [header:Idempotency-Key] }
    outcomes:
      - { when: { status: 409, json: { /error: sold_out } }, is: sold_out }
      - { when: { status: 409, json: { /error: duplicate } }, is: duplicate }
      - { when: { status: 3xx }, is: refused }`, name, lesson, pool)
	}
	const room = "one_per_subject: true, max_inflight: 1, queue: { size: 64, wait: 20s }, hold_ttl: 60s"
	return fmt.Sprintf(`
server: { listen: %q }
admin: { listen: %q, token: %q }
upstream: { url: %q }
store: { %s, breaker: { failures: 3, open_for: 1s, probes: 1 } }
pools:
  lessons: { capacity: 40, %s }
  workshops: { %s, %[6]s }
rules:`, listen, admin, token, backend, stage.RedisStore(redis), room, tables.Remainder("lesson_slot", stage.QuickLooks)) +
		rule("book-lesson", "lessons", "[0-9]|1[0-6]") + rule("book-workshop", "workshops", "1[7-9]|2[0-9]") + "\n"
}

// openHall starts everything.
func openHall(t *testing.T) *hall {
	t.Helper()
	tables := stage.PostgresTables(t)
	h := &hall{
		t: t, redis: testbed.Redis(t), stormed: make(chan outcome, 1),
		backend: stage.StartBackend(t, booking.Options{
			Database: tables.Database, Style: booking.Conditional, Delay: 80 * time.Millisecond, Lessons: lessons, Seats: seats,
		}),
	}
	listen, admin := fmt.Sprintf("127.0.0.1:%d", testbed.FreePort(t)), fmt.Sprintf("127.0.0.1:%d", testbed.FreePort(t))
	h.url, h.admin = "http://"+listen, "http://"+admin
	file := filepath.Join(t.TempDir(), "gate.yaml")
	if err := os.WriteFile(file, []byte(rulesOf(listen, admin, h.backend.URL, h.redis.Addr(), tables)), 0o600); err != nil {
		t.Fatal(err)
	}
	gate, err := child.Start("slotgate", exec.Command(program, "run", "-c", file), syscall.SIGKILL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		gate.End(syscall.SIGTERM, 30*time.Second)
		if t.Failed() {
			t.Logf("the gate said:\n%s", gate.Printed())
		}
	})
	if err := gate.Await(t.Context(), h.ready); err != nil {
		t.Fatal(err)
	}
	h.differ()
	return h
}

func (h *hall) ready() error {
	resp, err := http.Get(h.admin + "/readyz")
	if err != nil {
		return err
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("readyz answers %s", resp.Status)
	}
	return nil
}

// differ gives lessons capacities of their own, so that a table of them has something to
// show: some sell out early, some never.
func (h *hall) differ() {
	h.t.Helper()
	for lesson := 1; lesson <= counted; lesson += 2 {
		h.change(lesson, fmt.Sprintf(`{"capacity":%d}`, 10+lesson*4))
	}
	h.change(4, `{"closed":true}`)
}

func (h *hall) change(lesson int, body string) {
	h.t.Helper()
	a := stage.Send("PUT", fmt.Sprintf("%s/v1/slots/lessons/%d", h.admin, lesson), body, "Authorization: Bearer "+token)
	if a.Status != http.StatusOK {
		h.t.Fatalf("lesson %d: %v", lesson, a)
	}
}

// storm begins the storm.
func (h *hall) storm() {
	go func() {
		report, err := storm.Run(h.t.Context(), storm.Options{
			Targets: []string{fmt.Sprintf("%s/api/lessons/{n%%%d+1}/bookings", h.url, lessons)},
			Header:  []string{"Content-Type: application/json", "Idempotency-Key: {key}", "Authorization: Bearer {subject}"},
			Body:    `{"student_id":"s{subject}"}`,
			Clients: 64, Requests: requests, Subjects: 300, RetriesSameKey: 0.2, Rate: pace,
			Timeout: 30 * time.Second, MaxTime: 2 * time.Minute, Seed: 8,
		})
		h.stormed <- outcome{report, err}
	}()
}

// ended waits for its end.
func (h *hall) ended() *storm.Report {
	h.t.Helper()
	o := <-h.stormed
	if o.err != nil {
		h.t.Fatal(o.err)
	}
	if n := o.report.TransportErrors(); n > 0 || o.report.StoppedBy != "" {
		h.t.Errorf("%d requests of the storm have no answer; it was stopped by %q", n, o.report.StoppedBy)
	}
	h.report = o.report
	return o.report
}
