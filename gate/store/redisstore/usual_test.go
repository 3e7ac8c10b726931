package redisstore

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/gate/store/storetest"
	"github.com/slotgate/slotgate/gate/testbed"
	"github.com/slotgate/slotgate/luascripts"
	"github.com/slotgate/slotgate/rules"
)

// withoutTheUsual sends every decide and settle through the general steps.
func withoutTheUsual(t *testing.T) {
	mutate(t, "local decided, has_limits = decide_usual()", "local decided, has_limits")
	mutate(t, "local settled = settle_usual()", "local settled")
}

// The general steps alone do what they and the usual case do together.
func TestConformanceWithoutTheUsualCase(t *testing.T) {
	withoutTheUsual(t)
	storetest.Run(t, harness(testbed.Redis(t).Addr()))
}

// The usual case leaves the same data and gives the same answers as the general steps.
func TestTheUsualCaseLeavesTheSameData(t *testing.T) {
	play := func(t *testing.T) (answers []string, data string) {
		s := openStore(t, testbed.Redis(t).Addr(), func(o *Options) { o.Secret = "configured" })
		ctx := context.Background()
		var first *store.Decide
		for n := range int64(60) {
			d := booking(n)
			d.Slot, d.Capacity = fmt.Sprintf("lesson-%d", n%2), 24
			d.MaxInflight, d.KeepUnknown = int(n%3)*50, n%5 == 0
			d.SubjectLimit = store.Limit{Count: 5, Per: time.Hour, Burst: 5}
			switch n % 4 {
			case 1:
				d.Key = ""
			case 2:
				d.Subject = ""
			case 3:
				d.Units = 2
			}
			got, err := s.Decide(ctx, d)
			if err != nil {
				t.Fatal(err)
			}
			answers = append(answers, stable(fmt.Sprintf("%+v", got)))
			if got.Verdict != decision.Admitted || n%7 == 6 {
				continue
			}
			settlement := settling(d, got, rules.Booked)
			if n%3 == 0 {
				settlement.Reference = fmt.Sprint("booking-", n)
			}
			settled, err := s.Settle(ctx, settlement)
			if err != nil {
				t.Fatal(err)
			}
			answers = append(answers, fmt.Sprintf("%+v", settled))
			if first == nil && d.Key != "" {
				first = d
			}
		}
		again := *first
		again.ID = "request-again-00001"
		got, err := s.Decide(ctx, &again)
		if err != nil || got.Verdict != decision.Replay {
			t.Fatalf("%+v, %v", got, err)
		}
		return append(answers, fmt.Sprintf("%s %q", got.Verdict, got.Answer)), contents(t, s)
	}
	answers, data := play(t)
	withoutTheUsual(t)
	wantAnswers, want := play(t)
	if !slices.Equal(answers, wantAnswers) {
		t.Errorf("answers\n%s\nthe general steps gave\n%s", strings.Join(answers, "\n"), strings.Join(wantAnswers, "\n"))
	}
	if data != want {
		t.Errorf("left\n%s\nthe general steps leave\n%s", data, want)
	}
}

var spans = regexp.MustCompile(`(Reset|RetryAfter):[0-9a-zµ.]+`)

// stable leaves times out of a text.
func stable(text string) string {
	return long.ReplaceAllStringFunc(spans.ReplaceAllString(text, "TIME"), func(number string) string {
		if len(number) == 16 {
			return number[:2] + "…"
		}
		return "T"
	})
}

// contents is all that stands under a store's prefix, and whether it goes by itself, without times.
func contents(t *testing.T, s *Store) string {
	t.Helper()
	ctx := context.Background()
	keys, err := s.client.Keys(ctx, "*").Result()
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(keys)
	var text strings.Builder
	for _, key := range keys {
		if strings.HasSuffix(key, ":epoch") || strings.Contains(key, ":l:") {
			continue // another server has another, and a limit's goes within milliseconds
		}
		var value any
		switch kind := s.client.Type(ctx, key).Val(); kind {
		case "string":
			value = s.client.Get(ctx, key).Val()
		case "hash":
			fields := s.client.HGetAll(ctx, key).Val()
			if fields["r"] != "" {
				fields["r"] = "a run" // which is another's
			}
			if state := fields["s"]; state != "" {
				fields["s"] = strings.Join(slotFields(state), "|")
			}
			value = fields
		case "zset":
			var members []string
			for _, z := range s.client.ZRangeWithScores(ctx, key, 0, -1).Val() {
				members = append(members, fmt.Sprintf("%v %.0f", z.Member, z.Score))
			}
			slices.Sort(members) // those of one moment have no order
			value = members
		case "stream":
			var entries []any
			for _, m := range s.client.XRange(ctx, key, "-", "+").Val() {
				entries = append(entries, m.Values)
			}
			value = entries
		default:
			t.Fatalf("%s is a %s", key, kind)
		}
		fmt.Fprintln(&text, key, s.client.PTTL(ctx, key).Val() > 0, stable(fmt.Sprint(value)))
	}
	return text.String()
}

// Bookings of the usual kind cost no more commands than these.
func TestCommandsOfTheUsualCase(t *testing.T) {
	server := testbed.Redis(t)
	s := openStore(t, server.Addr())
	ctx := context.Background()
	book := func(n int64, slot string) {
		d := booking(n)
		d.Slot, d.SlotLimit = slot, store.Limit{}
		got, err := admitted(s, d)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Settle(ctx, settling(d, got, rules.Booked)); err != nil {
			t.Fatal(err)
		}
	}
	book(0, "known") // makes the slot and the scripts known
	// No tombstone can be left from before; the outbox is looked for anew.
	advance(store.CopyWindow, s)
	book(100, "known")
	lines := monitor(t, server.Addr())
	runs := func(n int64, slot string) map[string][]string {
		book(n, slot)
		if err := s.client.Echo(ctx, "the end").Err(); err != nil {
			t.Fatal(err)
		}
		commands, running := map[string][]string{}, ""
		for line := range lines {
			from, words := monitored(t, line)
			if words[0] == "echo" {
				break
			}
			switch {
			case from == "lua":
				commands[running] = append(commands[running], words[0])
			case strings.HasPrefix(strings.ToUpper(words[0]), "EVAL"):
				running = words[1]
			}
		}
		return commands
	}
	settles := []string{"TIME", "HMGET", "GET", "ZADD", "XADD", "HSET", "SET"}
	for i, c := range []struct {
		slot    string
		decides []string
	}{
		{"known", []string{"TIME", "HMGET", "SET", "ZADD", "XADD", "HSET"}},
		{"new", []string{"TIME", "HMGET", "MGET", "PTTL", "SET", "ZADD", "XADD", "HSET",
			"PEXPIRE", "HSET", "ZADD", "PEXPIRE", "PEXPIRE", "ZADD", "PEXPIRE", "ZRANGEBYSCORE"}},
	} {
		commands := runs(int64(200+i), c.slot)
		for script, usual := range map[*luascripts.Script][]string{luascripts.Decide: c.decides, luascripts.Settle: settles} {
			if got := commands[script.SHA1]; !slices.Equal(got, usual) {
				t.Errorf("in a %s slot a %s runs %q, want %q", c.slot, script.Name, got, usual)
			}
		}
	}
}
