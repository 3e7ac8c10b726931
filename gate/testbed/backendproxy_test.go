package testbed

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// committing starts a backend that answers every request with what it got, and
// counts them.
func committing(t *testing.T) (addr string, commits *atomic.Int64) {
	t.Helper()
	commits = new(atomic.Int64)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		commits.Add(1)
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Host", r.Host)
		_, _ = fmt.Fprintf(w, "%s %s %s", r.Method, r.RequestURI, body)
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://"), commits
}

// browser is one keep-alive connection that sees every byte.
type browser struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
}

func browse(t *testing.T, addr string) *browser {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &browser{t, conn, bufio.NewReader(conn)}
}

func (b *browser) send() {
	b.t.Helper()
	if _, err := io.WriteString(b.conn, "POST /book HTTP/1.1\r\nHost: legacy\r\nContent-Length: 4\r\n\r\nbody"); err != nil {
		b.t.Fatal(err)
	}
}

// receive reads one response. The error is that of its head or of its body.
func (b *browser) receive() (status int, body string, header http.Header, err error) {
	response, err := http.ReadResponse(b.in, nil)
	if err != nil {
		return 0, "", nil, err
	}
	defer response.Body.Close()
	whole, err := io.ReadAll(response.Body)
	return response.StatusCode, string(whole), response.Header, err
}

func (b *browser) expect(status int, body string) {
	b.t.Helper()
	b.send()
	b.expectAnswer(status, body)
}

func (b *browser) expectAnswer(status int, body string) {
	b.t.Helper()
	gotStatus, gotBody, _, err := b.receive()
	if err != nil || gotStatus != status || gotBody != body {
		b.t.Fatalf("got %d %q (%v), want %d %q", gotStatus, gotBody, err, status, body)
	}
}

// booked is what the backend answers to send.
const booked = "POST /book body"

func TestFaultyBackendWithoutFaultsPassesOn(t *testing.T) {
	backend, commits := committing(t)
	proxy := FaultyBackend(t, backend)
	client := browse(t, proxy.Addr())
	client.expect(200, booked)
	client.send()
	if _, _, header, err := client.receive(); err != nil || header.Get("X-Host") != "legacy" {
		t.Errorf("the backend got the Host %q (%v), want legacy", header.Get("X-Host"), err)
	}
	for request, want := range map[string]string{
		"GET //a%2Fb/../c?d=%20 HTTP/1.1\r\nHost: x\r\n\r\n":                                                     "GET //a%2Fb/../c?d=%20 ",
		"PUT /p HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n":                  "PUT /p abc",
		"POST /e HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 1\r\nConnection: close\r\n\r\nz": "POST /e z",
	} {
		client := browse(t, proxy.Addr())
		_, _ = io.WriteString(client.conn, request)
		status, body, _, err := client.receive()
		if status == http.StatusContinue {
			status, body, _, err = client.receive()
		}
		if err != nil || status != 200 || body != want {
			t.Errorf("%q gives %d %q (%v), want %q", request, status, body, err, want)
		}
	}
	if commits.Load() != 5 || proxy.Requests() != 5 || proxy.Count(NoFault) != 5 {
		t.Errorf("%d commits, %d requests, %d spared; want 5 each", commits.Load(), proxy.Requests(), proxy.Count(NoFault))
	}
}

