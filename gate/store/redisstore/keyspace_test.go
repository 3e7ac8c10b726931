package redisstore

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/gate/testbed"
	"github.com/slotgate/slotgate/rules"
)

// everything sends all kinds of calls with all kinds of outcomes, on several slots
// and from several goroutines, and lets time pass.
func everything(t *testing.T, s *Store) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			for i := range 60 {
				n := next.Add(1)
				d := booking(n)
				d.Slot = fmt.Sprintf("lesson-%d", n%5)
				d.Subject, d.Key = fmt.Sprintf("student-%d", n%17), fmt.Sprintf("key-%d", n%23)
				d.Capacity = []int64{3, store.Learned, 50}[n%3]
				d.MaxPerSubject, d.MaxInflight, d.RetryUnknown = 9, int(n%4), n%2 == 0
				d.KeepUnknown, d.Wait = n%7 == 0, time.Minute
				d.Client = netip.MustParseAddr("192.0.2.1")
				d.ClientLimit = store.Limit{Count: 1, Per: time.Minute, Burst: 1000}
				d.SubjectLimit, d.SlotLimit = d.ClientLimit, d.ClientLimit
				if n%11 == 0 {
					d.Pool = ""
				}
				got, err := s.Decide(context.Background(), d)
				if err != nil {
					t.Errorf("decide: %v", err)
					return
				}
				if got.Verdict == decision.Admitted && n%5 == 0 {
					twin := *d
					twin.ID += "-twin"
					if got, err := s.Decide(context.Background(), &twin); err != nil || got.Verdict != decision.Twin {
						t.Errorf("twin: %s, %v", got.Verdict, err)
					}
				}
				if got.Verdict == decision.Admitted && n%13 != 0 {
					outcome := rules.Outcome(1 + n%8)
					if _, err := s.Settle(context.Background(), settling(d, got, outcome)); err != nil {
						t.Errorf("settle: %v", err)
					}
				}
				switch worker {
				case 0:
					operate(t, s, d, got, i)
				case 1:
					// From 1001 on, the first look at each slot is applied: whichever
					// leaves its lease to end, the slot is known by then.
					follow(t, s, int64(1001+i))
				}
			}
		})
	}
	wg.Wait()
}

func operate(t *testing.T, s *Store, d *store.Decide, got store.Decided, i int) {
	ctx, q := context.Background(), query(d)
	q.Pool = "lessons"
	opens, closed, units := time.Now().Add(-time.Hour), false, int64(40)
	var err error
	switch i % 8 {
	case 0:
		_, err = s.Change(ctx, q, store.SlotChange{OpensAt: &opens, Closed: &closed, Capacity: &units})
	case 1:
		_, err = s.Slot(ctx, q)
	case 2:
		_, _, err = s.Slots(ctx, q, "", 10)
	case 3:
		_, err = s.Ledger(ctx, q.Pool, q.Slot, 10)
	case 4:
		advance(7*time.Second, s)
	case 5:
		_, err = s.Release(ctx, q, got.Hold)
	case 6:
		forced := []store.Forced{force(d, "-forced")}
		if got.Hold != "" {
			retry := force(d, "-retry")
			retry.Hold = got.Hold
			forced = append(forced, retry)
		}
		err = touch(s, d, "gate-a", forced...)
	case 7:
		err = s.Resume(ctx, q, "gate-a")
	}
	if err != nil && err != store.ErrNoHold && err != store.ErrNoSlot {
		t.Errorf("operate: %v", err)
	}
}

