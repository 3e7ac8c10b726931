package redisstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/gate/testbed"
	"github.com/slotgate/slotgate/luascripts"
	"github.com/slotgate/slotgate/rules"
)

// A child process of this test is an external consumer when this names a Redis, the
// outbox, and how many entries it takes before it hangs in the middle of a batch.
const consumerEnv = "SLOTGATE_TEST_OUTBOX_CONSUMER"

// consume reads the outbox as luascripts.Keys tells other programs to: first what a
// dead worker left, then what is new. It puts each entry into the hash "work", under its
// id, before it acknowledges it.
func consume(arg string) error {
	var addr, outbox, worker string
	var hangAfter int
	if _, err := fmt.Sscan(arg, &addr, &outbox, &worker, &hangAfter); err != nil {
		return err
	}
	ctx := context.Background()
	client := redis.NewClient(&redis.Options{Addr: addr})
	defer client.Close()
	err := client.XGroupCreateMkStream(ctx, outbox, "billing", "0").Err()
	if err != nil && !strings.HasPrefix(err.Error(), "BUSYGROUP") {
		return err
	}
	left, _, err := client.XAutoClaim(ctx, &redis.XAutoClaimArgs{Stream: outbox, Group: "billing", Consumer: worker, Start: "0-0", Count: 1000}).Result()
	for done := 0; err == nil; {
		for _, entry := range left {
			if done == hangAfter {
				select {} // until it is killed
			}
			done++
			if err := client.HSet(ctx, "work", entry.ID, fmt.Sprint(entry.Values["n"], " ", entry.Values["f"], ">", entry.Values["o"], " ", entry.Values["u"])).Err(); err != nil {
				return err
			}
			if err := client.XAck(ctx, outbox, "billing", entry.ID).Err(); err != nil {
				return err
			}
		}
		var streams []redis.XStream
		streams, err = client.XReadGroup(ctx, &redis.XReadGroupArgs{Group: "billing", Consumer: worker,
			Streams: []string{outbox, ">"}, Count: 16, Block: 100 * time.Millisecond}).Result()
		left = nil
		if errors.Is(err, redis.Nil) {
			err = nil
		}
		for _, stream := range streams {
			left = stream.Messages
		}
	}
	return err
}

// startConsumer runs this binary as a consumer and returns how to kill it.
func startConsumer(t *testing.T, arg string) (kill func()) {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command(binary)
	child.Env = append(os.Environ(), consumerEnv+"="+arg)
	child.Stderr = os.Stderr
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	killed := false
	kill = func() {
		if !killed {
			killed = true
			_ = child.Process.Signal(syscall.SIGKILL) // the wait below tells whether it was there
			if err := child.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
				t.Errorf("the consumer ended with %v", err)
			}
		}
	}
	t.Cleanup(kill)
	return kill
}

