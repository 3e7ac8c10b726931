package redisstore

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/gate/testbed"
	"github.com/slotgate/slotgate/luascripts"
)

// However often the server goes in the middle of a load, no slot is ever written as
// verified under the run of one that is gone.
func TestNoScriptIsToldTheRunOfAServerThatIsGone(t *testing.T) {
	const restarts, workers = 5, 6
	server := testbed.Redis(t)
	soon := func(o *Options) { o.Timeout = time.Second }
	gates := []*Store{openStore(t, server.Addr(), soon), openStore(t, server.Addr(), soon)}
	for _, gate := range gates {
		connected(t, gate)
	}
	ctx, stop := context.WithCancel(context.Background())
	var load sync.WaitGroup
	var next, answered atomic.Int64
	for worker := range workers {
		load.Go(func() {
			units := int64(9)
			for ctx.Err() == nil {
				n := next.Add(1)
				d := at(fmt.Sprintf("slot-%d", n%500), n)
				var err error
				if n%7 == 0 {
					_, err = gates[worker%2].Change(ctx, query(d), store.SlotChange{Capacity: &units})
				} else {
					_, err = gates[worker%2].Decide(ctx, d)
				}
				if err == nil {
					answered.Add(1)
					continue
				}
				select { // as a client would before it asks again
				case <-ctx.Done():
				case <-time.After(5 * time.Millisecond):
				}
			}
		})
	}
	seen := map[string]bool{}
	for incarnation := range restarts {
		if incarnation > 0 {
			server.Restart()
		}
		from := answered.Load()
		eventually(t, "answers", func() bool { return answered.Load() > from+300 })
		run := runOf(t, server.Addr())
		if seen[run] {
			t.Fatalf("run %s came twice", run)
		}
		seen[run] = true
		for slot, under := range writtenUnder(t, server.Addr()) {
			if under != "none" && under != run {
				t.Errorf("incarnation %d, run %s: %q was verified under %q", incarnation, run, slot, under)
			}
		}
	}
	stop()
	load.Wait()
}

// runOf is the run of the server as a gate of its own sees it.
func runOf(t *testing.T, addr string) string {
	t.Helper()
	s := openStore(t, addr)
	connected(t, s)
	return s.server.now.Load().id
}

// writtenUnder tells under which run each slot was verified.
func writtenUnder(t *testing.T, addr string) map[string]string {
	t.Helper()
	ctx := context.Background()
	admin := redis.NewClient(&redis.Options{Addr: addr, PoolSize: 1})
	defer admin.Close()
	under := map[string]string{}
	keys := admin.Scan(ctx, 0, "slotgate:s:{*}", 1000).Iterator()
	for keys.Next(ctx) {
		run, err := admin.HGet(ctx, keys.Val(), "r").Result()
		if err != nil {
			t.Fatalf("%q: %v", keys.Val(), err)
		}
		under[keys.Val()] = run
	}
	if err := keys.Err(); err != nil {
		t.Fatal(err)
	}
	if len(under) == 0 {
		t.Fatal("no slot was written")
	}
	return under
}

// interrupted is a connection on which something happens right after a look.
type interrupted struct {
	asker
	once sync.Once
	by   func()
}

func (i *interrupted) Eval(ctx context.Context, script string, keys []string, args ...any) *redis.Cmd {
	got := i.asker.Eval(ctx, script, keys, args...)
	i.once.Do(i.by)
	return got
}

// A look that was overtaken by a newer one is made again: it may have been at a
// server that is gone since.
func TestALookThatWasOvertakenIsMadeAgain(t *testing.T) {
	for name, known := range map[string]bool{"at the first start": false, "afterwards": true} {
		t.Run(name, func(t *testing.T) {
			old, replacement := testbed.Redis(t), testbed.Redis(t)
			atOld := redis.NewClient(&redis.Options{Addr: old.Addr(), PoolSize: 1, MaxRetries: -1})
			atNew := redis.NewClient(&redis.Options{Addr: replacement.Addr(), PoolSize: 1, MaxRetries: -1})
			t.Cleanup(func() { atOld.Close(); atNew.Close() })
			s := &Store{keys: luascripts.Keys{Prefix: "slotgate"}, log: slog.New(slog.DiscardHandler), runWatches: newWatches()}
			s.server = s.runs.at("")
			if known {
				if err := s.askRun(t.Context(), s.server, atOld); err != nil {
					t.Fatal(err)
				}
			}
			err := s.askRun(t.Context(), s.server, &interrupted{asker: atOld, by: func() {
				if err := s.askRun(t.Context(), s.server, atNew); err != nil {
					t.Error(err)
				}
				old.Kill()
			}})
			if err == nil {
				t.Error("a server that is gone has told its run")
			}
			if got, want := s.server.now.Load().id, runOf(t, replacement.Addr()); got != want {
				t.Errorf("the run is %s, want %s", got, want)
			}
		})
	}
}
