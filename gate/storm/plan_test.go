package storm

import (
	"reflect"
	"testing"
	"time"
)

// deal takes every order of a plan. The pointers to twins are replaced by
// nothing, since two plans never share them.
func deal(o Options) []order {
	p := newPlan(o)
	var orders []order
	for {
		next, more := p.next(time.Unix(0, 0))
		if !more {
			return orders
		}
		next.twins = nil
		orders = append(orders, next)
	}
}

func planOptions() Options {
	return Options{Targets: []string{"a", "b", "c"}, Requests: 1000, Subjects: 300, RetriesSameKey: 0.2, Seed: 7, Clients: 2}
}

func TestPlanDealsEachNumberOnceAndItsTwinNext(t *testing.T) {
	o := planOptions()
	orders := deal(o)
	if len(orders) != 1200 {
		t.Fatalf("%d orders, want 1000 and 200 twins", len(orders))
	}
	numbers, subjects := map[int]int{}, map[int]int{}
	position := 0
	for i, got := range orders {
		if got.repeat {
			first := orders[i-1]
			if first.repeat || first.n != got.n || first.subject != got.subject || got.target != (first.target+1)%3 || !first.due.Equal(got.due) {
				t.Errorf("twin %+v follows %+v", got, first)
			}
			continue
		}
		if got.target != position%3 {
			t.Errorf("request %d goes to target %d", position, got.target)
		}
		position++
		numbers[got.n]++
		subjects[got.subject]++
	}
	if len(numbers) != 1000 || numbers[0] != 1 || numbers[999] != 1 {
		t.Errorf("%d distinct numbers, want each of 0 to 999 once", len(numbers))
	}
	if len(subjects) != 300 || subjects[0] != 0 {
		t.Errorf("%d subjects, want 1 to 300", len(subjects))
	}
	for subject, count := range subjects {
		if count < 3 || count > 4 {
			t.Errorf("subject %d sends %d of 1000 requests, want 3 or 4", subject, count)
		}
	}
}

func TestPlanFollowsFromTheSeed(t *testing.T) {
	o := planOptions()
	first := deal(o)
	if !reflect.DeepEqual(first, deal(o)) {
		t.Error("the same seed deals another storm")
	}
	o.Seed++
	if reflect.DeepEqual(first, deal(o)) {
		t.Error("another seed deals the same storm")
	}
}

// With n%20 tied to the turn of the target, a lesson would be fought for at one
// gate only and a storm over two gates would prove nothing.
func TestPlanSendsEachLessonToEachTarget(t *testing.T) {
	o := planOptions()
	o.Targets = []string{"a", "b"}
	seen := map[[2]int]bool{}
	for _, got := range deal(o) {
		seen[[2]int{got.n % 20, got.target}] = true
	}
	if len(seen) != 40 {
		t.Errorf("%d of 40 pairs of lesson and target", len(seen))
	}
}

func TestPlanRepeatsExactShare(t *testing.T) {
	for share, want := range map[float64]int{0: 0, 0.0004: 0, 0.001: 1, 0.5: 500, 1: 1000} {
		o := planOptions()
		o.RetriesSameKey = share
		if got := len(deal(o)) - 1000; got != want {
			t.Errorf("share %v: %d twins, want %d", share, got, want)
		}
	}
}

func TestPlanKeepsTheRate(t *testing.T) {
	o := planOptions()
	o.Rate = 100
	p := newPlan(o)
	now := time.Unix(1000, 0)
	sent := map[time.Time]int{}
	var previous time.Time
	for i := range 1200 {
		if i == 600 {
			now = now.Add(time.Hour) // nobody asked for an hour
		}
		got, _ := p.next(now)
		if got.due.Before(now) || got.due.Before(previous) {
			t.Fatalf("due %v at %v after %v", got.due, now, previous)
		}
		previous = got.due
		sent[got.due]++
	}
	// In no window of a second do more than 100 begin, and one twin's partner.
	for from := range sent {
		count := 0
		for at, n := range sent {
			if !at.Before(from) && at.Before(from.Add(time.Second)) {
				count += n
			}
		}
		if count > 101 {
			t.Errorf("%d requests in the second from %v", count, from)
		}
	}
}

func TestKeysAreDistinctAndFollowFromTheSeed(t *testing.T) {
	seen := map[string]bool{}
	for seed := range uint64(3) {
		for n := range 20_000 {
			key := keyOf(seed, n)
			if len(key) != 32 || seen[key] {
				t.Fatalf("key %q of request %d under seed %d is short or not its own", key, n, seed)
			}
			seen[key] = true
		}
	}
	first := keyOf(1, 5)
	if again := keyOf(1, 5); again != first {
		t.Errorf("request 5 has keys %s and %s", first, again)
	}
}
