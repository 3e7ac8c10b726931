package redisstore

import (
	"context"
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/gate/testbed"
	"github.com/slotgate/slotgate/luascripts"
	"github.com/slotgate/slotgate/rules"
)

// The scripts of the first stored form, as gates of that version send them.
//
//go:embed testdata/scripts_v1/*.lua
var scriptsV1 embed.FS

// oldScripts has a store send the scripts of the first stored form.
type oldScripts struct {
	sources map[string]string // by the digest of today's script
	digests map[string]string
	sent    atomic.Int64
}

func newOldScripts(t *testing.T) *oldScripts {
	t.Helper()
	o := &oldScripts{sources: map[string]string{}, digests: map[string]string{}}
	changed := 0
	for _, script := range luascripts.All() {
		source, err := scriptsV1.ReadFile("testdata/scripts_v1/" + script.Name + ".lua")
		if err != nil {
			continue // a cluster's, which the first version did not know
		}
		sum := sha1.Sum(source)
		o.sources[script.SHA1], o.digests[script.SHA1] = string(source), hex.EncodeToString(sum[:])
		if string(source) != script.Source {
			changed++
		}
	}
	if len(o.sources) != 12 || changed < 2 {
		t.Fatalf("of %d old scripts %d differ from today's", len(o.sources), changed)
	}
	return o
}

func (o *oldScripts) DialHook(next redis.DialHook) redis.DialHook { return next }

func (o *oldScripts) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			o.replace(cmd)
		}
		return next(ctx, cmds)
	}
}

func (o *oldScripts) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		o.replace(cmd)
		return next(ctx, cmd)
	}
}

func (o *oldScripts) replace(cmd redis.Cmder) {
	args := cmd.Args()
	switch strings.ToUpper(cmd.Name()) {
	case "EVALSHA":
		if digest, ok := o.digests[args[1].(string)]; ok {
			args[1] = digest
			o.sent.Add(1)
		}
	case "EVAL":
		for _, script := range luascripts.All() {
			if source, ok := o.sources[script.SHA1]; ok && args[1] == script.Source {
				args[1] = source
			}
		}
	}
}

// While gates are replaced one by one, scripts of two versions run on the same slots.
func TestTwoVersionsOfTheScriptsShareASlot(t *testing.T) {
	const capacity, workers, each = 7, 8, 60
	server := testbed.Redis(t)
	newer, older := openStore(t, server.Addr()), openStore(t, server.Addr())
	old := newOldScripts(t)
	older.client.AddHook(old)
	older.fresh.AddHook(old)
	gates := []*Store{newer, older}
	ctx := context.Background()

	var next, taken, oversold, booked atomic.Int64
	var wg sync.WaitGroup
	for worker := range workers {
		wg.Go(func() {
			for i := range each {
				n := next.Add(1)
				d := booking(n)
				d.Slot, d.Capacity, d.RetryUnknown = "lesson", capacity, true
				d.Subject, d.Key = fmt.Sprintf("student-%d", n%23), fmt.Sprintf("key-%d", n%41)
				d.OnePerSubject, d.MaxPerSubject = false, 3
				d.Fingerprint[0] = byte(n % 41)
				decides, settles := gates[(worker+i)%2], gates[(worker+i/2)%2]
				got, err := decides.Decide(ctx, d)
				if err != nil {
					t.Errorf("decide: %v", err)
					return
				}
				if got.Verdict != decision.Admitted {
					continue
				}
				if now := taken.Add(1); now > capacity {
					oversold.Add(1)
				}
				outcome := []rules.Outcome{rules.Refused, rules.Busy, rules.NeverSent, rules.Refused, rules.Booked}[n%5]
				if booked.Load() >= capacity-2 && outcome == rules.Booked {
					outcome = rules.Refused // some units stay in play
				}
				if outcome == rules.Booked {
					booked.Add(1)
				} else {
					taken.Add(-1)
				}
				settled, err := settles.Settle(ctx, settling(d, got, outcome))
				if err != nil || !settled.Applied || settled.Oversold != 0 {
					t.Errorf("settle %s: %+v, %v", outcome, settled, err)
				}
			}
		})
	}
	wg.Wait()
	if oversold.Load() > 0 {
		t.Errorf("%d admits went over the capacity", oversold.Load())
	}
	if old.sent.Load() < workers*each/3 {
		t.Errorf("only %d scripts of the old version ran", old.sent.Load())
	}
	q := query(booking(0))
	q.Slot, q.Capacity = "lesson", capacity
	var seen [2]store.Slot
	for i, s := range gates {
		slot, err := s.Slot(ctx, q)
		if err != nil {
			t.Fatal(err)
		}
		slot.Version = 0
		seen[i] = slot
	}
	if fmt.Sprint(seen[0]) != fmt.Sprint(seen[1]) {
		t.Errorf("the new version reads %+v, the old one %+v", seen[0], seen[1])
	}
	if seen[0].Confirmed != booked.Load() || seen[0].Held != 0 || booked.Load() == 0 {
		t.Errorf("%d confirmed and %d held, want %d and none", seen[0].Confirmed, seen[0].Held, booked.Load())
	}

	// Each finds what the other wrote of a request that is under way.
	for i := range 2 {
		d := booking(next.Add(1))
		d.Slot, d.Capacity, d.Key, d.RetryUnknown = "lesson", capacity, fmt.Sprint("crossing-", i), true
		here, there := gates[i], gates[1-i]
		got, err := admitted(here, d)
		if err != nil {
			t.Fatal(err)
		}
		twin, retry := *d, *d
		twin.ID, retry.ID = d.ID+"-twin", d.ID+"-retry"
		if is, err := there.Decide(ctx, &twin); err != nil || is.Verdict != decision.Twin || is.Owner != d.ID {
			t.Errorf("twin: %+v, %v", is, err)
		}
		if _, err := here.Settle(ctx, settling(d, got, rules.Unknown)); err != nil {
			t.Fatal(err)
		}
		again, err := there.Decide(ctx, &retry)
		if err != nil || again.Hold != got.Hold || !again.Adopted {
			t.Fatalf("retry: %+v, %v", again, err)
		}
		if _, err := here.Settle(ctx, settling(&retry, again, rules.Booked)); err != nil {
			t.Fatal(err)
		}
		replay := *d
		replay.ID += "-replay"
		if is, err := there.Decide(ctx, &replay); err != nil || is.Verdict != decision.Replay || string(is.Answer) != "answer of "+retry.ID {
			t.Errorf("replay: %+v, %v", is, err)
		}
	}
}

