package shadow

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/slotgate/slotgate/cmd/legacybooking/booking"
	"github.com/slotgate/slotgate/cmd/slotgate/e2e/stage"
	"github.com/slotgate/slotgate/gate/testbed"
)

const (
	lessons  = 6
	seats    = 4
	students = 12
)

// site is a gate in one mode in front of a backend of its own.
type site struct {
	*stage.Gate
	backend *stage.Backend
}

func newSite(t *testing.T, store, mode string, o booking.Options) *site {
	t.Helper()
	o.Lessons, o.Seats = lessons, seats
	backend := stage.StartBackend(t, o)
	// A "sold out" from memory would hide that a key belongs to another lesson's request.
	config := stage.Lessons(backend.URL, store, "", fmt.Sprintf("capacity: %d, one_per_subject: true, reject_cache: 0s", seats),
		"    idempotency: { key: [header:Idempotency-Key], required: true }\n    mode: "+mode+"\n")
	return &site{stage.StartGate(t, config), backend}
}

// attempt is one request of a storm.
type attempt struct {
	lesson  int
	student string
	fields  []string
}

// drawAttempts draws students who press again, with the same key or another, and, when
// nothing is left, with none or one that they used elsewhere: before, the backend would
// book what enforce refuses, and shadow rightly count a booking that enforce never had.
func drawAttempts(seed uint64, n int) []attempt {
	r := rand.New(rand.NewPCG(seed, 1))
	list := make([]attempt, n)
	for i := range list {
		a := attempt{lesson: 1 + r.IntN(lessons), student: fmt.Sprintf("student-%d", r.IntN(students))}
		key := fmt.Sprintf("key-of-%s-for-%d-try-%d", a.student, a.lesson, r.IntN(2))
		switch odd := r.IntN(8); {
		case i < n/2:
		case odd == 0:
			key = ""
		case odd == 1:
			key = fmt.Sprintf("key-of-%s-for-%d-try-%d", a.student, 1+r.IntN(lessons), r.IntN(2))
		}
		if key != "" {
			a.fields = []string{"Idempotency-Key: " + key}
		}
		list[i] = a
	}
	return list
}

func (s *site) send(a attempt) stage.Answer {
	return stage.Book(s.URL, a.lesson, a.student, a.fields...)
}

// report is a rule's part of /v1/status.
type report struct {
	Rule        string           `json:"rule"`
	Requests    int64            `json:"requests"`
	Rejected    int64            `json:"would_have_rejected"`
	Oversold    int64            `json:"would_have_oversold"`
	Decisions   map[string]int64 `json:"decisions"`
	BookedUnits map[string]int64 `json:"booked"`
}

func (s *site) report(t *testing.T) report {
	t.Helper()
	var status struct{ Shadow []report }
	a := stage.Send("GET", s.Admin+"/v1/status", "")
	if err := json.Unmarshal(a.Body, &status); err != nil || len(status.Shadow) != 1 {
		t.Fatalf("%v, %v", err, a)
	}
	r := status.Shadow[0]
	for decision, n := range r.Decisions {
		if got := s.Metric(`slotgate_shadow_total{decision="` + decision + `",rule="book-lesson"}`); got != float64(n) {
			t.Errorf("%s: the status says %d, the metric %v", decision, n, got)
		}
	}
	if rejected, oversold := s.Metric(`slotgate_shadow_rejected_total{rule="book-lesson"}`), s.Metric(`slotgate_shadow_oversold_units{rule="book-lesson"}`); rejected != float64(r.Rejected) || oversold != float64(r.Oversold) {
		t.Errorf("the status says %d and %d, the metrics %v and %v", r.Rejected, r.Oversold, rejected, oversold)
	}
	return r
}

