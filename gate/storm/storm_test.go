package storm

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func serve(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

// lessons is a booking API that sells a fixed number of seats of each lesson.
type lessons struct {
	mu    sync.Mutex
	seats int
	sold  map[string]int
	seen  int
}

func (l *lessons) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen++
	lesson := r.URL.Path
	w.Header().Set("Gate-Mode", "normal")
	if l.sold[lesson] == l.seats {
		w.Header().Set("Gate-Decision", "sold-out")
		w.WriteHeader(http.StatusConflict)
		return
	}
	l.sold[lesson]++
	w.Header().Set("Gate-Decision", "admitted")
	w.WriteHeader(http.StatusCreated)
	fmt.Fprintf(w, "%s seat %d", lesson, l.sold[lesson])
}

func TestStormCountsExactly(t *testing.T) {
	api := &lessons{seats: 5, sold: map[string]int{}}
	url := serve(t, api.ServeHTTP)
	var exchanges, finals atomic.Int64
	report := mustRun(t, Options{
		Targets: []string{url + "/a/{n%20+1}", url + "/a/{n%20+1}"}, Clients: 32, Requests: 2000, Subjects: 500, Seed: 3,
		OnResponse: func(e Exchange) {
			exchanges.Add(1)
			if want := fmt.Sprintf("%s/a/%d", url, e.Slot); e.URL != want || e.Slot != int64(e.N%20+1) {
				t.Errorf("request %d for slot %d went to %s", e.N, e.Slot, e.URL)
			}
		},
		Progress: func(p Progress) {
			if p.Final {
				finals.Add(1)
				if p.Done != 2000 || p.Total != 2000 || p.Successes != 100 {
					t.Errorf("last progress %+v", p)
				}
			}
		},
	})
	if api.seen != 2000 || report.Sent != 2000 || report.Answered != 2000 || exchanges.Load() != 2000 || report.Latency.Count() != 2000 {
		t.Errorf("server saw %d, report %d sent %d answered %d latencies, %d exchanges", api.seen, report.Sent, report.Answered, report.Latency.Count(), exchanges.Load())
	}
	if !reflect.DeepEqual(report.Statuses, map[int]int{201: 100, 409: 1900}) {
		t.Errorf("statuses %v", report.Statuses)
	}
	if !reflect.DeepEqual(report.Decisions, map[string]int{"admitted": 100, "sold-out": 1900}) || report.Modes["normal"] != 2000 {
		t.Errorf("decisions %v, modes %v", report.Decisions, report.Modes)
	}
	var sum Interval
	sum.Statuses, sum.Decisions = map[int]int{}, map[string]int{}
	for _, i := range report.Timeline.Intervals() {
		sum.add(i)
	}
	if !reflect.DeepEqual(sum.Statuses, report.Statuses) || !reflect.DeepEqual(sum.Decisions, report.Decisions) || sum.Latency != report.Latency || sum.To != report.Elapsed {
		t.Errorf("the intervals sum up to %v, %v and %d latencies until %v", sum.Statuses, sum.Decisions, sum.Latency.Count(), sum.To)
	}
	slots := report.PerSlot()
	for slot := int64(1); slot <= 20; slot++ {
		if slots[slot] != 5 {
			t.Errorf("slot %d has %d successes, want 5", slot, slots[slot])
		}
	}
	if len(slots) != 20 || report.Connections != 64 || finals.Load() != 1 || report.StoppedBy != "" {
		t.Errorf("%d slots, %d connections, %d last progress calls, stopped by %q", len(slots), report.Connections, finals.Load(), report.StoppedBy)
	}
}

