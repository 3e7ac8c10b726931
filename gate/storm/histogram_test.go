package storm

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"
)

func TestHistogramBucketsMeet(t *testing.T) {
	for bucket := range buckets - 1 {
		limit := limitOf(bucket)
		if got := bucketOf(limit - time.Microsecond); got != bucket {
			t.Fatalf("just below %v is bucket %d, want %d", limit, got, bucket)
		}
		if got := bucketOf(limit); got != bucket+1 {
			t.Fatalf("%v is bucket %d, want %d", limit, got, bucket+1)
		}
	}
	for _, d := range []time.Duration{time.Hour, 1<<63 - 1} {
		if got := bucketOf(d); got != buckets-1 {
			t.Errorf("%v is bucket %d, want the last", d, got)
		}
	}
	if got := bucketOf(-time.Second); got != 0 {
		t.Errorf("a negative latency is bucket %d, want 0", got)
	}
}

func TestHistogramQuantilesAgreeWithSorting(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	var h Histogram
	var all []time.Duration
	for range 5000 {
		d := time.Duration(random.ExpFloat64() * float64(20*time.Millisecond))
		h.Record(d)
		all = append(all, d)
	}
	slices.Sort(all)
	for _, q := range []float64{0, 0.01, 0.5, 0.9, 0.99, 0.999, 1} {
		exact := all[max(int(q*5000)-1, 0)]
		got := h.Quantile(q)
		if got < exact || got > exact+exact/100+time.Microsecond {
			t.Errorf("quantile %v is %v, exact %v", q, got, exact)
		}
	}
	if h.Count() != 5000 || h.Max() != all[4999] {
		t.Errorf("count %d max %v, want 5000 and %v", h.Count(), h.Max(), all[4999])
	}
}

func TestHistogramRows(t *testing.T) {
	var h Histogram
	if h.Rows() != nil || h.Quantile(0.5) != 0 {
		t.Error("an empty histogram has rows or a median")
	}
	for _, d := range []time.Duration{
		999 * time.Microsecond, time.Millisecond, 1999 * time.Microsecond, 2 * time.Millisecond, 11 * time.Millisecond,
	} {
		h.Record(d)
	}
	want := []Row{{time.Millisecond, 1}, {2 * time.Millisecond, 2}, {5 * time.Millisecond, 1}, {10 * time.Millisecond, 0}, {20 * time.Millisecond, 1}}
	if got := h.Rows(); !reflect.DeepEqual(got, want) {
		t.Errorf("rows %v, want %v", got, want)
	}
	h.Record(time.Hour)
	if rows := h.Rows(); rows[len(rows)-1].Count != 1 {
		t.Errorf("the last row of %v does not hold the hour", rows)
	}
}
