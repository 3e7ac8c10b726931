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

// quiet is for servers whose clients break off on purpose.
func quiet() *log.Logger { return log.New(io.Discard, "", 0) }

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

func TestKeyHeaderIsAddedOnlyWhenNeeded(t *testing.T) {
	for name, test := range map[string]struct {
		options Options
		want    bool
	}{
		"twins":              {Options{RetriesSameKey: 1}, true},
		"no twins":           {Options{}, false},
		"key in the body":    {Options{RetriesSameKey: 1, Body: "{key}"}, false},
		"key in a header":    {Options{RetriesSameKey: 1, Header: []string{"X-Key: {key}"}}, false},
		"key in the URL":     {Options{RetriesSameKey: 1, Targets: []string{"/?k={key}"}}, false},
		"another header set": {Options{RetriesSameKey: 1, Header: []string{"X-Key: {n}"}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			var missing, present atomic.Int64
			url := serve(t, func(_ http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Idempotency-Key") == "" {
					missing.Add(1)
				} else {
					present.Add(1)
				}
			})
			o := test.options
			path := ""
			if len(o.Targets) > 0 {
				path = o.Targets[0]
			}
			o.Targets, o.Clients, o.Requests = []string{url + path}, 2, 4
			mustRun(t, o)
			if test.want && missing.Load() > 0 || !test.want && present.Load() > 0 {
				t.Errorf("%d with and %d without Idempotency-Key", present.Load(), missing.Load())
			}
		})
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
	report := mustRun(t, Options{Targets: []string{url}, Method: "GET", Clients: 4, Requests: 8, Timeout: 30 * time.Millisecond})
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
	report := mustRun(t, Options{Targets: []string{url}, Method: "GET", Clients: 4, Requests: 100, MaxTime: 100 * time.Millisecond})
	if report.StoppedBy != OutOfTime || report.Errors[Stopped] != 4 {
		t.Errorf("stopped by %q, errors %v", report.StoppedBy, report.Errors)
	}
	// A storm that waits for its rate ends too.
	url = serve(t, func(http.ResponseWriter, *http.Request) {})
	report = mustRun(t, Options{Targets: []string{url}, Clients: 4, Requests: 100, Rate: 0.01, MaxTime: 100 * time.Millisecond})
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

func TestBadOptions(t *testing.T) {
	good := func() Options { return Options{Targets: []string{"http://127.0.0.1:1/"}, Clients: 2, Requests: 10} }
	for want, spoil := range map[string]func(*Options){
		"no URL":                              func(o *Options) { o.Targets = nil },
		"must begin with http":                func(o *Options) { o.Targets = []string{"127.0.0.1:80"} },
		"invalid port":                        func(o *Options) { o.Targets = []string{"http://127.0.0.1:x/y"} },
		"must begin with http:// or https://": func(o *Options) { o.Targets = []string{"ftp://h/"} },
		"has no host":                         func(o *Options) { o.Targets = []string{"http:///x"} },
		"must not hold a password":            func(o *Options) { o.Targets = []string{"http://u:p@h/"} },
		"only after the host":                 func(o *Options) { o.Targets = []string{"http://h{n}/"} },
		"unknown placeholder":                 func(o *Options) { o.Targets = []string{"http://h/{lesson}"} },
		"invalid URL escape":                  func(o *Options) { o.Targets = []string{"http://h/%zz"} },
		"body: {x} at byte 2":                 func(o *Options) { o.Body = "a={x}" },
		`"X: {x}": {x} at byte 0`:             func(o *Options) { o.Header = []string{"X: {x}"} },
		`write it as "Name: value"`:           func(o *Options) { o.Header = []string{"X"} },
		`"X Y: 1": write it`:                  func(o *Options) { o.Header = []string{"X Y: 1"} },
		"control character":                   func(o *Options) { o.Header = []string{"X: a\r\nY: b"} },
		"frames its requests itself":          func(o *Options) { o.Header = []string{"content-length: 3"} },
		"not a token":                         func(o *Options) { o.Method = "PO ST" },
		"CONNECT":                             func(o *Options) { o.Method = "CONNECT" },
		"requests must be 1 to":               func(o *Options) { o.Requests = 0 },
		"requests must be 1 to 10000000":      func(o *Options) { o.Requests = MaxRequests + 1 },
		"clients must be 1 to":                func(o *Options) { o.Clients = 0 },
		"subjects must be 1 to":               func(o *Options) { o.Subjects = 11 },
		"subjects must be 1 to the":           func(o *Options) { o.Subjects = -1 },
		"must be 0 to 1":                      func(o *Options) { o.RetriesSameKey = 1.5 },
		"takes 2 clients or more":             func(o *Options) { o.RetriesSameKey, o.Clients = 1, 1 },
		"the rate must be":                    func(o *Options) { o.Rate = -1 },
		"timeouts must be positive":           func(o *Options) { o.Timeout = -1 },
	} {
		o := good()
		spoil(&o)
		report, err := Run(t.Context(), o)
		if report != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		} else if strings.Contains(err.Error(), "\n") {
			t.Errorf("error %q has more than one line", err)
		}
	}
}