func TestDuplicatesAreSeen(t *testing.T) {
	url := serve(t, func(http.ResponseWriter, *http.Request) {})
	report := mustRun(t, Options{Targets: []string{url}, Body: "lesson={n%2}&s={subject}", Clients: 4, Requests: 60, Subjects: 10, Seed: 1})
	pairs := map[[2]int64]bool{}
	for _, b := range report.Successes {
		pairs[[2]int64{int64(b.Subject), b.Slot}] = true
	}
	if len(report.Successes) != 60 || len(pairs) > 20 || len(report.Duplicates()) != 60-len(pairs) {
		t.Errorf("%d successes, %d subjects in slots, %d duplicates", len(report.Successes), len(pairs), len(report.Duplicates()))
	}
}

// quiet is for servers whose clients break off on purpose.
func quiet() *log.Logger { return log.New(io.Discard, "", 0) }

func mustParseSuccess(t *testing.T, conditions ...string) Success {
	t.Helper()
	s, err := ParseSuccess(conditions...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSuccessLooksIntoTheBody(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if string(body) < "3" {
			io.WriteString(w, `{"code":0}`)
		} else {
			io.WriteString(w, `{"code":4001}`)
		}
	})
	report := mustRun(t, Options{Targets: []string{url}, Body: "{n%10}", Clients: 3, Requests: 100, Success: mustParseSuccess(t, "json:/code=0")})
	if len(report.Successes) != 30 || report.Statuses[200] != 100 {
		t.Errorf("%d successes of %v, want 30", len(report.Successes), report.Statuses)
	}
}

func TestSameSeedSendsTheSameStorm(t *testing.T) {
	url := serve(t, func(http.ResponseWriter, *http.Request) {})
	storm := func(seed uint64) []string {
		var mu sync.Mutex
		var sent []string
		mustRun(t, Options{
			Targets: []string{url + "/a/{n%7}", url + "/b"}, Clients: 8, Requests: 200, Subjects: 50, RetriesSameKey: 0.25, Seed: seed,
			OnResponse: func(e Exchange) {
				mu.Lock()
				defer mu.Unlock()
				sent = append(sent, fmt.Sprintf("%d %v %d %s %s", e.N, e.Repeat, e.Subject, e.Key, e.URL))
			},
		})
		slices.Sort(sent)
		return sent
	}
	first := storm(5)
	if len(first) != 250 || !slices.Equal(first, storm(5)) {
		t.Errorf("two storms of one seed differ, the first sent %d", len(first))
	}
	if slices.Equal(first, storm(6)) {
		t.Error("two seeds send the same storm")
	}
}

func TestClientsBoundConcurrency(t *testing.T) {
	var under, most atomic.Int64
	all := make(chan struct{})
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		n := under.Add(1)
		defer under.Add(-1)
		for {
			seen := most.Load()
			if n <= seen || most.CompareAndSwap(seen, n) {
				break
			}
		}
		if n == 6 {
			close(all) // the clients' first requests are all here
		}
		select {
		case <-all:
		case <-r.Context().Done():
		}
	})
	report := mustRun(t, Options{Targets: []string{url}, Clients: 6, Requests: 6, Timeout: 5 * time.Second})
	if most.Load() != 6 || report.Statuses[200] != 6 {
		t.Errorf("at most %d at once, statuses %v, errors %v", most.Load(), report.Statuses, report.Errors)
	}
}

func TestFewerRequestsThanClients(t *testing.T) {
	url := serve(t, func(http.ResponseWriter, *http.Request) {})
	report := mustRun(t, Options{Targets: []string{url}, Clients: 50, Requests: 3})
	if report.Clients != 3 || report.Connections != 3 || report.Sent != 3 {
		t.Errorf("%d clients, %d connections, %d sent", report.Clients, report.Connections, report.Sent)
	}
}

func TestHTTPS(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 1 {
			w.WriteHeader(http.StatusHTTPVersionNotSupported)
		}
	}))
	server.Config.ErrorLog = quiet()
	server.StartTLS()
	t.Cleanup(server.Close)
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	report := mustRun(t, Options{Targets: []string{server.URL}, Clients: 4, Requests: 40, TLS: &tls.Config{RootCAs: roots}})
	if report.Statuses[200] != 40 || report.Connections != 4 {
		t.Errorf("statuses %v, errors %v, %d connections", report.Statuses, report.Errors, report.Connections)
	}
	if _, err := Run(t.Context(), Options{Targets: []string{server.URL}, Clients: 1, Requests: 1}); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("an unknown authority gives %v", err)
	}
}

