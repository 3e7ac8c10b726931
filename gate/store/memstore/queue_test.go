package memstore

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

type job struct {
	deadline
	id int
}

func TestQueueHandsOutTheSoonest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q queue[*job]
		jobs := make([]*job, 20)
		for i := range jobs {
			jobs[i] = &job{id: i}
		}
		waiting := map[*job]int64{}
		for range 100 {
			x := rapid.SampledFrom(jobs).Draw(t, "job")
			if rapid.Bool().Draw(t, "put") {
				at := rapid.Int64Range(0, 30).Draw(t, "at")
				q.put(x, at)
				waiting[x] = at
			} else {
				q.remove(x)
				delete(waiting, x)
			}
			soonest := int64(100)
			for _, at := range waiting {
				soonest = min(soonest, at)
			}
			if first, ok := q.due(99); ok != (len(waiting) > 0) || ok && first.at != soonest {
				t.Fatalf("soonest is due at %d of %v", soonest, waiting)
			}
			if _, ok := q.due(soonest - 1); ok {
				t.Fatalf("due before %d", soonest)
			}
			if len(q) != len(waiting) {
				t.Fatalf("%d wait, want %d", len(q), len(waiting))
			}
		}
		var out []int64
		for len(q) > 0 {
			x, _ := q.due(99)
			out = append(out, x.at)
			q.remove(x)
		}
		if !slices.IsSorted(out) {
			t.Fatalf("out of order: %v", out)
		}
	})
}
