package storm

import (
	"encoding/json"
	"time"
)

// The intervals of a Timeline: how many it may have, and how wide they are at first.
const (
	maxIntervals  = 240
	firstInterval = 25 * time.Millisecond
)

// Timeline counts what came back when, in intervals of equal width without gaps. It
// does not grow with the storm: when maxIntervals are full, each two neighbours become
// one and the width doubles, so that a storm of five seconds is told in intervals of
// 25 ms and one of an hour in intervals of 26 s. At its largest it takes about 7 MB.
// The zero value is ready to use. It is not safe for concurrent use.
type Timeline struct {
	width     time.Duration
	intervals []*Interval
}

// Interval is what came back between From and To after the first request.
type Interval struct {
	From, To  time.Duration
	Statuses  map[int]int
	Decisions map[string]int // by Gate-Decision, where answers had it
	Errors    int            // requests without an answer
	Latency   Histogram      // of answers
}

// Intervals are in order, from the first request to the last answer.
func (t *Timeline) Intervals() []*Interval { return t.intervals }

// at is the interval of an instant that lies so long after the first request.
func (t *Timeline) at(since time.Duration) *Interval {
	since = max(since, 0)
	if t.width == 0 {
		t.width = firstInterval
	}
	for since/t.width >= maxIntervals {
		t.merge()
	}
	index := int(since / t.width)
	for i := len(t.intervals); i <= index; i++ {
		from := time.Duration(i) * t.width
		t.intervals = append(t.intervals, &Interval{
			From: from, To: from + t.width, Statuses: map[int]int{}, Decisions: map[string]int{},
		})
	}
	return t.intervals[index]
}

// merge makes one interval of each two.
func (t *Timeline) merge() {
	t.width *= 2
	half := (len(t.intervals) + 1) / 2
	for i := range half {
		whole := t.intervals[2*i]
		if next := 2*i + 1; next < len(t.intervals) {
			whole.add(t.intervals[next])
		}
		whole.To = whole.From + t.width
		t.intervals[i] = whole
	}
	clear(t.intervals[half:])
	t.intervals = t.intervals[:half]
}

func (i *Interval) add(next *Interval) {
	i.To = next.To
	for status, count := range next.Statuses {
		i.Statuses[status] += count
	}
	for name, count := range next.Decisions {
		i.Decisions[name] += count
	}
	i.Errors += next.Errors
	i.Latency.Add(&next.Latency)
}

// close ends the last interval with the storm. If less than half of it has passed, it
// joins the one before: a rate over so short a time says nothing.
func (t *Timeline) close(elapsed time.Duration) {
	t.at(elapsed).To = elapsed
	if last := len(t.intervals) - 1; last > 0 && elapsed-t.intervals[last].From < t.width/2 {
		t.intervals[last-1].add(t.intervals[last])
		t.intervals = t.intervals[:last]
	}
}

// MarshalJSON writes the intervals as a list.
func (t *Timeline) MarshalJSON() ([]byte, error) {
	type point struct {
		From      float64        `json:"from_ms"`
		To        float64        `json:"to_ms"`
		P50       float64        `json:"p50_ms"`
		P99       float64        `json:"p99_ms"`
		Statuses  map[int]int    `json:"statuses"`
		Decisions map[string]int `json:"gate_decisions"`
		Errors    int            `json:"transport_errors"`
	}
	points := []point{}
	for _, i := range t.intervals {
		points = append(points, point{
			milliseconds(i.From), milliseconds(i.To), milliseconds(i.Latency.Quantile(0.5)), milliseconds(i.Latency.Quantile(0.99)),
			i.Statuses, i.Decisions, i.Errors,
		})
	}
	return json.Marshal(points)
}
