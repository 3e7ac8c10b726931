package e2e

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slotgate/slotgate/cmd/legacybooking/booking"
	"github.com/slotgate/slotgate/cmd/slotgate/e2e/stage"
	"github.com/slotgate/slotgate/gate/testbed"
)

// An opening: until opens_at nothing reaches the backend, from then on every gate
// admits within 100 ms. The time is the pool's for lesson 1 and the slot's own, later,
// for lesson 2.
func TestAnOpeningIsOnTimeOnAllGates(t *testing.T) {
	backend := stage.StartBackend(t, booking.Options{Style: booking.Conditional, Lessons: 2, Seats: 1000})
	store := stage.RedisStore(testbed.Redis(t).Addr())
	// The opening stands in the configuration: it must be ahead when the gates are up.
	var opens time.Time
	var gates []*stage.Gate
	for ahead := 4 * time.Second; time.Until(opens) < time.Second; ahead *= 2 {
		for _, late := range gates {
			_ = late.Stop()
		}
		opens = time.Now().Add(ahead).Truncate(time.Millisecond)
		config := stage.Lessons(backend.URL, store, "", `capacity: 1000, opens_at: "`+opens.Format(time.RFC3339Nano)+`"`, "")
		gates = []*stage.Gate{stage.StartGate(t, config), stage.StartGate(t, config)}
	}
	later := opens.Add(time.Second)
	put := stage.Send("PUT", gates[0].Admin+"/v1/slots/lessons/2", `{"opens_at":"`+later.Format(time.RFC3339Nano)+`"}`)
	if put.Status != http.StatusOK {
		t.Fatal(put)
	}

	var mu sync.Mutex
	var wrong []string
	early := 0
	first := map[string]time.Time{} // when the first that was admitted was sent
	var crowd sync.WaitGroup
	for n, gate := range gates {
		for lesson, at := range map[int]time.Time{1: opens, 2: later} {
			name := fmt.Sprintf("gate %d, lesson %d", n, lesson)
			crowd.Go(func() {
				for i := 0; time.Now().Before(at.Add(time.Second)); i++ {
					sent := time.Now()
					a := stage.Book(gate.URL, lesson, fmt.Sprintf("s%d-%d-%d", n, lesson, i))
					answered := time.Now()
					mu.Lock()
					admitted := a.Header.Get("Gate-Decision") == "admitted"
					switch after, _ := strconv.Atoi(a.Header.Get("Retry-After")); {
					case admitted && answered.Before(at):
						wrong = append(wrong, fmt.Sprintf("%s: admitted %v before the opening", name, at.Sub(answered)))
					case admitted && first[name].IsZero():
						first[name] = sent
					case !admitted && sent.After(at):
						wrong = append(wrong, fmt.Sprintf("%s: %v after the opening: %v", name, sent.Sub(at), a))
					case !admitted:
						early++
						if a.Status != http.StatusConflict || a.Header.Get("Gate-Decision") != "closed" || after < 1 {
							wrong = append(wrong, fmt.Sprintf("%s: before the opening: %v", name, a))
						}
					}
					mu.Unlock()
					time.Sleep(5 * time.Millisecond)
				}
			})
		}
	}
	time.Sleep(time.Until(opens.Add(-50 * time.Millisecond)))
	if saw := backend.Stats().Requests.Book; saw != 0 && time.Now().Before(opens) {
		t.Errorf("the backend saw %d requests before the opening", saw)
	}
	crowd.Wait()
	if len(wrong) > 0 {
		t.Errorf("%d answers were wrong:\n%s", len(wrong), strings.Join(wrong[:min(5, len(wrong))], "\n"))
	}
	if early == 0 || len(first) != 4 {
		t.Fatalf("%d asked before the opening, and admitted were %v", early, first)
	}
	for name, at := range first {
		due := opens
		if strings.HasSuffix(name, "lesson 2") {
			due = later
		}
		t.Logf("%s: the first that was admitted was sent %v after the opening", name, at.Sub(due))
		// What was sent then, not when it was answered: a busy test machine takes its
		// time, but nothing that is sent after the opening is refused (above).
		if at.Sub(due) > 100*time.Millisecond {
			t.Errorf("%s: the first that was admitted was sent %v after the opening", name, at.Sub(due))
		}
	}
}
