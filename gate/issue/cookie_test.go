package issue

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slotgate/slotgate/rules"
)

func fields(lines ...string) []rules.Field {
	var list []rules.Field
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		list = append(list, rules.Field{Name: name, Value: value})
	}
	return list
}

func TestOwnCookiesAreTakenOff(t *testing.T) {
	own := slot.Name() + "=v"
	for _, row := range []struct {
		sent, rest []rules.Field
		taken      int
	}{
		{fields("Cookie: a=1"), fields("Cookie: a=1"), 0},
		{fields("Accept: x", "Cookie: "+own, "Via: y"), fields("Accept: x", "Via: y"), 1},
		{fields("Cookie: a=1; " + own), fields("Cookie: a=1"), 1},
		{fields("Cookie: " + own + "; a=1"), fields("Cookie: a=1"), 1},
		{fields("Cookie: a=1; " + own + "; b=\"2\";c=3; " + own), fields("Cookie: a=1; b=\"2\";c=3"), 2},
		{fields("cookie: " + own + ";" + own), fields(), 2},
		{fields("Cookie: "+own, "Cookie: a=1;  b=2 "), fields("Cookie: a=1;  b=2 "), 1},
		{fields("Cookie: " + slot.Name()), fields(), 1},
		// not the gate's: another length, other characters, another beginning
		{fields("Cookie: sg_rid=v; sg_rid_=v; sg_rid_abc=v"), fields("Cookie: sg_rid=v; sg_rid_=v; sg_rid_abc=v"), 0},
		{fields("Cookie: sg_rid_abcdefghijk.=v"), fields("Cookie: sg_rid_abcdefghijk.=v"), 0},
		{fields("Cookie: SG_RID" + own[6:]), fields("Cookie: SG_RID" + own[6:]), 0},
		{fields("X-Cookie: " + own), fields("X-Cookie: " + own), 0},
	} {
		before := fmt.Sprint(row.sent)
		rest, taken := Take(row.sent, []string{"other", "sg_rid"})
		if !slices.Equal(rest, row.rest) || len(taken) != row.taken {
			t.Errorf("%v leaves %v and takes %v", row.sent, rest, taken)
		}
		for _, c := range taken {
			if c.Name != slot.Name() || c.Value != "v" && c.Value != "" {
				t.Errorf("%v: took %+v", row.sent, c)
			}
		}
		if fmt.Sprint(row.sent) != before {
			t.Errorf("%s was changed to %v", before, row.sent)
		}
	}
}

// TestOthersCookiesCostNothing: every request that passes goes this way.
func TestOthersCookiesCostNothing(t *testing.T) {
	sent, names := fields("Host: a", "Cookie: session=abc; theme=dark; _ga=GA1.2.3.4"), []string{"sg_rid"}
	if n := testing.AllocsPerRun(100, func() { Take(sent, names) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestCookiesAsBrowsersReadThem(t *testing.T) {
	for _, row := range []struct {
		name   string
		secure bool
		want   bool
	}{{"sg_rid_x", false, false}, {"sg_rid_x", true, true}, {"__Host-sg_x", false, true}, {"__Secure-sg_x", false, true}} {
		for _, f := range []rules.Field{Set(row.name, "v", time.Hour, row.secure), Remove(row.name, row.secure)} {
			c, err := http.ParseSetCookie(f.Value)
			if err != nil || f.Name != "Set-Cookie" {
				t.Fatalf("%v: %v", f, err)
			}
			if c.Name != row.name || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Path != "/" || c.Domain != "" || c.Secure != row.want {
				t.Errorf("%v is read as %+v", f, c)
			}
			if removed := c.MaxAge < 0; removed != (c.Value == "") || !removed && c.MaxAge != 3600 {
				t.Errorf("%v lives for %d", f, c.MaxAge)
			}
		}
	}
}

// TestABrowserIsLeftWithFew opens the pages of many slots.
func TestABrowserIsLeftWithFew(t *testing.T) {
	var jar []Cookie
	open := func(i int) (removed []string) {
		b := slot
		b.Slot = fmt.Sprint(i)
		removed = Surplus(jar, "sg_rid", []string{b.Name()})
		jar = slices.DeleteFunc(jar, func(c Cookie) bool { return c.Name == b.Name() || slices.Contains(removed, c.Name) })
		jar = append(jar, Cookie{b.Name(), key.Seal(b, NewID(now.Add(time.Duration(i)*time.Second)))})
		return removed
	}
	for i := range MaxCookies {
		if gone := open(i); gone != nil {
			t.Fatalf("with %d cookies %v went", i, gone)
		}
	}
	for i := range 40 {
		oldest := slot
		oldest.Slot = fmt.Sprint(i)
		if gone := open(MaxCookies + i); len(jar) != MaxCookies || !slices.Equal(gone, []string{oldest.Name()}) {
			t.Fatalf("%v went instead of slot %d's, %d are left", gone, i, len(jar))
		}
	}
	if gone := open(MaxCookies + 39); gone != nil {
		t.Fatalf("the page of a slot was fetched again, and %v went", gone)
	}
	// What cannot be read goes first, twins count once, others' cookies are left alone, and
	// a client that sends very many is not answered with as many.
	junk := Cookie{slot.Name()[:len(slot.Name())-1] + "_", "junk"}
	own := append([]Cookie{{"other_abcdefghijkl", "x"}, junk, junk}, jar...)
	if gone := Surplus(own, "sg_rid", []string{"sg_rid_AAAAAAAAAAAA"}); len(gone) != 2 || gone[0] != junk.Name {
		t.Errorf("%v went", gone)
	}
	var flood []Cookie
	for i := range 1000 {
		b := slot
		b.Slot = fmt.Sprint("flood ", i)
		flood = append(flood, Cookie{b.Name(), "junk"})
	}
	if gone := Surplus(flood, "sg_rid", nil); len(gone) != maxRemoved {
		t.Errorf("%d went at once", len(gone))
	}
}

func FuzzTake(f *testing.F) {
	f.Add("a=1; " + slot.Name() + "=v;b")
	f.Add("; ;=;" + slot.Name())
	f.Fuzz(func(t *testing.T, line string) {
		sent := []rules.Field{{Name: "Cookie", Value: line}}
		rest, own := Take(sent, []string{"sg_rid"})
		again, more := Take(rest, []string{"sg_rid"})
		if more != nil || !slices.Equal(again, rest) {
			t.Fatalf("%q leaves %q, and then %q", line, rest, again)
		}
		if own == nil && !slices.Equal(rest, sent) {
			t.Fatalf("%q has no own cookie and becomes %q", line, rest)
		}
	})
}
