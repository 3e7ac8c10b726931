package chaos

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"
)

// faultKind names what goes wrong.
type faultKind string

// lane is a part of the arena that has one fault at a time.
type lane []struct {
	kind faultKind
	on   []string // topologies; none: all
}

var (
	storeLane = lane{
		{"store restarts empty", []string{"standalone"}},
		{"store restarts", nil},
		{"store frozen", nil},
		{"store fails over", []string{"sentinel", "cluster"}},
		{"store slow to answer", nil},
		{"store slow to hear", nil},
		{"store replies dropped", nil},
		{"store wire frozen", nil},
		{"store cut off", nil},
		{"store reply cut", nil},
		{"store request cut", nil},
		{"store reply corrupted", nil},
		{"store connections cut", nil},
		{"store scripts flushed", nil},
		{"store flushed", nil},
	}
	backendLane = lane{
		{"backend refuses", nil},
		{"backend commits late", nil},
		{"backend cut", nil},
		{"backend error", nil},
		{"backend garbage", nil},
		{"backend stray", nil},
		{"backend silent", nil},
		{"backend hangs", nil},
		{"backend overloaded", nil},
		{"backend throttles", nil},
	}
	gateLane = lane{
		{"gate killed", nil},
		{"gate stopped", nil},
		{"gate frozen", nil},
		{"gate hung up on", nil},
	}
)

// gates of every storm.
const gates = 2

// drawFaults fills the lanes, each with up to two faults, the store's with up to three.
func (p *plan) drawFaults(r *rand.Rand) (faults []fault) {
	for _, l := range []struct {
		lane
		most    int
		longest time.Duration
	}{
		{storeLane, 3, p.outage()},
		{backendLane, 2, time.Second},
		{gateLane, 2, time.Second},
	} {
		kinds := l.of(p.topology)
		at := between(r, 300*time.Millisecond, 1500*time.Millisecond)
		for n := r.IntN(l.most + 1); n > 0 && at < p.length; n-- {
			f := fault{kind: pick(r, kinds...), at: at, lasts: between(r, 100*time.Millisecond, l.longest), target: r.IntN(6), nth: 1 + r.IntN(8)}
			faults = append(faults, f)
			at += f.lasts + between(r, 200*time.Millisecond, time.Second)
		}
	}
	slices.SortStableFunc(faults, func(a, b fault) int { return cmp.Compare(a.at, b.at) })
	return faults
}

// outage is the longest that a store is away: long enough for others to replace it,
// where there are others.
func (p *plan) outage() time.Duration {
	if p.topology == "standalone" {
		return 1500 * time.Millisecond
	}
	return 3 * time.Second
}

func (l lane) of(topology string) (kinds []faultKind) {
	for _, f := range l {
		if len(f.on) == 0 || slices.Contains(f.on, topology) {
			kinds = append(kinds, f.kind)
		}
	}
	return kinds
}