// Each fault: what the client sees, and whether the backend got the request.
func TestFaultyBackendFaults(t *testing.T) {
	lostAtOnce := func(t *testing.T, client *browser, _ *BackendProxy) {
		if status, body, _, err := client.receive(); err == nil {
			t.Errorf("got %d %q, want no answer", status, body)
		}
	}
	silent := func(t *testing.T, client *browser, _ *BackendProxy) {
		// The moment it waits only bounds what it can notice.
		_ = client.conn.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
		var timeout net.Error
		if _, err := client.in.ReadByte(); !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Errorf("reading gives %v, want silence", err)
		}
	}
	for _, test := range []struct {
		fault     BackendFault
		committed int64
		sees      func(t *testing.T, client *browser, proxy *BackendProxy)
	}{
		{RefuseBackend, 0, func(t *testing.T, client *browser, proxy *BackendProxy) {
			lostAtOnce(t, client, proxy)
			if conn, err := net.Dial("tcp", proxy.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
				t.Errorf("dialled %v (%v), want connection refused", conn, err)
			}
		}},
		{BusyBefore, 0, func(t *testing.T, client *browser, _ *BackendProxy) {
			status, _, header, err := client.receive()
			if err != nil || status != 503 || header.Get("Retry-After") != "1" {
				t.Errorf("got %d, Retry-After %q (%v), want 503 and 1", status, header.Get("Retry-After"), err)
			}
			client.expect(200, booked) // the connection lives on
		}},
		{HangBefore, 0, silent},
		{HangAfter, 1, silent},
		{ErrorAfter, 1, func(t *testing.T, client *browser, _ *BackendProxy) {
			client.expectAnswer(500, "injected: 500")
			client.expect(200, booked)
		}},
		{CutBody, 1, func(t *testing.T, client *browser, _ *BackendProxy) {
			status, body, _, err := client.receive()
			if err == nil || status != 200 || body == "" || !strings.HasPrefix(booked, body) || body == booked {
				t.Errorf("got %d %q (%v), want a part of %q", status, body, err, booked)
			}
		}},
		{Garbage, 1, lostAtOnce},
		{Stray, 1, func(t *testing.T, client *browser, _ *BackendProxy) {
			client.expectAnswer(200, booked)
			client.expectAnswer(200, "injected: stray")
			client.expect(200, booked)
		}},
		{StrayLate, 1, func(t *testing.T, client *browser, _ *BackendProxy) {
			client.expectAnswer(200, booked)
			client.expect(200, "injected: stray") // it has taken the place of the next one
			client.expectAnswer(200, booked)
		}},
		{CloseAfter, 1, func(t *testing.T, client *browser, _ *BackendProxy) {
			client.expectAnswer(200, booked)
			if b, err := client.in.ReadByte(); err != io.EOF {
				t.Errorf("read %q (%v), want the end", b, err)
			}
		}},
		{Slow, 1, func(t *testing.T, client *browser, _ *BackendProxy) {
			client.expectAnswer(200, booked)
		}},
	} {
		t.Run(test.fault.String(), func(t *testing.T) {
			backend, commits := committing(t)
			proxy := FaultyBackend(t, backend)
			proxy.RefuseFor(time.Hour)
			const slowness = 50 * time.Millisecond
			proxy.SlowBy(slowness)
			proxy.Order(test.fault, 2)
			client := browse(t, proxy.Addr())
			client.expect(200, booked)

			sent := time.Now()
			client.send()
			test.sees(t, client, proxy)
			if took := time.Since(sent); test.fault == Slow && took < slowness {
				t.Errorf("answered after %s, want at least %s", took, slowness)
			}
			extra := int64(proxy.Count(NoFault)) - 1 // what sees sent behind the fault
			err := await(nil, func() error {
				if got := commits.Load(); got != 1+test.committed+extra {
					return fmt.Errorf("the backend got %d requests, want %d", got, 1+test.committed+extra)
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
			if proxy.Count(test.fault) != 1 {
				t.Errorf("counted %d, want 1", proxy.Count(test.fault))
			}
		})
	}
}

func TestFaultyBackendOpensAgain(t *testing.T) {
	backend, _ := committing(t)
	proxy := FaultyBackend(t, backend)
	proxy.RefuseFor(time.Millisecond)
	proxy.Order(RefuseBackend, 1)
	client := browse(t, proxy.Addr())
	client.send()
	if status, body, _, err := client.receive(); err == nil {
		t.Errorf("got %d %q, want no answer", status, body)
	}
	err := await(nil, func() error {
		conn, err := net.Dial("tcp", proxy.Addr())
		if err == nil {
			conn.Close()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	browse(t, proxy.Addr()).expect(200, booked)

	proxy.Refuse(true)
	if conn, err := net.Dial("tcp", proxy.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("dialled %v (%v), want connection refused", conn, err)
	}
	proxy.Refuse(false)
	browse(t, proxy.Addr()).expect(200, booked)
}

func TestFaultyBackendWhoseBackendIsGoneResets(t *testing.T) {
	proxy := FaultyBackend(t, loopback(FreePort(t)))
	client := browse(t, proxy.Addr())
	client.send()
	if status, body, _, err := client.receive(); err == nil {
		t.Errorf("got %d %q, want no answer", status, body)
	}
}

func TestFaultsAreDrawnBySeedAndNumber(t *testing.T) {
	odds := map[BackendFault]float64{HangAfter: 0.25, Stray: 0.25, Slow: 0.25}
	sequence := func(seed uint64) (faults []BackendFault) {
		for n := range 4000 {
			faults = append(faults, draw(seed, n, odds))
		}
		return faults
	}
	first := sequence(7)
	if !slices.Equal(first, sequence(7)) {
		t.Error("the same seed gives other faults")
	}
	if slices.Equal(first, sequence(8)) {
		t.Error("another seed gives the same faults")
	}
	counts := make(map[BackendFault]int)
	for _, fault := range first {
		counts[fault]++
	}
	for _, fault := range []BackendFault{NoFault, HangAfter, Stray, Slow} {
		if n := counts[fault]; n < 900 || n > 1100 {
			t.Errorf("%s was drawn %d times of 4000, want about 1000", fault, n)
		}
	}
	if len(counts) != 4 {
		t.Errorf("drawn were %v, want nothing else", counts)
	}
}

// Every client is told the truth by the counts: what was answered was committed, and
// of what was not, as much was committed as faults after the commit were drawn.
func TestFaultyBackendUnderConcurrency(t *testing.T) {
	backend, commits := committing(t)
	proxy := FaultyBackend(t, backend)
	proxy.Only(func(r *http.Request) bool { return r.Method == http.MethodPost })
	proxy.Draw(42, map[BackendFault]float64{BusyBefore: 0.1, ErrorAfter: 0.1, CutBody: 0.1, Garbage: 0.1})
	const clients, calls = 8, 50
	var ok, busy, failed, lost atomic.Int64
	var running sync.WaitGroup
	transport := &http.Transport{MaxIdleConnsPerHost: clients}
	defer transport.CloseIdleConnections()
	for range clients {
		running.Go(func() {
			for range calls {
				request, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+proxy.Addr()+"/book", strings.NewReader("body"))
				request.GetBody = nil // no second attempt
				response, err := transport.RoundTrip(request)
				if err != nil {
					lost.Add(1)
					continue
				}
				_, err = io.Copy(io.Discard, response.Body)
				response.Body.Close()
				switch {
				case err != nil:
					lost.Add(1)
				case response.StatusCode == 200:
					ok.Add(1)
				case response.StatusCode == 503:
					busy.Add(1)
				default:
					failed.Add(1)
				}
			}
		})
	}
	running.Wait()
	odds := map[BackendFault]float64{BusyBefore: 0.1, ErrorAfter: 0.1, CutBody: 0.1, Garbage: 0.1}
	want := make(map[BackendFault]int)
	for n := 1; n <= clients*calls; n++ {
		want[draw(42, n, odds)]++
	}
	for fault, n := range want {
		if got := proxy.Count(fault); got != n {
			t.Errorf("%s befell %d requests, want %d", fault, got, n)
		}
	}
	if int(ok.Load()) != want[NoFault] || int(busy.Load()) != want[BusyBefore] || int(failed.Load()) != want[ErrorAfter] ||
		int(lost.Load()) != want[CutBody]+want[Garbage] {
		t.Errorf("clients saw %d answers, %d busy, %d errors, %d lost; drawn was %v",
			ok.Load(), busy.Load(), failed.Load(), lost.Load(), want)
	}
	if got := commits.Load(); int(got) != clients*calls-want[BusyBefore] {
		t.Errorf("the backend committed %d, want all but the %d busy ones", got, want[BusyBefore])
	}
}

func TestFaultyBackendSparesWhatIsNotMeant(t *testing.T) {
	backend, _ := committing(t)
	proxy := FaultyBackend(t, backend)
	proxy.Only(func(r *http.Request) bool { return r.URL.Path != "/book" })
	proxy.Draw(1, map[BackendFault]float64{BusyBefore: 1})
	client := browse(t, proxy.Addr())
	client.expect(200, booked)
	if proxy.Requests() != 0 {
		t.Errorf("counted %d requests, want none that faults may befall", proxy.Requests())
	}

	proxy.Only(nil)
	proxy.Order(NoFault, 2)
	client.expect(503, "")
	client.expect(200, booked) // spared by order
	client.expect(503, "")
	proxy.Draw(1, nil)
	client.expect(200, booked)

	proxy.Sever()
	if b, err := client.in.ReadByte(); err == nil {
		t.Errorf("read %q from a severed connection", b)
	}
}