// refusing is an address at which nothing listens any more.
func refusing(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
	return "http://" + listener.Addr().String()
}

func TestNothingConnects(t *testing.T) {
	report, err := Run(t.Context(), Options{Targets: []string{refusing(t), refusing(t)}, Clients: 3, Requests: 10})
	var refused *TransportError
	if report != nil || !errors.As(err, &refused) || refused.Kind != ConnectRefused {
		t.Errorf("report %v, error %v", report, err)
	}
}

func TestOneTargetRefuses(t *testing.T) {
	url := serve(t, func(http.ResponseWriter, *http.Request) {})
	report := mustRun(t, Options{Targets: []string{url, refusing(t)}, Clients: 4, Requests: 100, RetriesSameKey: 1})
	if report.Statuses[200] != 100 || report.Errors[ConnectRefused] != 100 || report.Twins.NotCompared != 100 {
		t.Errorf("statuses %v, errors %v, twins %+v", report.Statuses, report.Errors, report.Twins)
	}
}

// hanging answers nothing, and tells of each request.
func hanging(t *testing.T) (url string, arrived chan struct{}) {
	t.Helper()
	arrived = make(chan struct{}, 1000)
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		<-r.Context().Done()
	}), arrived
}

func TestTimeout(t *testing.T) {
	url, _ := hanging(t)
	report := mustRun(t, Options{Targets: []string{url}, Method: "GET", Clients: 4, Requests: 8, Timeout: 200 * time.Millisecond})
	if report.Errors[Timeout] != 8 || report.StoppedBy != "" || report.Latency.Count() != 0 {
		t.Errorf("errors %v, stopped by %q", report.Errors, report.StoppedBy)
	}
}

func TestInterruptKeepsTheReport(t *testing.T) {
	url, arrived := hanging(t)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for range 4 {
			<-arrived
		}
		cancel()
	}()
	report, err := Run(ctx, Options{Targets: []string{url}, Method: "GET", Clients: 4, Requests: 100, RetriesSameKey: 1})
	if err != nil {
		t.Fatal(err)
	}
	if report.StoppedBy != Interrupted || report.Errors[Stopped] != 4 || report.Sent != 4 {
		t.Errorf("stopped by %q, errors %v, %d sent", report.StoppedBy, report.Errors, report.Sent)
	}
}

func TestMaxTimeEndsTheStorm(t *testing.T) {
	url, _ := hanging(t)
	report := mustRun(t, Options{Targets: []string{url}, Method: "GET", Clients: 4, Requests: 100, MaxTime: 400 * time.Millisecond})
	if report.StoppedBy != OutOfTime || report.Errors[Stopped] != 4 {
		t.Errorf("stopped by %q, errors %v", report.StoppedBy, report.Errors)
	}
	// A storm that waits for its rate ends too.
	url = serve(t, func(http.ResponseWriter, *http.Request) {})
	report = mustRun(t, Options{Targets: []string{url}, Clients: 4, Requests: 100, Rate: 0.01, MaxTime: 400 * time.Millisecond})
	if report.StoppedBy != OutOfTime || report.Sent > 1 {
		t.Errorf("stopped by %q, %d sent", report.StoppedBy, report.Sent)
	}
}

func TestRateIsNotExceeded(t *testing.T) {
	url := serve(t, func(http.ResponseWriter, *http.Request) {})
	report := mustRun(t, Options{Targets: []string{url}, Clients: 8, Requests: 40, RetriesSameKey: 0.5, Rate: 200})
	if most := int(200*report.Elapsed.Seconds()) + 2; report.Sent != 60 || report.Sent > most {
		t.Errorf("%d sent in %v, at most %d may be", report.Sent, report.Elapsed, most)
	}
}