// Nothing in the store lives for ever, and every key is under the prefix.
func TestEveryKeyHasATimeToLive(t *testing.T) {
	s := openStore(t, testbed.Redis(t).Addr(), withPrefix("gate-7"))
	ctx := context.Background()
	if err := s.client.XGroupCreateMkStream(ctx, s.keys.Outbox("lessons"), "billing", "0").Err(); err != nil {
		t.Fatal(err)
	}
	everything(t, s)
	last := booking(0)
	last.Slot = "another"
	if _, err := admitted(s, last); err != nil { // it is awaited while the keys are read
		t.Fatal(err)
	}
	q := query(last)
	q.Truth = store.TruthRemaining
	if _, err := s.Look(ctx, &store.Look{Query: q, ID: "last-look", Lease: time.Minute}); err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	keys := s.client.Scan(ctx, 0, "*", 1000).Iterator()
	for keys.Next(ctx) {
		key := keys.Val()
		ttl, err := s.client.PTTL(ctx, key).Result()
		if err != nil {
			t.Fatal(err)
		}
		if ttl == -1 {
			t.Errorf("%q lives for ever", key)
		}
		if !strings.HasPrefix(key, "gate-7:") {
			t.Errorf("%q is not under the prefix", key)
		}
		kinds[regexp.MustCompile(`^gate-7:(\w+)(:\{[^}]*\})?(:\w+)?`).ReplaceAllString(key, "$1$3")]++
	}
	if err := keys.Err(); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"s", "s:due", "s:log", "s:x", "s:l", "k", "k:a", "k:x", "s:look", "l", "p", "i", "o", "d", "lead:fence", "lead:x", "b", "secret"} {
		found := false
		for seen := range kinds {
			found = found || seen == kind || strings.HasPrefix(seen, kind+":")
		}
		if !found {
			t.Errorf("the storm left no key of kind %q: %v", kind, kinds)
		}
	}
}

// A zset that is empty is no key, and one that comes to be again has no time to live: so
// what is due in a slot never gets empty.
func TestWhatIsDueIsNeverEmpty(t *testing.T) {
	s := openStore(t, testbed.Redis(t).Addr())
	ctx := context.Background()
	for n := range int64(3) {
		d := booking(n)
		d.Slot = "one"
		got, err := admitted(s, d)
		if err != nil {
			t.Fatal(err)
		}
		slot := s.keys.Slot(d.Pool, d.Slot)
		for _, key := range []string{slot.State, slot.Due, slot.Ledger} {
			if ttl, err := s.client.PTTL(ctx, key).Result(); err != nil || ttl <= d.Retain || ttl > d.Retain+d.Retain/8 {
				t.Fatalf("round %d: %q has %v, %v", n, key, ttl, err)
			}
		}
		if _, err := s.Settle(ctx, settling(d, got, rules.Refused)); err != nil {
			t.Fatal(err)
		}
		if left, err := s.client.ZRange(ctx, slot.Due, 0, -1).Result(); err != nil || !slices.Equal(left, []string{"@"}) {
			t.Fatalf("round %d: what is left is %q, %v", n, left, err)
		}
	}
}

