package chaos

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/slotgate/slotgate/cmd/legacybooking/booking"
)

// plan is one storm, all of it drawn from its seed.
type plan struct {
	seed uint64
	setup
	length  time.Duration
	clients [][]step
	faults  []fault // by time
}

// setup is what a storm runs on.
type setup struct {
	topology    string // standalone, sentinel, cluster
	minReplicas bool   // a master without replicas refuses to write

	style       booking.Style
	constraints bool // the database's own

	truth          bool
	keepUnknown    bool
	unknown        string // of idempotency: retry, reject
	onStoreFailure string // pass, local, reject
	maxInflight    int
	journal        bool
	rejectCache    time.Duration
}

// The lessons of a storm, small enough for all of them to sell out and for the model's
// state.
const (
	lessons  = 5
	students = 16
	clients  = 10
	pace     = 100 * time.Millisecond // between the steps of a client, on average

	// share is what a gate may admit of the seats that it last knew of, under local.
	share = 0.5
)

// seats of every lesson.
const seats = 5

// step is one thing that a client does.
type step struct {
	at      time.Duration // not sooner
	kind    stepKind
	lesson  int // from 1
	student int
	gate    int
	key     string
	retries int           // with the same key, when there was no final answer
	pause   time.Duration // before each of them
}

type stepKind string

const (
	stepBook   stepKind = "book"
	stepTwins  stepKind = "twins"  // the same request through both gates at once
	stepThief  stepKind = "thief"  // the key of an earlier request, by somebody else
	stepCancel stepKind = "cancel" // by who has booked what
	stepReturn stepKind = "return" // by the booking that the client was told of last
)

// fault is one thing that goes wrong for a while.
type fault struct {
	kind   faultKind
	at     time.Duration
	lasts  time.Duration
	target int // which gate or server
	nth    int // which of the commands, where the kind counts them
}

func (f fault) String() string {
	return fmt.Sprintf("%-22s at %5dms for %4dms, target %d, nth %d", f.kind, f.at.Milliseconds(), f.lasts.Milliseconds(), f.target, f.nth)
}

// draw makes the plan of a seed. Each part has its own stream of random numbers, so
// that a change of one part leaves the others of a kept seed as they were.
func draw(seed uint64) plan {
	return drawSetup(rand.New(rand.NewPCG(seed, 1))).plan(seed)
}

// plan draws all but the setup.
func (s setup) plan(seed uint64) plan {
	p := plan{seed: seed, setup: s}
	p.length = 4 * time.Second
	if p.topology != "standalone" {
		p.length = 7 * time.Second // to see the end of a failover
	}
	p.faults = p.drawFaults(rand.New(rand.NewPCG(seed, 2)))
	for client := range clients {
		p.clients = append(p.clients, drawSteps(rand.New(rand.NewPCG(seed, 3+uint64(client))), p.length))
	}
	return p
}

func drawSetup(r *rand.Rand) setup {
	s := setup{
		topology:       pick(r, "standalone", "standalone", "sentinel", "cluster"),
		minReplicas:    r.IntN(2) == 0,
		constraints:    r.IntN(3) > 0,
		style:          pick(r, booking.Naive, booking.Conditional, booking.RowLock),
		truth:          r.IntN(3) > 0,
		keepUnknown:    r.IntN(2) == 0,
		unknown:        pick(r, "retry", "reject"),
		onStoreFailure: pick(r, "pass", "local", "reject"),
		maxInflight:    pick(r, 0, 0, 1, 3),
		journal:        r.IntN(2) == 0,
		rejectCache:    pick(r, 0, 250*time.Millisecond),
	}
	if !s.constraints {
		// Without them the gate is alone: these are what it then asks for.
		s.style, s.truth, s.keepUnknown, s.unknown = booking.Naive, true, true, "reject"
	}
	return s
}

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

func drawSteps(r *rand.Rand, length time.Duration) (steps []step) {
	for at := between(r, 0, pace); at < length; at += between(r, pace/2, pace*3/2) {
		s := step{
			at: at, lesson: 1 + r.IntN(lessons), student: 1 + r.IntN(students), gate: r.IntN(gates),
			key: fmt.Sprintf("%016x", r.Uint64()), retries: r.IntN(3), pause: between(r, 50*time.Millisecond, 300*time.Millisecond),
		}
		switch n := r.IntN(100); {
		case n < 60:
			s.kind = stepBook
		case n < 70:
			s.kind = stepTwins
		case n < 75 && len(steps) > 0:
			earlier := steps[r.IntN(len(steps))]
			s.kind, s.lesson, s.student, s.key = stepThief, earlier.lesson, earlier.student, earlier.key
		case n < 88:
			s.kind = stepCancel
		default:
			s.kind = stepReturn
		}
		steps = append(steps, s)
	}
	return steps
}

func between(r *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(r.Int64N(int64(most-least)))
}

// String is the whole plan, for the log of a storm that failed.
func (p plan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d: %s", p.seed, p.setup)
	for _, f := range p.faults {
		fmt.Fprintf(&b, "\n  %v", f)
	}
	return b.String()
}

func (s setup) String() string {
	words := []string{s.topology, string(s.style), "on_store_failure " + s.onStoreFailure, "unknown " + s.unknown}
	for word, on := range map[string]bool{
		"min-replicas": s.minReplicas && s.topology != "standalone", "constraints": s.constraints, "no constraints": !s.constraints,
		"truth": s.truth, "keep_unknown": s.keepUnknown, "journal": s.journal,
	} {
		if on {
			words = append(words, word)
		}
	}
	slices.Sort(words[4:])
	return strings.Join(append(words, fmt.Sprintf("max_inflight %d, reject_cache %v", s.maxInflight, s.rejectCache)), ", ")
}
