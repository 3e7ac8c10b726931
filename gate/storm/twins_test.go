package storm

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"
)

// Each server answers a request only when its twin has reached the other one,
// so twins that are not under way together time out.
func TestTwinsAreUnderWayTogetherThroughDifferentURLs(t *testing.T) {
	type meeting struct {
		both    chan struct{}
		servers []string
	}
	var mu sync.Mutex
	meetings := map[string]*meeting{}
	handler := func(server string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			key := r.Header.Get("Idempotency-Key")
			mu.Lock()
			m := meetings[key]
			if m == nil {
				m = &meeting{both: make(chan struct{})}
				meetings[key] = m
			}
			m.servers = append(m.servers, server)
			if len(m.servers) == 2 {
				close(m.both)
			}
			mu.Unlock()
			select {
			case <-m.both:
				fmt.Fprint(w, key)
			case <-r.Context().Done():
			}
		}
	}
	report := mustRun(t, Options{
		Targets: []string{serve(t, handler("a")), serve(t, handler("b"))},
		Clients: 8, Requests: 300, RetriesSameKey: 1, Timeout: 5 * time.Second,
	})
	if report.Statuses[200] != 600 || len(meetings) != 300 {
		t.Fatalf("statuses %v, errors %v, %d keys", report.Statuses, report.Errors, len(meetings))
	}
	for key, m := range meetings {
		slices.Sort(m.servers)
		if !slices.Equal(m.servers, []string{"a", "b"}) {
			t.Errorf("key %s reached %v", key, m.servers)
		}
	}
	if report.Twins != (TwinCounts{Pairs: 300, Same: 300}) || len(report.Successes) != 300 || report.SuccessfulAnswers != 600 {
		t.Errorf("twins %+v, %d successes of %d", report.Twins, len(report.Successes), report.SuccessfulAnswers)
	}
}

func TestTwinsAreCompared(t *testing.T) {
	for name, test := range map[string]struct {
		first, second func(http.ResponseWriter)
		want          TwinCounts
		successes     int // of 10 pairs
	}{
		"same":                   {text(201, "b1"), text(201, "b1"), TwinCounts{Pairs: 10, Same: 10}, 10},
		"same refusal":           {text(409, "no"), text(409, "no"), TwinCounts{Pairs: 10, Same: 10}, 0},
		"other body":             {text(201, "b1"), text(201, "b2"), TwinCounts{Pairs: 10, Differed: 10}, 20},
		"other status":           {text(201, "b1"), text(409, "b1"), TwinCounts{Pairs: 10, Differed: 10}, 10},
		"server error":           {text(201, "b1"), text(503, ""), TwinCounts{Pairs: 10, NotCompared: 10}, 10},
		"both server errors":     {text(503, ""), text(503, ""), TwinCounts{Pairs: 10, NotCompared: 10}, 0},
		"replay with other body": {text(201, "b1"), replay(201, "b1 again"), TwinCounts{Pairs: 10, Differed: 10}, 10},
		"no answer":              {text(201, "b1"), func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, TwinCounts{Pairs: 10, NotCompared: 10}, 10},
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			seen := map[string]bool{}
			url := serve(t, func(w http.ResponseWriter, r *http.Request) {
				key, _ := io.ReadAll(r.Body)
				mu.Lock()
				again := seen[string(key)]
				seen[string(key)] = true
				mu.Unlock()
				if again {
					test.second(w)
				} else {
					test.first(w)
				}
			})
			report := mustRun(t, Options{
				Targets: []string{url}, Body: "{key}", Clients: 4, Requests: 10, RetriesSameKey: 1,
				Success: mustParseSuccess(t, "2xx"),
			})
			if report.Twins != test.want || len(report.Successes) != test.successes {
				t.Errorf("twins %+v with %d successes, want %+v with %d", report.Twins, len(report.Successes), test.want, test.successes)
			}
		})
	}
}

func text(status int, body string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

func replay(status int, body string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.Header().Set("Idempotent-Replayed", "true")
		text(status, body)(w)
	}
}