// TestReportIsWhatEnforceDoes: the same requests, one after the other, through a gate that
// enforces and one in shadow: what the one answers is what the other says it would.
func TestReportIsWhatEnforceDoes(t *testing.T) {
	redis := testbed.Redis(t)
	for name, store := range map[string]string{"memory": stage.MemoryStore, "redis": stage.RedisStore(redis.Addr())} {
		for seed := uint64(1); seed <= 3; seed++ {
			t.Run(fmt.Sprintf("%s/%d", name, seed), func(t *testing.T) {
				prefix := func(mode string) string {
					return store + fmt.Sprintf(", prefix: %s%d", mode, seed)
				}
				backend := booking.Options{Style: booking.Conditional}
				enforce, shadow := newSite(t, prefix("enforce"), "enforce", backend), newSite(t, prefix("shadow"), "shadow", backend)
				did := map[string]int64{}
				for i, a := range drawAttempts(seed, 400) {
					answered, said := enforce.send(a), shadow.send(a)
					decision := answered.Header.Get("Gate-Decision")
					did[decision]++
					if got := said.Header.Get("Gate-Shadow"); got != decision {
						t.Fatalf("request %d, %+v: enforce answers %v, shadow says %v", i, a, answered, said)
					}
					if direct := said.Header.Get("Gate-Outcome"); decision == "admitted" && direct != answered.Header.Get("Gate-Outcome") {
						t.Fatalf("request %d: %v, %v", i, answered, said)
					}
				}
				r := shadow.report(t)
				if !maps.Equal(r.Decisions, did) || r.Requests != 400 || r.Rejected != 400-did["admitted"]-did["replayed"] || r.Oversold != 0 {
					t.Errorf("shadow reports %+v, enforce did %v", r, did)
				}
				for _, decision := range []string{"admitted", "replayed", "sold-out", "duplicate", "key-missing", "key-mismatch"} {
					if did[decision] == 0 {
						t.Errorf("no %s among %v", decision, did)
					}
				}
				t.Logf("%v", did)
			})
		}
	}
}

// TestShadowOfAStorm: many at once. Who comes first is not the same twice, so the reports
// of two storms are held to what cannot differ: every request is counted once, the
// counters are what the backend sold, and enforce keeps as many away from the backend as
// shadow says it would, within those who were let try and found that another one had the
// seat: in shadow, those who would be refused take seats from those who would not. (How
// many of them are refused and how many replayed is chance: which key got the seat.)
func TestShadowOfAStorm(t *testing.T) {
	backend := booking.Options{Style: booking.Conditional}
	redis := testbed.Redis(t)
	enforce := newSite(t, stage.RedisStore(redis.Addr())+", prefix: enforce", "enforce", backend)
	shadow := newSite(t, stage.RedisStore(redis.Addr())+", prefix: shadow", "shadow", backend)
	attempts := drawAttempts(7, 1200)
	did := rush(t, enforce, attempts, "Gate-Decision")
	would := rush(t, shadow, attempts, "Gate-Shadow")
	r := shadow.report(t)
	if r.Requests != int64(len(attempts)) || r.Rejected != would.refused {
		t.Errorf("%d requests, of which clients were told that %d would be refused: %+v", len(attempts), would.refused, r)
	}
	kept, wouldKeep := did.refused+did.replayed, would.refused+would.replayed
	if difference := kept - wouldKeep; difference > would.inVain || difference < -would.inVain {
		t.Errorf("enforce did %+v, shadow says %+v", did, would)
	}
	shadow.countsWhatIsSold(t, r)
	t.Logf("enforce did %+v, shadow says %+v; %+v", did, would, r)

	// And now for real: nobody gets to the backend who cannot get a seat there.
	if a := stage.Send("PUT", shadow.Admin+"/v1/rules/book-lesson/mode", `{"mode":"enforce"}`); a.Status != http.StatusOK {
		t.Fatal(a)
	}
	before := shadow.backend.Stats().Requests.Book
	for lesson := 1; lesson <= lessons; lesson++ {
		a := stage.Book(shadow.URL, lesson, "late", "Idempotency-Key: "+fmt.Sprint("late-key-for-the-lesson-", lesson))
		stage.Expect(t, a, http.StatusConflict, "sold-out", "")
	}
	if after := shadow.backend.Stats().Requests.Book; after != before {
		t.Errorf("%d requests came to a backend that has nothing left", after-before)
	}
	replayed := 0
	for _, a := range attempts {
		again := shadow.send(a)
		switch again.Header.Get("Gate-Decision") {
		case "replayed":
			replayed++
			if again.Status != http.StatusCreated && again.Status != http.StatusConflict {
				t.Errorf("%+v: %v", a, again)
			}
		case "duplicate", "sold-out", "key-missing", "key-mismatch":
		default:
			t.Fatalf("%+v: %v", a, again)
		}
	}
	if replayed < lessons*seats {
		t.Errorf("%d answers were kept in shadow, for %d bookings", replayed, lessons*seats)
	}
	if n := shadow.backend.Stats().Requests.Book; n != before {
		t.Errorf("%d more requests at the backend", n-before)
	}
}

