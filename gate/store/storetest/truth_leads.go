package storetest

import (
	"context"
	"time"
)

// leadTTL is how long a leader of these tests leads without renewing.
const leadTTL = 30 * time.Second

// leadTests are about who looks for all gates of a pool.
var leadTests = []test{
	{"one leads a pool, and goes on as long as it renews", func(f *fixture) {
		fence := f.leads(pool, "gate-a")
		for range 3 {
			f.follows(pool, "gate-b")
			f.Advance(leadTTL - moment)
			if got := f.leads(pool, "gate-a"); got != fence {
				f.Fatalf("fence %d, want %d", got, fence)
			}
		}
	}},
	{"another takes over when it does not, with a larger fence", func(f *fixture) {
		first := f.leads(pool, "gate-a")
		f.Advance(leadTTL + moment)
		second := f.leads(pool, "gate-b")
		f.follows(pool, "gate-a")
		f.Advance(leadTTL + moment)
		if third := f.leads(pool, "gate-a"); first < 1 || second <= first || third <= second {
			f.Fatalf("fences %d, %d, %d", first, second, third)
		}
	}},
	{"who resigns lets another lead at once, with a larger fence", func(f *fixture) {
		first := f.leads(pool, "gate-a")
		f.resign(pool, "gate-b")
		f.follows(pool, "gate-b")
		f.resign(pool, "gate-a")
		if second := f.leads(pool, "gate-b"); second <= first {
			f.Fatalf("fences %d, %d", first, second)
		}
		f.resign(pool, "gate-a")
		f.follows(pool, "gate-a")
	}},
	{"pools are led apart", func(f *fixture) {
		f.leads(pool, "gate-a")
		f.leads("seats", "gate-b")
		f.follows(pool, "gate-b")
		f.resign("seats", "gate-b")
		f.follows(pool, "gate-b")
	}},
}

func (f *fixture) lead(pool, who string) (int64, bool) {
	f.Helper()
	fence, ok, err := f.truth().Lead(context.Background(), pool, who, leadTTL)
	if err != nil {
		f.Fatalf("lead: %v", err)
	}
	return fence, ok
}

// leads fails unless who leads the pool, and returns its fence.
func (f *fixture) leads(pool, who string) int64 {
	f.Helper()
	fence, ok := f.lead(pool, who)
	if !ok {
		f.Fatalf("%s does not lead %s", who, pool)
	}
	return fence
}

func (f *fixture) follows(pool, who string) {
	f.Helper()
	if _, ok := f.lead(pool, who); ok {
		f.Fatalf("%s leads %s", who, pool)
	}
}

func (f *fixture) resign(pool, who string) {
	f.Helper()
	if err := f.truth().Resign(context.Background(), pool, who); err != nil {
		f.Fatalf("resign: %v", err)
	}
}
