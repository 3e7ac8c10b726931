package memstore

import (
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

// names are made once and before the clock runs: formatting them costs more than
// a call.
type names struct{ ids, slots, subjects, keys []string }

var million = sync.OnceValue(func() names {
	var n names
	for i := range 1_000_000 {
		n.ids = append(n.ids, fmt.Sprintf("request-%08d", i))
		n.subjects = append(n.subjects, fmt.Sprintf("student-%d", i))
		n.keys = append(n.keys, fmt.Sprintf("key-%d", i))
		n.slots = append(n.slots, fmt.Sprintf("lesson-%d", i%1000))
	}
	return n
})

// measure runs one call after another on all processors. On a machine that others
// use too, cpu-ns/op is what to look at.
func measure(b *testing.B, call func(i int64) error) {
	var next atomic.Int64
	b.ReportAllocs()
	b.ResetTimer()
	before := cpuTime()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := call(next.Add(1)); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(cpuTime()-before)/float64(b.N), "cpu-ns/op")
}

// cpuTime is what this process has used, the collector's part included.
func cpuTime() int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

func (n names) booking(i int64) *store.Decide {
	at := i % int64(len(n.ids))
	return &store.Decide{
		ID: n.ids[at], Rule: "book", Pool: "lessons", Slot: n.slots[at], Subject: n.subjects[at], Units: 1,
		Capacity: 6, HoldTTL: 30 * time.Second, Retain: time.Hour, OnePerSubject: true, Lease: 10 * time.Second,
		Group: "book", Key: n.keys[at], KeyTTL: time.Hour, Scope: "alice",
	}
}

// BenchmarkDecide is the opening of 1,000 lessons of six seats: each request has a
// key and a subject of its own, and most are told "sold out".
func BenchmarkDecide(b *testing.B) {
	n := million()
	s, _ := open(b, Options{})
	measure(b, func(i int64) error {
		_, err := s.Decide(background, n.booking(i))
		return err
	})
}

// BenchmarkAdmit takes a hold, a key, a quota and two limits in each call, while
// what is older lapses and expires.
func BenchmarkAdmit(b *testing.B) {
	n := million()
	s, c := open(b, Options{})
	measure(b, func(i int64) error {
		d := n.booking(i)
		d.Capacity, d.MaxPerSubject = 1<<40, 1<<40
		d.KeyTTL, d.Retain = 5*time.Second, 5*time.Second
		d.HoldTTL, d.Lease = 2*time.Second, time.Second
		d.SubjectLimit = store.Limit{Count: 1000, Per: time.Second, Burst: 1000}
		d.SlotLimit = store.Limit{Count: 1_000_000, Per: time.Second, Burst: 1_000_000}
		c.advance(100 * time.Microsecond)
		return want(decision.Admitted)(s.Decide(background, d))
	})
}

// BenchmarkSettle is the whole life of a booking in the store: decide, then booked.
func BenchmarkSettle(b *testing.B) {
	n := million()
	s, c := open(b, Options{})
	answer := make([]byte, 512)
	measure(b, func(i int64) error {
		d := n.booking(i)
		d.Capacity = 1 << 40
		d.KeyTTL, d.Retain = 5*time.Second, 5*time.Second
		d.HoldTTL, d.Lease = 2*time.Second, time.Second
		c.advance(100 * time.Microsecond)
		got, err := s.Decide(background, d)
		if err := want(decision.Admitted)(got, err); err != nil {
			return err
		}
		st := settlement(d, got.Hold, rules.Booked)
		st.Answer = answer
		_, err = s.Settle(background, st)
		return err
	})
}

// BenchmarkReplay is a retry of what is done.
func BenchmarkReplay(b *testing.B) {
	n := million()
	s, _ := open(b, Options{})
	const done = 10_000
	for i := range int64(done) {
		d := n.booking(i)
		d.Capacity = 1 << 40
		settle(b, s, settlement(d, decide(b, s, d).Hold, rules.Booked))
	}
	measure(b, func(i int64) error {
		d := n.booking(i % done)
		d.ID = n.keys[i%1_000_000] // an id that nobody used
		return want(decision.Replay)(s.Decide(background, d))
	})
}

func want(v decision.Verdict) func(store.Decided, error) error {
	return func(got store.Decided, err error) error {
		if err == nil && got.Verdict != v {
			err = fmt.Errorf("verdict %s, want %s", got.Verdict, v)
		}
		return err
	}
}