// outcome counts the requests of a storm by what the gate said of them. Those in vain
// were, or would be, admitted, and the backend refused them.
type outcome struct{ admitted, inVain, replayed, refused int64 }

// rush sends the attempts, 16 at a time. The field has the gate's word.
func rush(t *testing.T, s *site, attempts []attempt, field string) outcome {
	t.Helper()
	var next, admitted, inVain, replayed, refused atomic.Int64
	var clients sync.WaitGroup
	for range 16 {
		clients.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(attempts)); i = next.Add(1) - 1 {
				a := s.send(attempts[i])
				switch said := a.Header.Get(field); {
				case a.Err != nil || said == "":
					t.Errorf("%+v: %v", attempts[i], a)
				case said == "replayed":
					replayed.Add(1)
				case said != "admitted":
					refused.Add(1)
				case a.Status != http.StatusCreated:
					inVain.Add(1)
					admitted.Add(1)
				default:
					admitted.Add(1)
				}
			}
		})
	}
	clients.Wait()
	return outcome{admitted.Load(), inVain.Load(), replayed.Load(), refused.Load()}
}

// countsWhatIsSold holds the counters against the backend's database. Where the backend
// booked the second of a student's two requests that ran at once, and told the first one
// that it is a duplicate, both may count: a unit too many is taken, never one too few.
func (s *site) countsWhatIsSold(t *testing.T, r report) {
	t.Helper()
	var twice int64
	for _, sale := range s.backend.Counts(t) {
		confirmed := s.Settled("lessons", fmt.Sprint(sale.Lesson))
		if confirmed < sale.Seats {
			t.Errorf("lesson %d: the backend has booked %d, the gate counts %d", sale.Lesson, sale.Seats, confirmed)
		}
		twice += confirmed - sale.Seats
	}
	if may := r.BookedUnits["duplicate"] + r.BookedUnits["replayed"]; twice > may {
		t.Errorf("the gate counts %d more than the backend has booked, and at most %d may count twice", twice, may)
	}
}

// TestWhatWouldHaveBeenOversold: a backend without constraints sells too much, and shadow
// says how much of it enforce would have kept away.
func TestWhatWouldHaveBeenOversold(t *testing.T) {
	shadow := newSite(t, stage.MemoryStore, "shadow", booking.Options{Style: booking.Naive, NoConstraints: true})
	var clients sync.WaitGroup
	for lesson := 1; lesson <= lessons; lesson++ {
		for i := range 4 * seats {
			clients.Go(func() {
				key := fmt.Sprintf("Idempotency-Key: key-of-student-%d-for-%d", i, lesson)
				if a := stage.Book(shadow.URL, lesson, fmt.Sprintf("student-%d", i), key); a.Err != nil {
					t.Error(a)
				}
			})
		}
	}
	clients.Wait()
	var oversold int64
	for _, sale := range shadow.backend.Counts(t) {
		oversold += max(0, sale.Seats-seats)
	}
	r := shadow.report(t)
	shadow.countsWhatIsSold(t, r)
	if r.Oversold < oversold || r.BookedUnits["admitted"] > lessons*seats {
		t.Errorf("the backend sold %d too many; %+v", oversold, r)
	}
	if r.BookedUnits["admitted"] == lessons*seats && r.Oversold != oversold {
		t.Errorf("the backend sold %d too many, shadow says %d", oversold, r.Oversold)
	}
	t.Logf("the backend sold %d too many: %+v", oversold, r)
}
