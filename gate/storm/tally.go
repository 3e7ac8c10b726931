package storm

import (
	"hash/maphash"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// maxNames bounds how many values of a Gate field are counted apart, whatever a
// server sends; the rest is counted together.
const (
	maxNames   = 64
	maxName    = 64
	otherNames = "(other)"
)

var bodySeed = maphash.MakeSeed()

// ofTheMoment are the members of a problem (RFC 9457) by which two refusals of the same
// request differ although they say the same: whose it is, and whether a unit may come free
// yet, which one of two may be asked before the last hold is confirmed and one after it.
var ofTheMoment = regexp.MustCompile(`"request_id"\s*:\s*"[^"]*"|"retryable"\s*:\s*(true|false)`)

// twinBody is the part of an answer's body that should be equal for twins.
func twinBody(e *Exchange) []byte {
	if strings.HasPrefix(e.Header.Get("Content-Type"), "application/problem+json") {
		return ofTheMoment.ReplaceAll(e.Body, nil)
	}
	return e.Body
}

// tally counts the exchanges of one storm into its report. It is safe for
// concurrent use.
type tally struct {
	mu      sync.Mutex
	report  *Report
	started time.Time // set before the first request
	success Success
}

// record counts one request that was sent, or could not be.
func (t *tally) record(o order, e *Exchange) {
	r := result{failed: true}
	if e.Err == nil {
		r = result{
			status:   e.Status,
			failed:   e.Status >= 500,
			success:  t.success.Matches(e.Status, e.Body),
			replayed: e.Header.Get("Idempotent-Replayed") == "true",
		}
	}
	if o.twins != nil {
		r.sum = maphash.Bytes(bodySeed, twinBody(e))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.report.Sent++
	now := t.report.Timeline.at(e.Sent.Add(e.Latency).Sub(t.started))
	if e.Err != nil {
		t.report.Errors[e.Err.(*TransportError).Kind]++
		now.Errors++
	} else {
		t.report.Answered++
		t.report.Statuses[e.Status]++
		now.Statuses[e.Status]++
		t.report.Latency.Record(e.Latency)
		now.Latency.Record(e.Latency)
		if decision := countName(t.report.Decisions, e.Header, "Gate-Decision"); decision != "" {
			now.Decisions[decision]++
		}
		countName(t.report.Modes, e.Header, "Gate-Mode")
	}
	repeated := t.compare(o.twins, r)
	if r.success {
		t.report.SuccessfulAnswers++
		if !repeated {
			t.report.Successes = append(t.report.Successes, Booking{
				N: e.N, Repeat: e.Repeat, Subject: e.Subject, Slot: e.Slot, Target: o.target, Status: e.Status,
			})
		}
	}
}

// compare settles a pair of twins when its second result comes, and reports
// whether that only repeats the success of the first. Two successes are one
// booking when the answers are the same or one says that it is a replay.
func (t *tally) compare(pair *twins, r result) (repeated bool) {
	if pair == nil {
		return false
	}
	if pair.first == nil {
		pair.first = &r
		return false
	}
	t.report.Twins.add(*pair.first, r)
	return pair.first.success && (r.sameAnswer(*pair.first) || r.replayed || pair.first.replayed)
}

// countName counts the value of a field where the answer has it, and returns the
// name that it counts under, "" where the answer has none.
func countName(counts map[string]int, header http.Header, field string) string {
	values := header[field]
	if len(values) == 0 {
		return ""
	}
	name := values[0]
	if len(name) > maxName {
		name = name[:maxName]
	}
	if !isToken(name) {
		name = strconv.QuoteToASCII(name)
	}
	if _, known := counts[name]; !known && len(counts) >= maxNames {
		name = otherNames
	}
	counts[name]++
	return name
}

// progress is a snapshot.
func (t *tally) progress() Progress {
	t.mu.Lock()
	defer t.mu.Unlock()
	return Progress{
		Done:      t.report.Sent,
		Total:     t.report.Requests + t.report.Repeats,
		Successes: len(t.report.Successes),
		Status5xx: t.report.Status5xx(),
		Errors:    t.report.TransportErrors(),
		Elapsed:   time.Since(t.started),
	}
}
