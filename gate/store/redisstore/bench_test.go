package redisstore

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/gate/testbed"
	"github.com/slotgate/slotgate/rules"
)

// booking is one request of many for one of many slots, with a key, a subject and
// all limits, as a popular opening sends them.
func booking(n int64) *store.Decide {
	return &store.Decide{
		ID: fmt.Sprintf("request-%012d", n), Rule: "book",
		Pool: "lessons", Slot: fmt.Sprintf("lesson-%d", n%100), Subject: fmt.Sprintf("student-%d", n), Units: 1,
		Capacity: 1 << 30, HoldTTL: 30 * time.Second, Retain: time.Hour, OnePerSubject: true, Lease: 10 * time.Second,
		Group: "book", Key: fmt.Sprintf("key-%016d", n), KeyTTL: time.Hour, Scope: "alice",
		SlotLimit: store.Limit{Count: 1 << 20, Per: time.Second, Burst: 1 << 20},
	}
}

func settling(d *store.Decide, got store.Decided, outcome rules.Outcome) *store.Settle {
	return &store.Settle{
		ID: d.ID, Hold: got.Hold, Action: d.Action, Truth: d.Truth, Pool: d.Pool, Slot: d.Slot, Subject: d.Subject, Units: d.Units,
		Capacity: d.Capacity, HoldTTL: d.HoldTTL, Retain: d.Retain, MaxPerSubject: d.MaxPerSubject,
		KeepUnknown: d.KeepUnknown, ReleaseSeq: got.ReleaseSeq, Probe: got.Probe, Outcome: outcome,
		Group: d.Group, Partition: d.Partition, Key: d.Key, KeyTTL: d.KeyTTL,
		Keep: outcome == rules.Booked, Answer: []byte("answer of " + d.ID), Scope: d.Scope, Fingerprint: d.Fingerprint,
	}
}

// cpuOf is what a server has used of the processors, in µs.
func cpuOf(b *testing.B, s *Store) (us float64) {
	info, err := s.client.Info(context.Background(), "cpu").Result()
	if err != nil {
		b.Fatal(err)
	}
	for _, found := range regexp.MustCompile(`used_cpu_(?:sys|user):([\d.]+)`).FindAllStringSubmatch(info, -1) {
		seconds, _ := strconv.ParseFloat(found[1], 64)
		us += seconds * 1e6
	}
	return us
}

// benchmark runs one call in parallel and reports besides what the script took inside
// Redis, by the clock, and what Redis took of the processors for each call in all.
func benchmark(b *testing.B, prepare func(s *Store, n int64), call func(s *Store, n int64) error) {
	server := testbed.Redis(b)
	s := openStore(b, server.Addr())
	ctx := context.Background()
	if prepare != nil {
		for n := range int64(b.N) {
			prepare(s, n)
		}
	}
	if err := s.client.ConfigResetStat(ctx).Err(); err != nil {
		b.Fatal(err)
	}
	var next atomic.Int64
	b.SetParallelism(16)
	before := cpuOf(b, s)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := call(s, next.Add(1)-1); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.StopTimer()
	b.ReportMetric((cpuOf(b, s)-before)/float64(b.N), "redis-cpu-µs")
	info, err := s.client.Info(ctx, "commandstats").Result()
	if err != nil {
		b.Fatal(err)
	}
	if found := regexp.MustCompile(`cmdstat_evalsha:calls=\d+,usec=\d+,usec_per_call=([\d.]+)`).FindStringSubmatch(info); found != nil {
		us, _ := strconv.ParseFloat(found[1], 64)
		b.ReportMetric(us, "script-µs")
	}
}

func admitted(s *Store, d *store.Decide) (store.Decided, error) {
	got, err := s.Decide(context.Background(), d)
	if err == nil && got.Verdict != decision.Admitted {
		err = fmt.Errorf("verdict %s", got.Verdict)
	}
	return got, err
}

func BenchmarkDecide(b *testing.B) {
	b.Run("admitted", func(b *testing.B) {
		benchmark(b, nil, func(s *Store, n int64) error {
			_, err := admitted(s, booking(n))
			return err
		})
	})
	b.Run("sold_out", func(b *testing.B) {
		benchmark(b, func(s *Store, n int64) {
			if n == 0 {
				for slot := range int64(100) {
					_, _ = admitted(s, booking(slot))
				}
			}
		}, func(s *Store, n int64) error {
			d := booking(n + 100)
			d.Capacity = 1
			_, err := s.Decide(context.Background(), d)
			return err
		})
	})
	b.Run("replay", func(b *testing.B) {
		benchmark(b, func(s *Store, n int64) {
			if n == 0 {
				d := booking(0)
				got, _ := admitted(s, d)
				_, _ = s.Settle(context.Background(), settling(d, got, rules.Booked))
			}
		}, func(s *Store, n int64) error {
			d := booking(0)
			d.ID = fmt.Sprintf("retry-%016d", n)
			got, err := s.Decide(context.Background(), d)
			if err == nil && got.Verdict != decision.Replay {
				err = fmt.Errorf("verdict %s", got.Verdict)
			}
			return err
		})
	})
}

func BenchmarkSettle(b *testing.B) {
	for _, outcome := range []rules.Outcome{rules.Booked, rules.Refused} {
		b.Run(outcome.String(), func(b *testing.B) {
			benchmark(b, func(s *Store, n int64) {
				if _, err := admitted(s, booking(n)); err != nil {
					b.Fatal(err)
				}
			}, func(s *Store, n int64) error {
				d := booking(n)
				settled, err := s.Settle(context.Background(), settling(d, store.Decided{Hold: d.ID}, outcome))
				if err == nil && !settled.Applied {
					err = fmt.Errorf("not applied")
				}
				return err
			})
		})
	}
}

func BenchmarkEncodeDecide(b *testing.B) {
	s := openStore(b, "127.0.0.1:1")
	n := newNames("secret")
	d := booking(1)
	b.ReportAllocs()
	for b.Loop() {
		s.encodeDecide(n, d, slotPart{})
	}
}
