package storm

import (
	"math"
	"time"
)

// Histogram counts latencies with three significant digits, from 1 µs to about
// 17 minutes; longer ones are counted in the last bucket and in Max exactly. It
// takes 26 KB and counts to 4 billion in each bucket, of 20 million that a storm
// can send.
// The zero value is ready to use. It is not safe for concurrent use.
type Histogram struct {
	counts [buckets]uint32
	total  int
	max    time.Duration
}

const (
	exact     = 1000 // one bucket a microsecond below 1 ms
	perDecade = 900  // then 100 to 999 times a power of ten
	decades   = 6
	buckets   = exact + decades*perDecade
)

// Record counts one latency.
func (h *Histogram) Record(d time.Duration) {
	h.counts[bucketOf(d)]++
	h.total++
	h.max = max(h.max, d)
}

func bucketOf(d time.Duration) int {
	us := max(d.Microseconds(), 0)
	if us < exact {
		return int(us)
	}
	for decade := range decades {
		us /= 10
		if us < exact {
			return exact + decade*perDecade + int(us) - 100
		}
	}
	return buckets - 1
}

// limitOf is where a bucket ends: all of its latencies are below.
func limitOf(bucket int) time.Duration {
	if bucket < exact {
		return time.Duration(bucket+1) * time.Microsecond
	}
	limit := time.Duration((bucket-exact)%perDecade+101) * time.Microsecond
	for range (bucket-exact)/perDecade + 1 {
		limit *= 10
	}
	return limit
}

// Add counts what the other has counted.
func (h *Histogram) Add(other *Histogram) {
	for i, count := range other.counts {
		h.counts[i] += count
	}
	h.total += other.total
	h.max = max(h.max, other.max)
}

// Count is the number of latencies recorded.
func (h *Histogram) Count() int { return h.total }

// Max is the longest latency, exact.
func (h *Histogram) Max() time.Duration { return h.max }

// Quantile is the latency that the share q (0 to 1) of all did not exceed, at
// most 1 % or 1 µs too high, and 0 when none was recorded.
func (h *Histogram) Quantile(q float64) time.Duration {
	if h.total == 0 {
		return 0
	}
	rank := max(int(math.Ceil(q*float64(h.total))), 1)
	for i, count := range h.counts {
		if rank -= int(count); rank <= 0 {
			return min(limitOf(i), h.max)
		}
	}
	return h.max
}

// Row is a range of latencies, from the row before it up to and without Limit.
type Row struct {
	Limit time.Duration
	Count int
}

// Rows sums the counts in a 1-2-5 series from the first row that has any to the
// last, for people to look at.
func (h *Histogram) Rows() []Row {
	var rows []Row
	bucket, seen := 0, 0
	for limit, step := 100*time.Microsecond, 0; seen < h.total; step++ {
		row := Row{Limit: limit}
		for bucket < buckets && limitOf(bucket) <= limit {
			row.Count += int(h.counts[bucket])
			bucket++
		}
		if bucket == buckets {
			row.Limit = limitOf(buckets - 1)
		}
		seen += row.Count
		if row.Count > 0 || len(rows) > 0 {
			rows = append(rows, row)
		}
		if step%3 == 1 {
			limit = limit / 2 * 5
		} else {
			limit *= 2
		}
	}
	return rows
}
