package storm

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// rawServer answers every connection with serve, which writes bytes as it
// likes. It returns its URL and is gone when the test ends.
func rawServer(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer conn.Close()
				serve(conn)
			})
		}
	})
	t.Cleanup(func() {
		listener.Close()
		wg.Wait()
	})
	return "http://" + listener.Addr().String()
}

// readRequest reads one request whole; nil means that the client has gone.
func readRequest(r *bufio.Reader) *http.Request {
	request, err := http.ReadRequest(r)
	if err != nil {
		return nil
	}
	if _, err := io.Copy(io.Discard, request.Body); err != nil {
		return nil
	}
	return request
}

// answerWith reads requests and writes the same bytes after each; with end it
// closes after the first.
func answerWith(bytes string, end bool) func(net.Conn) {
	return func(conn net.Conn) {
		r := bufio.NewReader(conn)
		for readRequest(r) != nil {
			io.WriteString(conn, bytes)
			if end {
				return
			}
		}
	}
}

func mustRun(t *testing.T, o Options) *Report {
	t.Helper()
	report, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func TestAnswersOnTheWire(t *testing.T) {
	ok := "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
	for name, test := range map[string]struct {
		method string
		answer string
		end    bool
		status int
		body   string
		failed ErrorKind
		opened int // connections for three requests
	}{
		"kept alive":          {answer: ok, status: 200, body: "ok", opened: 1},
		"chunked":             {answer: "HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", status: 201, body: "ok", opened: 1},
		"bodyless":            {answer: "HTTP/1.1 204 No Content\r\n\r\n", status: 204, opened: 1},
		"HEAD":                {method: "HEAD", answer: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", status: 200, opened: 1},
		"interim":             {answer: "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + ok, status: 200, body: "ok", opened: 1},
		"announced close":     {answer: "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", end: true, status: 200, body: "ok", opened: 3},
		"until close":         {answer: "HTTP/1.0 200 OK\r\n\r\nok", end: true, status: 200, body: "ok", opened: 3},
		"unasked bytes":       {answer: ok + "HTTP/1.1 500 No\r\n\r\n", status: 200, body: "ok", opened: 3},
		"switching protocols": {answer: "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", status: 101, opened: 3},
		"redirect":            {answer: "HTTP/1.1 302 Found\r\nLocation: /ok\r\nContent-Length: 0\r\n\r\n", status: 302, opened: 1},
		"closed":              {answer: "", end: true, failed: Closed, opened: 3},
		"cut head":            {answer: "HTTP/1.1 200 OK\r\nConte", end: true, failed: Cut, opened: 3},
		"cut body":            {answer: "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok", end: true, failed: Cut, opened: 3},
		"cut chunk":           {answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nok", end: true, failed: Cut, opened: 3},
		"not HTTP":            {answer: "SSH-2.0-x\r\n\r\n", failed: Malformed, opened: 3},
		"bad length":          {answer: "HTTP/1.1 200 OK\r\nContent-Length: two\r\n\r\nok", failed: Malformed, opened: 3},
		"endless head":        {answer: "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 2*maxHead), failed: Malformed, opened: 3},
		"silent":              {answer: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", failed: Timeout, opened: 3},
	} {
		t.Run(name, func(t *testing.T) {
			url := rawServer(t, answerWith(test.answer, test.end))
			var seen []Exchange
			o := Options{
				Targets: []string{url}, Method: test.method, Body: "a=b", Clients: 1, Requests: 3, Timeout: 5 * time.Second,
				OnResponse: func(e Exchange) {
					e.Body = []byte(string(e.Body))
					seen = append(seen, e)
				},
			}
			if test.failed == Timeout {
				o.Timeout = 200 * time.Millisecond
			}
			report := mustRun(t, o)
			if report.Connections != test.opened {
				t.Errorf("%d connections, want %d", report.Connections, test.opened)
			}
			if test.failed != "" && (report.Errors[test.failed] != 3 || report.Answered != 0) {
				t.Errorf("errors %v, want 3 %s", report.Errors, test.failed)
			}
			if test.failed == "" && report.Statuses[test.status] != 3 {
				t.Errorf("statuses %v and errors %v, want 3 times %d", report.Statuses, report.Errors, test.status)
			}
			for _, e := range seen {
				if e.Status != test.status || string(e.Body) != test.body || (e.Err != nil) != (test.failed != "") {
					t.Errorf("status %d, body %q, error %v", e.Status, e.Body, e.Err)
				}
			}
		})
	}
}

func TestRequestOnTheWire(t *testing.T) {
	got := make(chan string, 1)
	url := rawServer(t, func(conn net.Conn) {
		buffer := make([]byte, 4096)
		n, _ := conn.Read(buffer)
		if n > 0 {
			got <- string(buffer[:n])
			io.WriteString(conn, "HTTP/1.1 204 No Content\r\n\r\n")
		}
	})
	host := strings.TrimPrefix(url, "http://")
	for name, test := range map[string]struct {
		options Options
		want    string
	}{
		"form": {
			Options{Targets: []string{url + "/l/{n%20+1}/预?s={subject}#part"}, Body: "n={n}"},
			"POST /l/1/%E9%A2%84?s=1 HTTP/1.1\r\nHost: " + host + "\r\nUser-Agent: slotgate-storm\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 3\r\n\r\nn=0",
		},
		"own fields": {
			Options{Targets: []string{url}, Body: `{"n":{n}}`, Header: []string{"host: example", "User-Agent:me", "content-type: text/plain", "X-Student:  s{subject} "}},
			"POST / HTTP/1.1\r\nhost: example\r\nUser-Agent: me\r\ncontent-type: text/plain\r\nX-Student: s1\r\nContent-Length: 7\r\n\r\n{\"n\":0}",
		},
		"no body": {
			Options{Targets: []string{url + "?a"}},
			"POST /?a HTTP/1.1\r\nHost: " + host + "\r\nUser-Agent: slotgate-storm\r\nContent-Length: 0\r\n\r\n",
		},
		"GET": {
			Options{Targets: []string{url + "/x"}, Method: "GET"},
			"GET /x HTTP/1.1\r\nHost: " + host + "\r\nUser-Agent: slotgate-storm\r\n\r\n",
		},
		"JSON": {
			Options{Targets: []string{url}, Body: ` [{subject}]`, Header: []string{"User-Agent: x"}},
			"POST / HTTP/1.1\r\nHost: " + host + "\r\nUser-Agent: x\r\nContent-Type: application/json\r\nContent-Length: 4\r\n\r\n [1]",
		},
	} {
		t.Run(name, func(t *testing.T) {
			test.options.Clients, test.options.Requests = 1, 1
			mustRun(t, test.options)
			if request := <-got; request != test.want {
				t.Errorf("sent\n%q, want\n%q", request, test.want)
			}
		})
	}
}

// net/http sends such a request again by itself when the kept connection
// breaks; the first half of the test shows that, so that the second can fail.
func TestBrokenConnectionIsNotTriedAgain(t *testing.T) {
	var arrived atomic.Int64
	server := func(t *testing.T) string {
		arrived.Store(0)
		return rawServer(t, func(conn net.Conn) {
			r := bufio.NewReader(conn)
			for i := 0; readRequest(r) != nil; i++ {
				arrived.Add(1)
				if i == 1 {
					return // the second request of each connection gets no answer
				}
				io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
			}
		})
	}
	t.Run("net/http repeats", func(t *testing.T) {
		url := server(t)
		transport := &http.Transport{}
		defer transport.CloseIdleConnections()
		client := http.Client{Transport: transport}
		for range 2 {
			request, err := http.NewRequestWithContext(t.Context(), "POST", url, strings.NewReader("x"))
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("Idempotency-Key", "k")
			response, err := client.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			response.Body.Close()
		}
		if arrived.Load() != 3 {
			t.Errorf("2 requests arrived %d times", arrived.Load())
		}
	})
	for _, method := range []string{"POST", "GET", "PUT"} {
		t.Run("storm does not: "+method, func(t *testing.T) {
			report := mustRun(t, Options{
				Targets: []string{server(t)}, Method: method, Header: []string{"Idempotency-Key: {key}"}, Clients: 1, Requests: 10,
			})
			if arrived.Load() != 10 || report.Sent != 10 {
				t.Errorf("10 requests arrived %d times, report says %d", arrived.Load(), report.Sent)
			}
			if report.Statuses[200] != 5 || report.Errors[Closed] != 5 {
				t.Errorf("statuses %v, errors %v, want 5 and 5 closed", report.Statuses, report.Errors)
			}
		})
	}
}

// A server may close a connection that is idle; the next request then opens a
// new one and is not lost.
func TestIdleCloseCostsNoRequest(t *testing.T) {
	closed := make(chan struct{}, 1)
	url := rawServer(t, func(conn net.Conn) {
		r := bufio.NewReader(conn)
		if readRequest(r) != nil {
			io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
			conn.Close()
			closed <- struct{}{}
		}
	})
	report := mustRun(t, Options{
		Targets: []string{url}, Clients: 1, Requests: 20,
		OnResponse: func(Exchange) { <-closed },
	})
	if report.Statuses[200] != 20 || report.Connections != 20 {
		t.Errorf("statuses %v, errors %v, %d connections", report.Statuses, report.Errors, report.Connections)
	}
}

// A connection that is idle for longer than one answer may take is kept.
func TestIdleConnectionIsKept(t *testing.T) {
	url := rawServer(t, answerWith("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", false))
	report := mustRun(t, Options{Targets: []string{url}, Clients: 1, Requests: 3, Rate: 2.5, Timeout: 200 * time.Millisecond})
	if report.Statuses[200] != 3 || report.Connections != 1 {
		t.Errorf("statuses %v, errors %v, %d connections", report.Statuses, report.Errors, report.Connections)
	}
}

// The answer to a request that the server did not read to its end counts.
func TestEarlyAnswerToLongBody(t *testing.T) {
	url := rawServer(t, func(conn net.Conn) {
		if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
			io.WriteString(conn, "HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
			conn.(*net.TCPConn).CloseWrite()
			io.Copy(io.Discard, conn)
		}
	})
	report := mustRun(t, Options{Targets: []string{url}, Body: strings.Repeat("x", 4<<20), Clients: 1, Requests: 2})
	if report.Statuses[413] != 2 {
		t.Errorf("statuses %v, errors %v, want 413 twice", report.Statuses, report.Errors)
	}
}

func TestReset(t *testing.T) {
	url := rawServer(t, func(conn net.Conn) {
		if readRequest(bufio.NewReader(conn)) != nil {
			conn.(*net.TCPConn).SetLinger(0)
		}
	})
	report := mustRun(t, Options{Targets: []string{url}, Clients: 2, Requests: 4})
	if report.Errors[Reset] != 4 {
		t.Errorf("errors %v, want 4 resets", report.Errors)
	}
}

func TestLongBodyIsCutAtTheLimit(t *testing.T) {
	url := rawServer(t, answerWith("HTTP/1.1 200 OK\r\nContent-Length: 2097152\r\n\r\n"+strings.Repeat("x", 2<<20), false))
	var lengths []int
	report := mustRun(t, Options{
		Targets: []string{url}, Clients: 1, Requests: 2,
		OnResponse: func(e Exchange) { lengths = append(lengths, len(e.Body)) },
	})
	if len(lengths) != 2 || lengths[0] != maxBody || lengths[1] != maxBody || report.Connections != 2 {
		t.Errorf("bodies of %v bytes over %d connections", lengths, report.Connections)
	}
}

func TestConnectTimeout(t *testing.T) {
	// A TLS handshake that the server never answers.
	url := rawServer(t, func(conn net.Conn) { io.Copy(io.Discard, conn) })
	_, err := Run(context.Background(), Options{
		Targets: []string{strings.Replace(url, "http", "https", 1)}, Clients: 1, Requests: 1, Timeout: 50 * time.Millisecond,
	})
	if err == nil || !strings.Contains(err.Error(), string(ConnectTimeout)) {
		t.Errorf("error %v, want a %s", err, ConnectTimeout)
	}
}