// A slot may be known before its first booking: its ledger, which begins with that, lives
// no longer than the slot.
func TestALedgerThatBeginsLateHasATimeToLive(t *testing.T) {
	s := openStore(t, testbed.Redis(t).Addr())
	ctx := context.Background()
	d := booking(1)
	c := cancelling(d, "cancel-one-0000001", store.Cancel)
	got, err := admitted(s, c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Settle(ctx, settling(c, got, rules.Refused)); err != nil {
		t.Fatal(err)
	}
	advance(store.CopyWindow+time.Second, s)
	if _, err := admitted(s, d); err != nil {
		t.Fatal(err)
	}
	if ttl, err := s.client.PTTL(ctx, s.keys.Slot(d.Pool, d.Slot).Ledger).Result(); err != nil || ttl <= 0 {
		t.Errorf("the ledger lives for %v, %v", ttl, err)
	}
}

// Attempts that are over go now and then, in whatever order a slot's calls come.
func TestAttemptsThatAreOverDoNotPileUp(t *testing.T) {
	s := openStore(t, testbed.Redis(t).Addr())
	ctx := context.Background()
	for name, outcome := range map[string]rules.Outcome{"booked": rules.Booked, "never told": rules.Unknown} {
		slot := s.keys.Slot("lessons", name)
		for n := range int64(64) {
			d := booking(n)
			d.ID, d.Slot, d.Subject, d.Key = fmt.Sprintf("%s-%012d", outcome, n), name, "", ""
			got, err := admitted(s, d)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Settle(ctx, settling(d, got, outcome)); err != nil {
				t.Fatal(err)
			}
		}
		over, err := s.client.ZCount(ctx, slot.Due, fmt.Sprint("(", int64(attemptZone)), "+inf").Result()
		if err != nil || over > 16 {
			t.Errorf("%s: %d attempts that are over stand there still, %v", name, over, err)
		}
	}
}

// Redis is told how long to keep a slot's keys only now and then, and keeps them for long
// enough at all times.
func TestASlotsKeysOutliveIt(t *testing.T) {
	s := openStore(t, testbed.Redis(t).Addr())
	ctx := context.Background()
	d := booking(1)
	slot := s.keys.Slot(d.Pool, "one")
	kept := map[time.Duration]bool{}
	began := time.Now()
	for n := range int64(40) {
		d := booking(n)
		d.Slot = "one"
		if _, err := admitted(s, d); err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{slot.State, slot.Due, slot.Ledger} {
			// The script's clock is ahead of the one that Redis counts by.
			ttl, err := s.client.PTTL(ctx, key).Result()
			ahead := time.Duration(s.ahead.Load()) * time.Millisecond
			if err != nil || ttl <= 0 {
				t.Fatalf("%q has %v, %v", key, ttl, err)
			}
			kept[(ttl + time.Since(began)).Round(time.Minute)] = true
			if state, err := s.client.HGet(ctx, slot.State, "s").Result(); err != nil {
				t.Fatal(err)
			} else if fields := slotFields(state); len(fields) != 19 || fields[13] < fields[1] {
				t.Fatalf("%v ahead the slot is %q: kept until field 14, remembered until field 2", ahead, fields)
			}
		}
		advance(time.Minute, s)
	}
	if len(kept) < 1 {
		t.Fatal("no key had a time to live")
	}
}

// What is remembered of refused requests goes by itself: it does not grow with them.
func TestAFinishedHoldLeavesATombstoneOnly(t *testing.T) {
	s := openStore(t, testbed.Redis(t).Addr())
	ctx := context.Background()
	var size int64
	for n := range int64(200) {
		d := booking(n)
		d.Slot, d.Key = "one", ""
		got, err := admitted(s, d)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Settle(ctx, settling(d, got, rules.Refused)); err != nil {
			t.Fatal(err)
		}
		slot := s.keys.Slot(d.Pool, d.Slot)
		fields, err := s.client.HLen(ctx, slot.State).Result()
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			size = fields
		} else if fields != size {
			t.Fatalf("after %d refusals the slot has %d fields, after one %d", n, fields, size)
		}
		if ttl, err := s.client.PTTL(ctx, slot.Tombstone(d.ID)).Result(); err != nil || ttl <= 0 || ttl > store.CopyWindow {
			t.Fatalf("the tombstone lives for %v, %v", ttl, err)
		}
	}
}

// Lapsed holds are forgotten after the copy window, with all that hung on them.
func TestALapsedHoldIsForgotten(t *testing.T) {
	s := openStore(t, testbed.Redis(t).Addr())
	ctx := context.Background()
	first := booking(1)
	first.RetryUnknown = true
	got, err := admitted(s, first)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Settle(ctx, settling(first, got, rules.Unknown)); err != nil {
		t.Fatal(err)
	}
	second := *first
	second.ID = "request-the-second"
	if got, err := admitted(s, &second); err != nil || !got.Adopted {
		t.Fatalf("%+v, %v", got, err)
	}
	for _, wait := range []time.Duration{first.HoldTTL + time.Second, store.CopyWindow + time.Second} {
		advance(wait, s)
		if _, err := s.Slot(ctx, query(first)); err != nil {
			t.Fatal(err)
		}
	}
	fields, err := s.client.HKeys(ctx, s.keys.Slot(first.Pool, first.Slot).State).Result()
	slices.Sort(fields)
	if err != nil || !slices.Equal(fields, []string{"k", "r", "s"}) { // its keys are remembered for longer
		t.Fatalf("left are %q, %v", fields, err)
	}
}

