package redisstore

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/slotgate/slotgate/gate/testbed"
	"github.com/slotgate/slotgate/rules"
)

// BenchmarkCallers is decide and settle by so many callers at the same time, with Redis near
// and further away. It tells the CPU time of a call here (far: with the proxy that delays)
// and in Redis.
func BenchmarkCallers(b *testing.B) {
	for _, added := range []time.Duration{0, 200 * time.Microsecond, time.Millisecond} {
		for _, callers := range []int{1, 16, 64, 256} {
			b.Run(fmt.Sprintf("added=%v/callers=%d", added, callers), func(b *testing.B) {
				benchmarkCallers(b, added, callers)
			})
		}
	}
}

func benchmarkCallers(b *testing.B, added time.Duration, callers int) {
	server := testbed.Redis(b)
	address := server.Addr()
	if added > 0 {
		proxy := testbed.Proxy(b, address)
		proxy.DelayReplies(added)
		address = proxy.Addr()
	}
	s := openStore(b, address)
	bookingByMany(b, s, callers, 0, make([]time.Duration, 2*callers)) // opens connections
	took := make([]time.Duration, 2*b.N)
	b.ReportAllocs()
	here, there := processTime(b), cpuOf(b, s)
	b.ResetTimer()
	bookingByMany(b, s, callers, int64(callers), took)
	b.StopTimer()
	here, there = processTime(b)-here, cpuOf(b, s)-there
	slices.Sort(took)
	calls := float64(len(took))
	b.ReportMetric(calls/b.Elapsed().Seconds(), "calls/s")
	b.ReportMetric(float64(here.Microseconds())/calls, "µs-here/call")
	b.ReportMetric(there/calls, "µs-redis/call")
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "µs-p50")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "µs-p99")
	b.ReportMetric(0, "ns/op")
}

// bookingByMany books from first on, as many as there is room to note how long both calls took.
func bookingByMany(b *testing.B, s *Store, callers int, first int64, took []time.Duration) {
	var all sync.WaitGroup
	var next atomic.Int64
	for range callers {
		all.Go(func() {
			for {
				n := next.Add(1) - 1
				if 2*n >= int64(len(took)) {
					return
				}
				d := booking(first + n)
				start := time.Now()
				got, err := admitted(s, d)
				decided := time.Now()
				if err == nil {
					_, err = s.Settle(context.Background(), settling(d, got, rules.Booked))
				}
				if err != nil {
					b.Error(err)
					return
				}
				took[2*n], took[2*n+1] = decided.Sub(start), time.Since(decided)
			}
		})
	}
	all.Wait()
}

// processTime is the CPU time of this process.
func processTime(b *testing.B) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
