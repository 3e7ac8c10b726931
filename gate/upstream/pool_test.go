package upstream

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// The design's promise 3.8: of 10,000 requests that may not be repeated, at a backend
// that closes its idle connections, or half of them, or leaves bytes on them, each
// gets its own answer and reaches the backend exactly once.
func TestIdleConnectionsThatTurnedBad(t *testing.T) {
	const requests, ways = 10_000, 6
	hits := make([]atomic.Int32, requests)
	turned := make(chan struct{})
	b := startBackend(t, func(c net.Conn, in *bufio.Reader, _ int) {
		for {
			r, more := receive(in)
			if !more {
				return
			}
			n, _ := strconv.Atoi(r.body)
			hits[n].Add(1)
			send(ok("answer to " + r.body))(c)
			switch n % ways {
			case 1: // closes while idle
				_ = c.Close()
			case 2: // answers a question nobody asked
				send(ok("POISON"))(c)
			case 3: // leaves a byte
				send("x")(c)
			case 4: // resets
				_ = c.(*net.TCPConn).SetLinger(0)
				_ = c.Close()
			case 5: // closes its half, and would read on
				_ = c.(*net.TCPConn).CloseWrite()
			}
			turned <- struct{}{}
			if n%ways == 5 {
				wait(c)
			}
			if n%ways != 0 {
				return
			}
		}
	})
	c := newClient(t, b.addr)
	for n := range requests {
		method := []string{"POST", "PUT", "DELETE"}[n%3]
		body := strconv.Itoa(n)
		ask := askForward
		if n/ways%2 == 1 {
			ask = askPass
		}
		status, got, err := ask(c, request(method, "/", body), 2*time.Second)
		<-turned
		if err != nil || status != 200 || got != "answer to "+body {
			t.Fatalf("request %d: %d %q, %v", n, status, got, err)
		}
	}
	for n := range hits {
		if got := hits[n].Load(); got != 1 {
			t.Fatalf("request %d reached the backend %d times", n, got)
		}
	}
}

// Under concurrency a connection may turn bad between the look and the first
// byte. Then the outcome is not known, but no answer is ever another's, and none
// is sent twice.
func TestBadConnectionsUnderConcurrency(t *testing.T) {
	const workers, each = 16, 100
	hits := make([]atomic.Int32, workers*each)
	b := startBackend(t, func(c net.Conn, in *bufio.Reader, n int) {
		for i := 0; ; i++ {
			r, more := receive(in)
			if !more {
				return
			}
			id, _ := strconv.Atoi(r.body)
			hits[id].Add(1)
			if (n+i)%3 == 0 {
				send(ok("answer to "+r.body) + ok("POISON"))(c)
			} else {
				send(ok("answer to " + r.body))(c)
			}
			if (n+i)%4 == 0 {
				return
			}
		}
	})
	c := newClient(t, b.addr)
	var wg sync.WaitGroup
	var answered atomic.Int32
	for w := range workers {
		wg.Go(func() {
			for i := range each {
				body := strconv.Itoa(w*each + i)
				a, err := forward(c, request("POST", "/", body), 5*time.Second)
				if err != nil {
					continue
				}
				answered.Add(1)
				if string(a.Body) != "answer to "+body {
					t.Errorf("request %s got %q", body, a.Body)
				}
				a.Release()
			}
		})
	}
	wg.Wait()
	for n := range hits {
		if got := hits[n].Load(); got > 1 {
			t.Fatalf("request %d reached the backend %d times", n, got)
		}
	}
	if n := answered.Load(); n < workers*each*9/10 {
		t.Fatalf("only %d of %d were answered", n, workers*each)
	}
}

// The body of an answer that has none may come late, when the connection is idle
// again.
func TestLateBodyOfABodilessAnswer(t *testing.T) {
	late := make(chan struct{})
	b := startBackend(t, func(c net.Conn, in *bufio.Reader, n int) {
		for {
			r, more := receive(in)
			if !more {
				return
			}
			if strings.HasPrefix(r.head, "HEAD") {
				send("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n")(c)
				<-late
				send("POISON")(c)
				late <- struct{}{}
				continue
			}
			send(ok(fmt.Sprint("connection ", n)))(c)
		}
	})
	c := newClient(t, b.addr)
	wantBody(t, c, request("HEAD", "/", ""), "")
	late <- struct{}{}
	<-late
	wantBody(t, c, request("GET", "/", ""), "connection 2")
}

func TestIdleConnectionsAreClosedInTime(t *testing.T) {
	closed := make(chan struct{})
	b := startBackend(t, func(c net.Conn, in *bufio.Reader, _ int) {
		answers(ok("hi"))(c, in, 0)
		closed <- struct{}{}
	})
	c := newClient(t, b.addr, func(o *Options) { o.KeepAlive = 30 * time.Millisecond })
	wantBody(t, c, request("GET", "/", ""), "hi")
	select {
	case <-closed:
	case <-time.After(5 * time.Second):
		t.Fatal("an idle connection is still open long after keep_alive")
	}
	wantBody(t, c, request("GET", "/", ""), "hi")
	c.Close()
	<-closed
	c.Close()
}

// The last used connection is used next.
func TestNewestConnectionFirst(t *testing.T) {
	gateway := make(chan struct{})
	b := startBackend(t, func(c net.Conn, in *bufio.Reader, n int) {
		for {
			r, more := receive(in)
			if !more {
				return
			}
			if strings.Contains(r.head, "/together") {
				gateway <- struct{}{}
			}
			send(ok(strconv.Itoa(n)))(c)
		}
	})
	c := newClient(t, b.addr)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if a, err := forward(c, request("GET", "/together", ""), 5*time.Second); err == nil {
				a.Release()
			}
		})
	}
	for range 4 {
		<-gateway
	}
	wg.Wait()
	first, err := forward(c, request("GET", "/", ""), time.Second)
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		wantBody(t, c, request("GET", "/", ""), string(first.Body))
	}
	first.Release()
}

// Stray bytes are found inside TLS too, where they may have left the socket
// together with the answer.
func TestStrayBytesInsideTLS(t *testing.T) {
	cert := testCertificate(t)
	ln, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{cert}})
	if err != nil {
		t.Fatal(err)
	}
	turned := make(chan struct{})
	var wg sync.WaitGroup
	defer wg.Wait()
	defer func() { _ = ln.Close() }()
	wg.Go(func() {
		for n := 1; ; n++ {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer func() { _ = c.Close() }()
				in := bufio.NewReader(c)
				for {
					if _, more := receive(in); !more {
						return
					}
					send(ok(strconv.Itoa(n)))(c)
					send(ok("POISON"))(c) // a record of its own
					turned <- struct{}{}
				}
			})
		}
	})
	roots := x509.NewCertPool()
	roots.AddCert(cert.Leaf)
	c := newClient(t, "", func(o *Options) {
		o.URL = "https://" + ln.Addr().String()
		o.TLS = &tls.Config{RootCAs: roots}
	})
	defer c.Close()
	for n := 1; n <= 50; n++ {
		a, err := forward(c, request("POST", "/", ""), 2*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if string(a.Body) != strconv.Itoa(n) {
			t.Fatalf("request %d got %q", n, a.Body)
		}
		a.Release()
		<-turned
	}
}

func testCertificate(t *testing.T) tls.Certificate {
	t.Helper()
	server := httptest.NewUnstartedServer(nil)
	server.StartTLS()
	defer server.Close()
	cert := server.TLS.Certificates[0]
	cert.Leaf = server.Certificate()
	return cert
}
