package luascripts

import (
	"context"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/gate/testbed"
)

func connect(t *testing.T, args ...string) *redis.Client {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: testbed.Redis(t, args...).Addr()})
	t.Cleanup(func() { client.Close() })
	return client
}

func TestRedisKnowsEveryScriptByOurDigest(t *testing.T) {
	client := connect(t)
	for _, script := range All() {
		sha1, err := client.ScriptLoad(context.Background(), script.Source).Result()
		if err != nil {
			t.Errorf("%s: %v", script.Name, err)
		} else if sha1 != script.SHA1 {
			t.Errorf("%s: Redis calls it %s, we call it %s", script.Name, sha1, script.SHA1)
		}
	}
}

// Every entry file tells what it is given and what it replies.
func TestEveryEntryStatesItsContract(t *testing.T) {
	for _, script := range All() {
		text, err := files.ReadFile(script.Name + ".lua")
		if err != nil {
			t.Fatal(err)
		}
		head, _, _ := strings.Cut(string(text), "\nlocal ")
		for _, word := range []string{"-- KEYS", "-- ARGV", "-- Reply"} {
			if !strings.Contains(head, word) {
				t.Errorf("%s.lua: no %q at its head", script.Name, word)
			}
		}
	}
}

func TestBoundsAreTheContractsOwn(t *testing.T) {
	text, err := files.ReadFile("bounds.lua")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int64{
		"COPY_WINDOW":      int64(store.CopyWindow / time.Millisecond),
		"LAPSE_BATCH":      store.LapseBatch,
		"MAX_ADOPTIONS":    store.MaxAdoptions,
		"MAX_CANCELS":      store.MaxCancels,
		"LEARNED_INFLIGHT": store.LearnedInflight,
		"LEARNED":          store.Learned,
	} {
		found := regexp.MustCompile(`(?m)^local ` + name + ` = (-?\d+)$`).FindSubmatch(text)
		if found == nil {
			t.Errorf("bounds.lua has no %s", name)
			continue
		}
		if got, _ := strconv.ParseInt(string(found[1]), 10, 64); got != want {
			t.Errorf("bounds.lua: %s is %d, the contract says %d", name, got, want)
		}
	}
}

func TestConstantsStandWhereTheyAreUsed(t *testing.T) {
	got := withoutConstants(strings.Join([]string{
		"local FEW = 3         -- of something", "local ZONE = 2 ^ 52", "local NAME = 'a-b'", "local NEGATIVE = -1",
		"local RUN, NOW = string.match(x, 'FEW')", "local later = ZONE + FEW * FEWER - s.FEWEST", "return NAME .. 'NAME' .. NEGATIVE", "",
	}, "\n"))
	want := strings.Join([]string{
		"local RUN, NOW = string.match(x, 'FEW')", "local later = (2 ^ 52) + (3) * FEWER - s.FEWEST", "return ('a-b') .. 'NAME' .. (-1)", "",
	}, "\n")
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// A part that no script uses is dead code.
func TestEveryFileIsPartOfAScript(t *testing.T) {
	entries, err := files.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		used := slices.ContainsFunc(All(), func(script *Script) bool {
			return slices.Contains(script.parts, strings.TrimSuffix(entry.Name(), ".lua"))
		})
		if !used {
			t.Errorf("%s is part of no script", entry.Name())
		}
	}
}

func TestFunctionsThatNobodyCallsAreLeftOut(t *testing.T) {
	got := withoutUnused(strings.Join([]string{
		"local function one(a) return a end",
		"local function two()", "  return one(2)", "end",
		"local function three()", "  if x then", "    return 3", "  end", "end",
		"local function four()", "  return three()", "end",
		"return one(1)", "",
	}, "\n"))
	want := "local function one(a) return a end\nreturn one(1)\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
