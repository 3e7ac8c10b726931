package relief

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/slotgate/slotgate/gate/storm"
)

// patience is what a client has for one answer.
const patience = time.Minute

// sale is what clients saw of one opening.
type sale struct {
	others, hot    *crowd
	opened, closed time.Time // of the hot lesson: first request, last answer
}

// wait passes d, or until ctx ends.
func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// answers tells what the clients of the hot lesson were answered, for people.
func (s sale) answers() string {
	counts := map[int]int{}
	for _, e := range s.hot.seen {
		counts[e.Status]++
	}
	var parts []string
	for _, status := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d × %d", counts[status], status))
	}
	return strings.Join(parts, ", ")
}

// sell lets both crowds book at target.
func sell(ctx context.Context, o Options, target string) (sale, error) {
	s := sale{others: newCrowd(), hot: newCrowd()}
	var failed error
	var steady sync.WaitGroup
	over := make(chan struct{})
	steady.Go(func() {
		defer close(over)
		// More clients than can be waiting at that rate: nobody's wait keeps another
		// from sending.
		failed = s.others.book(ctx, target, fmt.Sprintf("{n%%%d+1}", quiet), storm.Options{
			Clients: 1000, Rate: float64(o.Rate), Requests: o.Rate * int(o.Whole/time.Second), Seed: 1,
		})
	})
	select {
	case <-over: // it failed, or has been stopped
	case <-s.others.begun:
		wait(ctx, o.Calm)
	}
	err := s.hot.book(ctx, target, fmt.Sprint(hot), storm.Options{Clients: o.Clients, Requests: o.Clients, Seed: 2})
	s.opened, s.closed = s.hot.span()
	steady.Wait()
	return s, errors.Join(err, failed)
}

// crowd are clients who book, and what each of them saw.
type crowd struct {
	begun chan struct{} // closed when the first has its answer

	mu   sync.Mutex
	seen []storm.Exchange // without what is valid only during the call
}

func newCrowd() *crowd { return &crowd{begun: make(chan struct{})} }

// book sends a storm to one lesson, or some. Keys follow from the seed.
func (c *crowd) book(ctx context.Context, target, lesson string, o storm.Options) error {
	o.Targets = []string{fmt.Sprintf("http://%s/api/lessons/%s/bookings", target, lesson)}
	o.Header = []string{"Content-Type: application/json", "Authorization: Bearer 0123456789abcdef", "Idempotency-Key: {key}"}
	o.Body = `{"student_id":"student-{n}"}`
	o.Timeout = patience
	o.OnResponse = c.see
	report, err := storm.Run(ctx, o)
	if err == nil && report.StoppedBy != "" {
		err = fmt.Errorf("the storm on lesson %s was stopped: %s", lesson, report.StoppedBy)
	}
	return err
}

func (c *crowd) see(e storm.Exchange) {
	e.Header, e.Body = nil, nil
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.seen) == 0 {
		close(c.begun)
	}
	c.seen = append(c.seen, e)
}

// booked counts the clients who have a seat.
func (c *crowd) booked() int64 {
	return c.count(func(e storm.Exchange) bool { return e.Status == http.StatusCreated })
}

// unserved counts the clients who know neither of a seat nor that there is none.
func (c *crowd) unserved() int64 {
	return c.count(func(e storm.Exchange) bool {
		return e.Status != http.StatusCreated && e.Status != http.StatusConflict
	})
}

func (c *crowd) count(is func(storm.Exchange) bool) int64 {
	var n int64
	for _, e := range c.seen {
		if is(e) {
			n++
		}
	}
	return n
}

// span is from the first request to the last answer.
func (c *crowd) span() (first, last time.Time) {
	for i, e := range c.seen {
		if end := e.Sent.Add(e.Latency); i == 0 || end.After(last) {
			last = end
		}
		if i == 0 || e.Sent.Before(first) {
			first = e.Sent
		}
	}
	return first, last
}

// p99 is that of the requests that are meant, in ms.
func (c *crowd) p99(meant func(sent, answered time.Time) bool) float64 {
	var latencies []time.Duration
	for _, e := range c.seen {
		if meant(e.Sent, e.Sent.Add(e.Latency)) {
			latencies = append(latencies, e.Latency)
		}
	}
	if len(latencies) == 0 {
		return 0
	}
	slices.Sort(latencies)
	return latencies[len(latencies)*99/100].Seconds() * 1000
}
