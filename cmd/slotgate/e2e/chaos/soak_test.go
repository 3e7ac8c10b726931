package chaos

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/slotgate/slotgate/cmd/legacybooking/booking"
	"github.com/slotgate/slotgate/cmd/slotgate/e2e/stage"
)

// TestSoak lets the same gates live through one storm after the other, on each
// topology, for SLOTGATE_SOAK_TIME in all, which is 30 minutes under SLOTGATE_SOAK;
// without either through a few on one. They end as they were after the first ones.
func TestSoak(t *testing.T) {
	setups := []setup{
		{topology: "standalone", style: booking.Conditional, constraints: true, truth: true, unknown: "retry", onStoreFailure: "pass", journal: true, rejectCache: 250 * time.Millisecond},
		{topology: "sentinel", style: booking.Naive, constraints: true, truth: true, keepUnknown: true, unknown: "reject", onStoreFailure: "reject", minReplicas: true},
		{topology: "cluster", style: booking.RowLock, constraints: true, truth: true, unknown: "retry", onStoreFailure: "local"},
	}
	length := soakTime(t)
	if length == 0 {
		setups = setups[:1]
	}
	for n, s := range setups {
		t.Run(s.topology, func(t *testing.T) {
			soak(t, s, uint64(n+1)*1_000_000, length/time.Duration(len(setups)))
		})
	}
}

func soakTime(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("SLOTGATE_SOAK_TIME")
	switch {
	case text != "":
		length, err := time.ParseDuration(text)
		if err != nil {
			t.Fatalf("SLOTGATE_SOAK_TIME: %v", err)
		}
		return length
	case os.Getenv("SLOTGATE_SOAK") != "":
		return 30 * time.Minute
	}
	return 0
}

const (
	// warm rounds give the gates everything that they keep: pools of connections,
	// series of metrics, the goroutines of both.
	warm = 2
	// leastRounds and mostRounds bound a soak; the latter the lessons that it needs.
	leastRounds = 3
	mostRounds  = 2000

	fewGoroutines = 20 // may come and go with connections
)

// footprint is what a gate takes at rest.
type footprint struct {
	rss        int64 // bytes
	heap       int64 // bytes of what is alive, and of garbage that is not collected yet
	goroutines int
}

func (f footprint) String() string {
	return fmt.Sprintf("%.1f MiB, %.1f of them heap, %d goroutines", float64(f.rss)/(1<<20), float64(f.heap)/(1<<20), f.goroutines)
}

// soak carries out storms with the faults and clients of successive seeds, all under
// one setup, and lets no gate be restarted: only so can it be seen to grow.
func soak(t *testing.T, s setup, seed uint64, length time.Duration) {
	a := build(t, s, mostRounds)
	var before [gates]footprint
	began := time.Now()
	round := 0
	for ; round < leastRounds || round < mostRounds && time.Since(began) < length; round++ {
		p := s.plan(seed + uint64(round))
		p.faults = withoutRestarts(p.faults)
		a.run(t, p, 1+round*lessons)
		if t.Failed() {
			t.Fatalf("round %d, after %v", round, time.Since(began).Round(time.Second))
		}
		if round%10 == 9 {
			t.Logf("round %d, after %v: %v, %v", round, time.Since(began).Round(time.Second), a.footprint(0), a.footprint(1))
		}
		if round+1 == warm {
			for i := range before {
				before[i] = a.footprint(i)
			}
		}
	}
	for i, was := range before {
		stage.Eventually(t, quiet, func() string {
			now := a.footprint(i)
			if now.goroutines > was.goroutines+fewGoroutines || now.rss > was.rss+rssGrowth {
				return fmt.Sprintf("gate %d has grown from %v to %v", i, was, now)
			}
			return ""
		})
		t.Logf("gate %d after %d rounds in %v: %v; after the first %d: %v", i, round, time.Since(began).Round(time.Second), a.footprint(i), warm, was)
	}
}

// footprint of a gate at this moment.
func (a *arena) footprint(i int) footprint {
	a.t.Helper()
	gate := a.gate(i)
	return footprint{gate.RSS(), int64(gate.Metric("go_memstats_heap_alloc_bytes")), int(gate.Metric("go_goroutines"))}
}

// quiet is the time that a gate is given to end what belongs to requests that are over.
const quiet = 20 * time.Second

// rssGrowth is what may come and go with garbage, in bytes.
var rssGrowth = map[bool]int64{false: 32 << 20, true: 192 << 20}[stage.Race]

// withoutRestarts leaves the faults under which a gate stays the same process.
func withoutRestarts(faults []fault) (rest []fault) {
	for _, f := range faults {
		if f.kind != "gate killed" && f.kind != "gate stopped" {
			rest = append(rest, f)
		}
	}
	return rest
}