// Idle slot state is dropped after retain, by the script's clock too.
func TestAnIdleSlotIsDroppedAfterRetain(t *testing.T) {
	s := openStore(t, testbed.Redis(t).Addr())
	ctx := context.Background()
	d := booking(1)
	got, err := admitted(s, d)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Settle(ctx, settling(d, got, rules.Booked)); err != nil {
		t.Fatal(err)
	}
	advance(d.Retain-time.Minute, s)
	if slot, err := s.Slot(ctx, query(d)); err != nil || slot.Confirmed != 1 {
		t.Fatalf("before retain: %+v, %v", slot, err)
	}
	advance(2*time.Minute, s)
	if slot, err := s.Slot(ctx, query(d)); err != store.ErrNoSlot {
		t.Fatalf("after retain: %+v, %v", slot, err)
	}
	if slots, _, err := s.Slots(ctx, query(d), "", 10); err != nil || len(slots) != 0 {
		t.Fatalf("after retain the pool lists %v, %v", slots, err)
	}
}

// Every key that a script touches is among its KEYS, as Redis Cluster will ask.
func TestScriptsTouchDeclaredKeysOnly(t *testing.T) {
	server := testbed.Redis(t)
	lines := monitor(t, server.Addr())
	s := openStore(t, server.Addr())
	everything(t, s)
	if err := s.client.Echo(context.Background(), "the end").Err(); err != nil {
		t.Fatal(err)
	}
	var declared map[string]bool
	touched := 0
	for line := range lines {
		from, words := monitored(t, line)
		switch {
		case words[0] == "echo":
			if touched < 1000 {
				t.Errorf("saw the scripts touch %d keys only", touched)
			}
			return
		case strings.EqualFold(words[0], "EVALSHA") || strings.EqualFold(words[0], "EVAL"):
			n, err := strconv.Atoi(words[2])
			if err != nil {
				t.Fatal(line)
			}
			declared = map[string]bool{}
			for _, key := range words[3 : 3+n] {
				declared[key] = true
			}
		case from == "lua":
			for _, key := range keysOf(words) {
				touched++
				if !declared[key] {
					t.Fatalf("undeclared key %q: %q", key, words)
				}
			}
		}
	}
	t.Fatal("the monitor ended early")
}

// monitor returns what Redis says it does, line by line, from now on.
func monitor(t *testing.T, addr string) <-chan string {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	scanner := bufio.NewScanner(conn)
	scanner.Buffer(make([]byte, 1<<20), 1<<20)
	fmt.Fprint(conn, "MONITOR\r\n")
	if !scanner.Scan() || scanner.Text() != "+OK" {
		t.Fatalf("MONITOR: %q, %v", scanner.Text(), scanner.Err())
	}
	lines := make(chan string)
	ctx, stop := context.WithCancel(context.Background())
	var reader sync.WaitGroup
	reader.Go(func() {
		defer close(lines)
		for scanner.Scan() {
			select {
			case lines <- scanner.Text():
			case <-ctx.Done():
				return
			}
		}
	})
	t.Cleanup(func() {
		stop()
		conn.Close()
		reader.Wait()
	})
	return lines
}

var monitorLine = regexp.MustCompile(`^\+?\d+\.\d+ \[\d+ ([^\]]+)\] (.*)$`)

// monitored takes a line apart: who asked, and the words of the command. The words
// are quoted as in Go.
func monitored(t *testing.T, line string) (from string, words []string) {
	t.Helper()
	parts := monitorLine.FindStringSubmatch(line)
	if parts == nil {
		t.Fatalf("monitor said %q", line)
	}
	for rest := parts[2]; rest != ""; {
		quoted, err := strconv.QuotedPrefix(rest)
		if err != nil {
			t.Fatalf("monitor said %q: %v", line, err)
		}
		word, err := strconv.Unquote(quoted)
		if err != nil {
			t.Fatalf("monitor said %q: %v", line, err)
		}
		words = append(words, word)
		rest = strings.TrimPrefix(rest[len(quoted):], " ")
	}
	return parts[1], words
}

// keysOf are the keys of a command that a script may use.
func keysOf(words []string) []string {
	switch strings.ToUpper(words[0]) {
	case "TIME", "PUBLISH":
		return nil
	case "MGET", "DEL":
		return words[1:]
	}
	return words[1:2]
}
