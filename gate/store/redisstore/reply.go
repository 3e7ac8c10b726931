package redisstore

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
)

// reply reads a script's list of texts in order. The first thing that is not as
// it must be is kept, and everything after it reads as zero.
type reply struct {
	op     string
	values []string
	few    [13]string // room for these
	next   int
	err    *store.Error
}

// newReply expects a list of at least so many texts.
func newReply(op string, raw any, least int) *reply {
	r := &reply{op: op}
	list, ok := raw.([]any)
	if !ok {
		r.err = strange(op, "%T, want a list", raw)
		return r
	}
	r.values = make([]string, len(list))
	for i, value := range list {
		if r.values[i], ok = value.(string); !ok && r.err == nil {
			r.err = strange(op, "value %d is %T, want a text", i+1, value)
		}
	}
	return r.atLeast(least)
}

// unpack expects one text of so many values, 13 at most, with "|" between, which only the last
// may hold.
func (r *reply) unpack(op string, raw any, n int) {
	r.op = op
	rest, more := raw.(string)
	if !more {
		r.err = strange(op, "%T, want a text", raw)
		return
	}
	r.values = r.few[:0]
	for more && len(r.values) < n-1 {
		var value string
		value, rest, more = strings.Cut(rest, "|")
		r.values = append(r.values, value)
	}
	if more {
		r.values = append(r.values, rest)
	}
	r.atLeast(n)
}

func (r *reply) atLeast(n int) *reply {
	if r.err == nil && len(r.values) < n {
		r.err = strange(r.op, "%d values, want %d", len(r.values), n)
	}
	return r
}

func (r *reply) more() bool { return r.err == nil && r.next < len(r.values) }

func (r *reply) fail(what string, got any) {
	if r.err == nil {
		r.err = strange(r.op, "value %d is %.40q, want %s", r.next, got, what)
	}
}

func (r *reply) text() string {
	if r.err != nil {
		return ""
	}
	if r.next >= len(r.values) {
		r.err = strange(r.op, "%d values, want more", len(r.values))
		return ""
	}
	r.next++
	return r.values[r.next-1]
}

func (r *reply) flag() bool {
	text := r.text()
	if text != "0" && text != "1" {
		r.fail("0 or 1", text)
	}
	return text == "1"
}

// count is a number that is not negative.
func (r *reply) count() int64 {
	text := r.text()
	n, err := strconv.ParseInt(text, 10, 64)
	if r.err == nil && (err != nil || n < 0) {
		r.fail("a count", text)
		return 0
	}
	return n
}

// units is a number of units, or -1 where it is not known.
func (r *reply) units() int64 {
	if r.more() && r.values[r.next] == "-1" {
		r.next++
		return -1
	}
	return r.count()
}

// signed is a number that may be negative.
func (r *reply) signed() int64 { return r.parse("a number", r.text()) }

func (r *reply) parse(what, text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if r.err == nil && err != nil {
		r.fail(what, text)
		return 0
	}
	return n
}

func (r *reply) millis() time.Duration {
	n := r.count()
	if n > math.MaxInt64/int64(time.Millisecond) {
		r.fail("milliseconds", n)
		return 0
	}
	return time.Duration(n) * time.Millisecond
}

func (r *reply) verdict() decision.Verdict { return r.parseVerdict(r.text()) }

func (r *reply) parseVerdict(word string) decision.Verdict {
	verdict, ok := decision.ParseVerdict(word)
	if !ok {
		r.fail("a verdict", word)
	}
	return verdict
}

// state is a hold's state, or NoHold for "".
func (r *reply) state() decision.HoldState {
	word := r.text()
	state, ok := parseState(word)
	if !ok {
		r.fail("a hold's state", word)
	}
	return state
}

func parseState(word string) (decision.HoldState, bool) {
	if word == "" {
		return decision.NoHold, true
	}
	return decision.ParseHoldState(word)
}

// end returns what went wrong, if anything did.
func (r *reply) end() error {
	if r.err != nil {
		return r.err
	}
	return nil
}
