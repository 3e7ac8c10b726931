// Package token shows that what one request brings is found in its own answer, its own
// forwarded request and its own lines of the logs, and nowhere else (P5, P6): the gate uses
// the memory of one request again for the next.
package token

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slotgate/slotgate/cmd/slotgate/e2e/stage"
)

func TestMain(m *testing.M) { os.Exit(stage.Main(m)) }

const clients = 16

// storm is how long the clients go on.
func storm() time.Duration {
	if os.Getenv("SLOTGATE_SOAK") != "" {
		return time.Minute
	}
	return 8 * time.Second
}

var (
	tokens = regexp.MustCompile(`tok[0-9]{8}x`)
	last   atomic.Int64
)

func newToken() string { return fmt.Sprintf("tok%08dx", last.Add(1)) }

// filler is at least so many bytes that say whose they are.
func filler(token string, n int) string { return strings.Repeat(token+",", n/len(token)+1) }

// only fails the test if a text holds another token than its own.
func only(t *testing.T, what, own, text string) {
	t.Helper()
	if found := tokens.FindString(strings.ReplaceAll(text, own, "")); found != "" {
		t.Errorf("%s of %s holds %s:\n%.1500s", what, own, found, text)
	}
}

// lines fails the test if a line of a log holds several tokens, and counts those with one.
func lines(t *testing.T, what, text string) (n int) {
	t.Helper()
	for line := range strings.SplitSeq(text, "\n") {
		found := tokens.FindAllString(line, -1)
		if len(found) == 0 {
			continue
		}
		n++
		if slices.ContainsFunc(found, func(other string) bool { return other != found[0] }) {
			t.Errorf("%s has a line of several requests: %s", what, line)
			return n
		}
	}
	return n
}

const config = `
log: { level: debug, format: json, access: %q }
tracing: { otlp_endpoint: %q, sample: 1 }
upstream: { url: %q }
store: { ` + stage.MemoryStore + ` }
pools:
  lessons: { capacity: 5 }
  few: { capacity: 2 }
rules:
  - name: book
    match: { methods: [POST], path: "/lessons/{lesson}/bookings" }
    action: book
    pool: lessons
    slot: path:lesson
    subject: json:/student_id
    idempotency: { key: [header:Idempotency-Key] }
  - name: few
    match: { methods: [POST], path: "/few/{lesson}/{any}" }
    action: book
    pool: few
    slot: path:lesson
    subject: json:/student_id
    idempotency: { key: [header:Idempotency-Key] }
  - name: shadow
    mode: shadow
    match: { methods: [POST], path: "/shadow/{lesson}/bookings" }
    action: book
    pool: lessons
    slot: path:lesson
    subject: json:/student_id
    idempotency: { key: [header:Idempotency-Key] }
    outcomes: [ { when: { text: "nothing" }, is: refused } ]
`

func TestNothingOfARequestIsInAnothers(t *testing.T) {
	backend := stage.Serve(t, backend{t})
	traces := stage.Serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
	}))
	access := filepath.Join(t.TempDir(), "access.log")
	gate := stage.StartGate(t, fmt.Sprintf(config, access, traces, backend))
	seed := rand.Uint64()
	t.Logf("seed %d", seed)

	var all sync.WaitGroup
	end := time.Now().Add(storm())
	for i := range clients {
		all.Go(func() {
			c := &client{t: t, address: strings.TrimPrefix(gate.URL, "http://"), rand: rand.New(rand.NewPCG(seed, uint64(i)))}
			defer c.shut()
			for time.Now().Before(end) && !t.Failed() {
				c.ask()
				if c.rand.IntN(20) == 0 {
					c.shut()
				}
			}
		})
	}
	all.Wait()
	if err := gate.Stop(); err != nil {
		t.Error(err)
	}
	said := gate.Log.String()
	for _, fault := range []string{"DATA RACE", "panicked", "panic:"} {
		if strings.Contains(said, fault) {
			t.Errorf("the gate's log has %s:\n%s", fault, said)
		}
	}
	text, err := os.ReadFile(access)
	if err != nil {
		t.Fatal(err)
	}
	asked, logged, told := last.Load(), lines(t, "the access log", string(text)), lines(t, "the log", said)
	t.Logf("%d requests, %d lines in the access log, %d in the log", asked, logged, told)
	if logged < int(asked)/2 {
		t.Errorf("of %d requests %d are in the access log", asked, logged)
	}
}