// Nothing is lost of what happens while an external consumer runs, hangs, is dead and
// runs again.
func TestAConsumerThatIsKilledLosesNothing(t *testing.T) {
	const hangAfter = 37
	server := testbed.Redis(t)
	s := openStore(t, server.Addr())
	outbox := luascripts.Keys{Prefix: "slotgate"}.Outbox("lessons")
	if err := s.client.XGroupCreateMkStream(t.Context(), outbox, "billing", "0").Err(); err != nil {
		t.Fatal(err)
	}
	kill := startConsumer(t, fmt.Sprint(server.Addr(), " ", outbox, " worker-1 ", hangAfter))

	book := func(from, to int64) {
		for n := from; n < to; n++ {
			d := booking(n)
			d.Key = ""
			got, err := admitted(s, d)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Settle(context.Background(), settling(d, got, []rules.Outcome{rules.Booked, rules.Refused}[n%2])); err != nil {
				t.Fatal(err)
			}
		}
	}
	work := func() int64 {
		n, err := s.client.HLen(context.Background(), "work").Result()
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	book(0, 100)
	eventually(t, "the consumer's work", func() bool { return work() == hangAfter })
	kill()
	pending, err := s.client.XPending(t.Context(), outbox, "billing").Result()
	if err != nil || pending.Count == 0 {
		t.Fatalf("the consumer left %+v, %v; want what it was given and did not do", pending, err)
	}
	book(100, 200)
	startConsumer(t, fmt.Sprint(server.Addr(), " ", outbox, " worker-2 -1"))
	book(200, 250)

	const transitions = 2 * 250 // each is held, then confirmed or released
	eventually(t, "all of the work", func() bool { return work() == transitions })
	entries, err := s.client.XRange(t.Context(), outbox, "-", "+").Result()
	if err != nil || len(entries) != transitions {
		t.Fatalf("the outbox has %d entries, %v; want %d", len(entries), err, transitions)
	}
	done, err := s.client.HGetAll(t.Context(), "work").Result()
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	for _, entry := range entries {
		what, ok := done[entry.ID]
		if !ok {
			t.Errorf("entry %s, %v, was lost", entry.ID, entry.Values)
		}
		_, kind, _ := strings.Cut(what, " ")
		kinds[kind]++
	}
	if kinds[">held 1"] != 250 || kinds["held>confirmed 1"] != 125 || kinds["held>released 1"] != 125 {
		t.Errorf("the work was %v", kinds)
	}
	eventually(t, "the last acknowledgement", func() bool {
		pending, err := s.client.XPending(t.Context(), outbox, "billing").Result()
		return err == nil && pending.Count == 0
	})
}

// The outbox says what the ledger of each slot says, in the same order.
func TestTheOutboxIsAllLedgers(t *testing.T) {
	s := openStore(t, testbed.Redis(t).Addr())
	ctx := context.Background()
	for _, pool := range []string{"lessons", "seats"} {
		if err := s.client.XGroupCreateMkStream(ctx, s.keys.Outbox(pool), "billing", "0").Err(); err != nil {
			t.Fatal(err)
		}
	}
	everything(t, s)
	for pool, slots := range map[string][]string{
		"lessons": {"lesson-0", "lesson-1", "lesson-2", "lesson-3", "lesson-4"},
		"seats":   {"seat-0", "seat-1", "seat-2"},
	} {
		bySlot := map[string][]store.Entry{}
		messages, err := s.client.XRange(ctx, s.keys.Outbox(pool), "-", "+").Result()
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range messages {
			text := func(name string) string { return m.Values[name].(string) }
			packed := strings.Join([]string{text("t"), text("h"), text("s"), text("u"), text("f"), text("o"), text("c")}, "|")
			entry, err := decodeEntry(redis.XMessage{Values: map[string]any{"e": packed}})
			if err != nil {
				t.Fatal(err)
			}
			slot := m.Values["n"].(string)
			bySlot[slot] = append(bySlot[slot], entry)
		}
		for _, slot := range slots {
			ledger, err := s.Ledger(ctx, pool, slot, 10_000)
			if err != nil || len(ledger) == 0 || len(ledger) != len(bySlot[slot]) {
				t.Fatalf("%s: %d entries in the ledger, %d in the outbox, %v", slot, len(ledger), len(bySlot[slot]), err)
			}
			for i, entry := range bySlot[slot] {
				want := ledger[len(ledger)-1-i]
				want.ID = ""
				if entry != want {
					t.Errorf("%s: the outbox says %+v, the ledger %+v", slot, entry, want)
				}
			}
		}
	}
}

// A pool whose transitions nobody reads has no outbox. One that a program makes is
// written within a second.
func TestAnOutboxIsWrittenOnceAProgramMadeIt(t *testing.T) {
	s := openStore(t, testbed.Redis(t).Addr())
	ctx := t.Context()
	d := booking(1)
	outbox := s.keys.Outbox(d.Pool)
	book := func(n int64) {
		d := booking(n)
		d.Slot = "one"
		if got, err := s.Decide(ctx, d); err != nil || got.Verdict != decision.Admitted {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	book(1)
	if n, err := s.client.Exists(ctx, outbox).Result(); err != nil || n != 0 {
		t.Fatalf("%d outboxes, %v; nobody has made one", n, err)
	}
	if err := s.client.XGroupCreateMkStream(ctx, outbox, "billing", "0").Err(); err != nil {
		t.Fatal(err)
	}
	advance(time.Second, s)
	book(2)
	book(3)
	if n, err := s.client.XLen(ctx, outbox).Result(); err != nil || n != 2 {
		t.Errorf("%d entries, %v; want those of a second later", n, err)
	}
}

// The outbox lives for retain, also where a consumer made it before the first booking.
func TestAnOutboxThatAConsumerMadeHasATimeToLive(t *testing.T) {
	s := openStore(t, testbed.Redis(t).Addr())
	d := booking(1)
	outbox := s.keys.Outbox(d.Pool)
	if err := s.client.XGroupCreateMkStream(t.Context(), outbox, "billing", "0").Err(); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Decide(t.Context(), d); err != nil || got.Verdict != decision.Admitted {
		t.Fatalf("%+v, %v", got, err)
	}
	if ttl, err := s.client.PTTL(t.Context(), outbox).Result(); err != nil || ttl < d.Retain-time.Minute || ttl > d.Retain+d.Retain/8 {
		t.Errorf("the outbox lives for %v, %v", ttl, err)
	}
}
