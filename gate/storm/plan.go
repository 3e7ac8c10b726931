package storm

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"sync"
	"time"
)

// order is one request to send.
type order struct {
	n       int
	subject int
	target  int
	twins   *twins // nil for a request that is sent once
	repeat  bool
	due     time.Time // not to be sent earlier
}

// plan deals out the orders of one storm, each once, in a sequence that the
// seed fixes. A request and its twin are dealt next to each other, so that at
// any time at most one of them waits for a client that takes the other. It is
// safe for concurrent use.
type plan struct {
	mu       sync.Mutex
	random   *rand.Rand
	targets  int
	numbers  []uint32 // shuffled, so that n%20 is not tied to the target's turn
	subjects []uint32 // shuffled anew each time all have had their turn
	position int
	repeats  int    // twins still to choose
	twin     *order // to be dealt next
	interval time.Duration
	free     time.Time // when the rate allows the next request
}

func newPlan(o Options) *plan {
	p := &plan{
		random:   rand.New(rand.NewPCG(o.Seed, 0)),
		targets:  len(o.Targets),
		numbers:  make([]uint32, o.Requests),
		subjects: make([]uint32, o.Subjects),
		repeats:  o.repeats(),
	}
	for i := range p.numbers {
		p.numbers[i] = uint32(i)
	}
	for i := range p.subjects {
		p.subjects[i] = uint32(i + 1)
	}
	p.shuffle(p.numbers)
	if o.Rate > 0 {
		p.interval = time.Duration(float64(time.Second) / o.Rate)
	}
	return p
}

func (p *plan) shuffle(list []uint32) {
	p.random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
}

// next deals one order; false means that none is left.
func (p *plan) next(now time.Time) (order, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if twin := p.twin; twin != nil {
		p.twin = nil
		return *twin, true
	}
	left := len(p.numbers) - p.position
	if left == 0 {
		return order{}, false
	}
	turn := p.position % len(p.subjects)
	if turn == 0 {
		p.shuffle(p.subjects)
	}
	o := order{
		n:       int(p.numbers[p.position]),
		subject: int(p.subjects[turn]),
		target:  p.position % p.targets,
		due:     p.reserve(now),
	}
	p.position++
	// Chosen with this chance, every subset of the right size is equally likely.
	if p.random.IntN(left) < p.repeats {
		p.repeats--
		o.twins = newTwins()
		twin := o
		twin.repeat = true
		twin.target = (o.target + 1) % p.targets
		p.twin = &twin
		p.free = p.free.Add(p.interval)
	}
	return o, true
}

// reserve gives the time of the next request under the rate. Time in which
// nobody asked is not made up for: the rate is never exceeded, even briefly.
func (p *plan) reserve(now time.Time) time.Time {
	due := now
	if p.free.After(now) {
		due = p.free
	}
	p.free = due.Add(p.interval)
	return due
}

// keyOf is the idempotency key of request n.
func keyOf(seed uint64, n int) string {
	source := rand.NewPCG(seed, uint64(n)+1)
	var key [16]byte
	binary.BigEndian.PutUint64(key[:8], source.Uint64())
	binary.BigEndian.PutUint64(key[8:], source.Uint64())
	return hex.EncodeToString(key[:])
}