// What a newer version of the gate wrote is not misread: the call fails and says what to
// do.
func TestDataOfANewerFormIsRefused(t *testing.T) {
	ctx := context.Background()
	for name, open := range map[string]func(t *testing.T) *Store{
		"standalone": func(t *testing.T) *Store { return openStore(t, testbed.Redis(t).Addr()) },
		"cluster":    func(t *testing.T) *Store { return openStore(t, "", onCluster(testbed.Cluster(t))) },
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			d := booking(1)
			got, err := admitted(s, d)
			if err != nil {
				t.Fatal(err)
			}
			slot := s.keys.Slot(d.Pool, d.Slot).State
			record := s.keys.KeyRecord(s.secret.names.Load().key(d.Group, d.Partition, d.Key))
			state, err := s.client.HGet(ctx, slot, "s").Result()
			if err != nil {
				t.Fatal(err)
			}
			_, rest, _ := strings.Cut(state, "|")
			refused := func(what string, err error) {
				t.Helper()
				var failure *store.Error
				if !errors.As(err, &failure) || failure.Kind != store.KindReply && failure.Kind != store.KindServer {
					t.Errorf("%s: %v, want a failure of the store", what, err)
				} else if !strings.Contains(err.Error(), "update this gate") {
					t.Errorf("%s: %v does not say what to do", what, err)
				}
			}
			other := booking(101)
			other.Slot = d.Slot
			twin := *d
			twin.ID, twin.Slot = "request-of-a-twin-1", "elsewhere"
			query := query(d)

			if err := s.client.HSet(ctx, slot, "s", "2|"+rest+"|7").Err(); err != nil {
				t.Fatal(err)
			}
			_, err = s.Decide(ctx, other)
			refused("decide", err)
			_, err = s.Settle(ctx, settling(d, got, rules.Booked))
			refused("settle", err)
			_, err = s.Slot(ctx, query)
			refused("slot", err)
			_, _, err = s.Slots(ctx, query, "", 10)
			refused("slots", err)
			refused("touch", touch(s, d, "gate"))
			if after, err := s.client.HGet(ctx, slot, "s").Result(); err != nil || after != "2|"+rest+"|7" {
				t.Errorf("the slot's state is %q, %v", after, err)
			}
			if err := s.client.HSet(ctx, slot, "s", state).Err(); err != nil {
				t.Fatal(err)
			}
			if err := s.client.Set(ctx, record, "2|what|may|come", time.Hour).Err(); err != nil {
				t.Fatal(err)
			}
			_, err = s.Decide(ctx, &twin)
			refused("the key", err)
			if _, err := s.Slot(ctx, query); err != nil {
				t.Errorf("the slot, which is of this version: %v", err)
			}
		})
	}
}
