package issue

import (
	"strings"
	"testing"
	"time"
)

var (
	key  = Key{1}
	now  = time.Unix(1_800_000_000, 0)
	slot = Binding{Cookie: "sg_rid", Group: "book", Pool: "lessons", Slot: "7"}
)

func TestAnIDComesBackAsItWasIssued(t *testing.T) {
	id := NewID(now)
	if other := NewID(now); other.Text == id.Text || len(id.Text) != 22 {
		t.Fatalf("%q, then %q", id.Text, other.Text)
	}
	for _, spent := range []time.Time{{}, now.Add(time.Hour)} {
		id.Spent = spent
		value := key.Seal(slot, id)
		if got, ok := key.Open(slot, value); !ok || got.Text != id.Text || !got.Issued.Equal(now) || !got.Spent.Equal(spent) {
			t.Errorf("%+v is read from %q as %+v, %v", id, value, got, ok)
		}
		if strings.Trim(value, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			t.Errorf("%q is no cookie value without quotes", value)
		}
	}
}

func TestAnIDIsGoodForItsBindingAndKeyOnly(t *testing.T) {
	value := key.Seal(slot, NewID(now))
	for name, b := range map[string]Binding{
		"slot":   {"sg_rid", "book", "lessons", "8"},
		"pool":   {"sg_rid", "book", "lesson", "7"},
		"group":  {"sg_rid", "other", "lessons", "7"},
		"cookie": {"sg_ri", "book", "lessons", "7"},
		// the same text in all, cut elsewhere
		"cut": {"sg_rid", "booklessons", "", "7"},
	} {
		if _, ok := key.Open(b, value); ok {
			t.Errorf("%s: another one's id is good", name)
		}
		if b.Name() == slot.Name() {
			t.Errorf("%s: another one's cookie has the same name", name)
		}
	}
	if _, ok := (Key{2}).Open(slot, value); ok {
		t.Error("an id under another key is good")
	}
	for i := range value {
		for _, c := range []byte("A_z") {
			if forged := value[:i] + string(c) + value[i+1:]; forged != value {
				if _, ok := key.Open(slot, forged); ok {
					t.Fatalf("%q is taken for %q", forged, value)
				}
			}
		}
	}
	for _, junk := range []string{"", "x", value[1:], value + "A", value + "=", strings.Repeat("A", len(value)), strings.Repeat("\x00", len(value))} {
		if _, ok := key.Open(slot, junk); ok {
			t.Errorf("%q is good", junk)
		}
	}
}

func TestAnIDHasItsTime(t *testing.T) {
	const ttl = time.Hour
	for _, row := range []struct {
		age, spent  time.Duration // spent: 0 not, else from now on
		good, fresh bool
	}{
		{0, 0, true, true},
		{ttl/2 - time.Second, 0, true, true},
		{ttl / 2, 0, true, false}, // a page that is fetched now may stay open
		{ttl - time.Second, 0, true, false},
		{ttl, 0, false, false},
		{0, -time.Second, true, false},
		{0, time.Second, true, true},       // the backend may not be done
		{ttl / 2, time.Second, true, true}, // … and that goes before age
		{ttl, time.Second, false, false},
		{-ClockSkew, 0, true, true}, // issued by a gate whose clock is ahead
		{-ClockSkew - time.Second, 0, false, false},
	} {
		id := ID{Issued: now.Add(-row.age)}
		if row.spent != 0 {
			id.Spent = now.Add(row.spent)
		}
		if id.Good(now, ttl) != row.good || id.Fresh(now, ttl) != row.fresh {
			t.Errorf("%v old, spent %v from now: good %v, fresh %v", row.age, row.spent, !row.good, !row.fresh)
		}
	}
}

func TestAnIDIsSpentOnceAndNoLater(t *testing.T) {
	id := NewID(now)
	if !id.Spend(now.Add(time.Minute)) || id.Spend(now.Add(time.Hour)) || id.Spend(now.Add(time.Minute)) {
		t.Fatalf("spent from %v", id.Spent)
	}
	if !id.Spend(now) || !id.Spent.Equal(now) {
		t.Fatalf("a final answer came, and the id is spent from %v", id.Spent)
	}
}

func FuzzOpen(f *testing.F) {
	f.Add(key.Seal(slot, NewID(now)))
	f.Add("")
	f.Fuzz(func(t *testing.T, value string) {
		id, ok := key.Open(slot, value)
		if ok && key.Seal(slot, id) != value {
			t.Fatalf("%q has two spellings", value)
		}
		age(Cookie{"x", value})
	})
}
