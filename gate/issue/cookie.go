package issue

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/slotgate/slotgate/rules"
)

const (
	// MaxCookies is how many ids a browser is left with. Browsers keep 50 cookies of a
	// site at least (RFC 6265, 6.1), and then throw out the oldest, whosever they are.
	MaxCookies = 16
	// maxRemoved bounds what one answer takes out of a browser.
	maxRemoved = 16
)

// Cookie is one of the gate's own cookies, as a request brought it.
type Cookie struct{ Name, Value string }

// Take takes the gate's own cookies, those of the configured names, off a request. What
// it returns as the rest is fields itself where there are none; all else in the lines is
// left as it was sent, and a line of which nothing is left goes.
func Take(fields []rules.Field, names []string) (rest []rules.Field, own []Cookie) {
	for i := range fields {
		if strings.EqualFold(fields[i].Name, "Cookie") {
			_, own = split(fields[i].Value, names, own)
		}
	}
	if own == nil {
		return fields, nil
	}
	rest = make([]rules.Field, 0, len(fields))
	for _, f := range fields {
		if strings.EqualFold(f.Name, "Cookie") {
			if f.Value, _ = split(f.Value, names, nil); f.Value == "" {
				continue
			}
		}
		rest = append(rest, f)
	}
	return rest, own
}

// split parts a line into what is not the gate's and what is.
func split(line string, names []string, own []Cookie) (rest string, _ []Cookie) {
	if !slices.ContainsFunc(names, func(base string) bool { return strings.Contains(line, base) }) {
		return line, own
	}
	before := len(own)
	var kept []string
	for pair := range strings.SplitSeq(line, ";") {
		name, value, _ := strings.Cut(strings.Trim(pair, " \t"), "=")
		if slices.ContainsFunc(names, func(base string) bool { return isOwn(name, base) }) {
			own = append(own, Cookie{name, value})
		} else {
			kept = append(kept, pair)
		}
	}
	if len(own) == before {
		return line, own
	}
	return strings.Trim(strings.Join(kept, ";"), " \t"), own
}

// isOwn reports whether Binding.Name gives such names.
func isOwn(name, base string) bool {
	suffix, ok := strings.CutPrefix(name, base+"_")
	if !ok || len(suffix) != encoding.EncodedLen(nameSize) {
		return false
	}
	_, err := encoding.DecodeString(suffix)
	return err == nil
}

// Set is the field that has a browser keep an id for as long as it is good. Sites that
// link to the page count (Lax), scripts of the page do not need it (HttpOnly). secure: the
// browser came by https.
func Set(name, value string, life time.Duration, secure bool) rules.Field {
	seconds := int64(max(life, time.Second) / time.Second)
	return field(name, value, seconds, secure)
}

// Remove is the field that has a browser forget a cookie.
func Remove(name string, secure bool) rules.Field { return field(name, "", 0, secure) }

func field(name, value string, seconds int64, secure bool) rules.Field {
	text := name + "=" + value + "; Path=/; Max-Age=" + strconv.FormatInt(seconds, 10) + "; HttpOnly; SameSite=Lax"
	// Browsers take these names with Secure only (RFC 6265bis, 4.1.3).
	if secure || strings.HasPrefix(name, "__Host-") || strings.HasPrefix(name, "__Secure-") {
		text += "; Secure"
	}
	return rules.Field{Name: "Set-Cookie", Value: text}
}

// Surplus are the names of the cookies that have to go when those of added come: the
// oldest of a configured name, by their own account.
func Surplus(own []Cookie, cookie string, added []string) []string {
	var kept []Cookie
	for _, c := range own {
		known := func(k Cookie) bool { return k.Name == c.Name }
		if isOwn(c.Name, cookie) && !slices.Contains(added, c.Name) && !slices.ContainsFunc(kept, known) {
			kept = append(kept, c)
		}
	}
	slices.SortStableFunc(kept, func(a, b Cookie) int { return cmp.Compare(age(a), age(b)) })
	surplus := min(max(0, len(kept)+len(added)-MaxCookies), len(kept), maxRemoved)
	var names []string
	for _, c := range kept[:surplus] {
		names = append(names, c.Name)
	}
	return names
}

// age is when a cookie says that it was issued, in seconds; 0 where it says nothing.
func age(c Cookie) int64 {
	id, _, ok := read(c.Value)
	if !ok {
		return 0
	}
	return id.Issued.Unix()
}
