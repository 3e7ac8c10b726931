package luascripts

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// odd draws texts that could leave their place in a key's name.
func odd() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.StringOf(rapid.SampledFrom([]rune(":{}%#-a\x00 é"))),
		rapid.String(),
		rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }),
		rapid.Map(rapid.StringN(1, 4, -1), func(s string) string { return strings.Repeat(s, 256) }),
	)
}

func TestEncodeIsPlainAndOneToOne(t *testing.T) {
	plain := regexp.MustCompile(`^(#[A-Za-z0-9_-]{43}|[A-Za-z0-9._~%-]*)$`)
	rapid.Check(t, func(t *rapid.T) {
		a, b := odd().Draw(t, "a"), odd().Draw(t, "b")
		if got := Encode(a); !plain.MatchString(got) || len(got) > encodedMax {
			t.Fatalf("Encode(%q) = %q", a, got)
		}
		if (a == b) != (Encode(a) == Encode(b)) {
			t.Fatalf("%q and %q are both %q", a, b, Encode(a))
		}
	})
}

func TestEncode(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "lesson-7_A.b~": "lesson-7_A.b~", "a:b": "a%3Ab", "{}": "%7B%7D", "\x00": "%00", "%": "%25", "#": "%23", "é": "%C3%A9",
	} {
		if got := Encode(text); got != want {
			t.Errorf("Encode(%q) = %q, want %q", text, got, want)
		}
	}
	if a, b := Encode(strings.Repeat("x", 1024)), Encode(strings.Repeat("x", 1023)+"y"); a == b || a[0] != '#' || len(a) != 44 {
		t.Errorf("long texts are %q and %q", a, b)
	}
}

func TestSlotsOfDifferentNamesHaveDifferentKeys(t *testing.T) {
	k := Keys{Prefix: "p"}
	rapid.Check(t, func(t *rapid.T) {
		pool, slot := odd().Draw(t, "pool"), odd().Draw(t, "slot")
		otherPool, otherSlot := odd().Draw(t, "other pool"), odd().Draw(t, "other slot")
		same := pool == otherPool && slot == otherSlot
		if (k.Slot(pool, slot) == k.Slot(otherPool, otherSlot)) != same {
			t.Fatalf("%q %q and %q %q share %q", pool, slot, otherPool, otherSlot, k.Slot(pool, slot).State)
		}
	})
}

// What one part of a script touches must be on one shard, as Redis itself counts.
func TestKeysOfOnePartShareAShard(t *testing.T) {
	client := connect(t, "--cluster-enabled", "yes")
	shard := func(key string) int64 {
		n, err := client.ClusterKeySlot(context.Background(), key).Result()
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	k := Keys{Prefix: "slotgate"}
	shards := map[int64]bool{}
	for _, name := range []string{"", "a", "a}b", "{", "}{", "{}", "a:b", "\x00", "\r\n", "é", strings.Repeat("}", 1024)} {
		slot := k.Slot("pool"+name, name)
		leader := k.Leader("pool" + name)
		record := k.KeyRecord(Encode(name) + "x")
		for _, group := range [][]string{
			{slot.State, slot.Due, slot.Ledger, slot.Look, slot.Tombstone("id"), slot.Limit("rule"), slot.Limit(name)},
			{leader.Leader, leader.Fence, leader.Tombstone("call")},
			{record, k.Answer(record, "owner"), k.KeyTombstone(record, "id")},
		} {
			for _, key := range group[1:] {
				if shard(key) != shard(group[0]) {
					t.Errorf("%q and %q are on different shards", group[0], key)
				}
			}
		}
		shards[shard(slot.State)] = true
	}
	if len(shards) < 8 {
		t.Errorf("eleven slots are on %d shards only: the tag does not tell them apart", len(shards))
	}
}
