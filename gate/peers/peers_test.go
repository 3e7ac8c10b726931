package peers

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// registry is one in memory, by the test's own time.
type registry struct {
	mu    sync.Mutex
	gates map[string]entry
	err   error
	calls int
}

type entry struct {
	policy string
	until  time.Time
}

func (r *registry) Announce(_ context.Context, gate, policy string, life time.Duration) (running, differing int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls++
	if r.err != nil {
		return 0, 0, r.err
	}
	r.gates[gate] = entry{policy, time.Now().Add(life)}
	for name, one := range r.gates {
		if !one.until.After(time.Now()) {
			delete(r.gates, name)
			continue
		}
		running++
		if one.policy != policy {
			differing++
		}
	}
	return running, differing, nil
}

func (r *registry) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = err
}

// world is a registry with a gate in it whose log and policy the test has.
type world struct {
	*testing.T
	registry *registry
	gate     *Peers

	mu     sync.Mutex
	log    bytes.Buffer
	policy string
}

// Write takes a line of the log.
func (w *world) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.Write(line)
}

// said is what the log said so far.
func (w *world) said() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.String()
}

func (w *world) set(policy string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.policy = policy
}

func inWorld(t *testing.T, test func(w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, registry: &registry{gates: map[string]entry{}}, policy: "x"}
		w.gate = Start(w.registry, func() string {
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.policy
		}, slog.New(slog.NewTextHandler(w, nil)))
		test(w)
		w.gate.Close()
		w.gate.Close()
		if len(w.registry.gates) != 0 {
			t.Errorf("all gates have ended, and %d are left", len(w.registry.gates))
		}
	})
}

func (w *world) other(policy string) *Peers {
	return Start(w.registry, func() string { return policy }, slog.New(slog.DiscardHandler))
}

// after lets time pass, and wants to have seen and read in the log.
func (w *world) after(d time.Duration, seen Seen, warned, settled int) {
	w.Helper()
	time.Sleep(d)
	synctest.Wait()
	if got := w.gate.Seen(); got != seen {
		w.Errorf("seen %+v, want %+v", got, seen)
	}
	if got := strings.Count(w.said(), "level=WARN"); got != warned {
		w.Errorf("warned %d times, want %d: %s", got, warned, w.said())
	}
	if got := strings.Count(w.said(), "again"); got != settled {
		w.Errorf("said %d times that gates agree, want %d: %s", got, settled, w.said())
	}
}

func TestGatesThatDifferAreSaidOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		w.after(0, Seen{true, 1, 0}, 0, 0)
		same, odd := w.other("x"), w.other("y")
		w.after(2*every, Seen{true, 3, 1}, 0, 0)
		w.after(patience, Seen{true, 3, 1}, 1, 0)
		w.after(time.Hour, Seen{true, 3, 1}, 1, 0)
		odd.Close()
		w.after(every, Seen{true, 2, 0}, 1, 0)
		w.after(patience+every, Seen{true, 2, 0}, 1, 1)
		w.set("z") // a mode is switched here, and nowhere else
		w.after(patience+2*every, Seen{true, 2, 1}, 2, 1)
		w.set("x")
		w.after(patience+2*every, Seen{true, 2, 0}, 2, 2)
		same.Close()
	})
}

func TestARolloutIsNotWarnedOf(t *testing.T) {
	inWorld(t, func(w *world) {
		for range 20 {
			odd := w.other("y")
			w.after(patience-3*every, Seen{true, 2, 1}, 0, 0)
			odd.Close()
			w.after(2*every, Seen{true, 1, 0}, 0, 0)
		}
	})
}

// A gate that was killed cannot say so.
func TestAKilledGateIsForgottenBeforeAnybodyWarns(t *testing.T) {
	inWorld(t, func(w *world) {
		if _, _, err := w.registry.Announce(w.Context(), "killed", "y", life); err != nil {
			w.Fatal(err)
		}
		w.after(every, Seen{true, 2, 1}, 0, 0)
		w.after(life+every, Seen{true, 1, 0}, 0, 0)
	})
}

func TestNothingIsKnownWhileTheStoreIsAway(t *testing.T) {
	inWorld(t, func(w *world) {
		odd := w.other("y")
		w.after(patience+2*every, Seen{true, 2, 1}, 1, 0)
		for range 3 {
			w.registry.fail(errors.New("down"))
			w.after(time.Minute, Seen{}, 1, 0)
			w.registry.fail(nil) // whoever comes back first is alone at first
			w.after(2*every, Seen{true, 2, 1}, 1, 0)
		}
		odd.Close()
	})
}

func TestAGateAnnouncesItselfEveryTwoSeconds(t *testing.T) {
	inWorld(t, func(w *world) {
		w.after(time.Minute+every/2, Seen{true, 1, 0}, 0, 0)
		w.registry.mu.Lock()
		defer w.registry.mu.Unlock()
		if w.registry.calls != 31 {
			w.Errorf("announced %d times in a minute", w.registry.calls)
		}
	})
}

func TestNoPeers(t *testing.T) {
	var none *Peers
	none.Close()
	if none.Seen() != (Seen{}) {
		t.Error("without a registry gates are seen")
	}
}
