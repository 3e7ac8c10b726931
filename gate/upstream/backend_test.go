package upstream

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/slotgate/slotgate/gate"
	"github.com/slotgate/slotgate/rules"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// backend is a raw server that plays a script on each connection.
type backend struct {
	addr string
	ln   net.Listener
	mu   sync.Mutex
	open map[net.Conn]bool
	wg   sync.WaitGroup
}

// script plays the n-th connection, counted from 1; it is closed afterwards.
type script func(c net.Conn, in *bufio.Reader, n int)

func startBackend(t testing.TB, play script) *backend {
	t.Helper()
	return startBackendAt(t, "127.0.0.1:0", play)
}

func startBackendAt(t testing.TB, addr string, play script) *backend {
	t.Helper()
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	b := &backend{addr: ln.Addr().String(), ln: ln, open: map[net.Conn]bool{}}
	b.wg.Add(1)
	go func() {
		defer b.wg.Done()
		for n := 1; ; n++ {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			b.mu.Lock()
			b.open[c] = true
			b.mu.Unlock()
			b.wg.Add(1)
			go func() {
				defer b.wg.Done()
				play(c, bufio.NewReader(c), n)
				_ = c.Close()
				b.mu.Lock()
				delete(b.open, c)
				b.mu.Unlock()
			}()
		}
	}()
	t.Cleanup(b.stop)
	return b
}

func (b *backend) stop() {
	_ = b.ln.Close()
	b.mu.Lock()
	for c := range b.open {
		_ = c.Close()
	}
	b.mu.Unlock()
	b.wg.Wait()
}

// received is a request as the backend read it.
type received struct {
	head string // every byte of the head
	body string
}

// receive reads one request; ok is false at the end of the connection.
func receive(in *bufio.Reader) (r received, ok bool) {
	var head strings.Builder
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return r, false
		}
		head.WriteString(line)
		if line == "\r\n" {
			break
		}
	}
	r.head = head.String()
	req, err := http.ReadRequest(bufio.NewReader(io.MultiReader(strings.NewReader(r.head), in)))
	if err != nil {
		return r, false
	}
	// ReadRequest buffers ahead, so a test's backend reads one request of a
	// connection at a time, which is all the client ever sends.
	body, err := io.ReadAll(req.Body)
	r.body = string(body)
	return r, err == nil
}

// answers sends the same bytes for every request.
func answers(raw string) script {
	return func(c net.Conn, in *bufio.Reader, _ int) {
		for {
			if _, ok := receive(in); !ok {
				return
			}
			if _, err := io.WriteString(c, raw); err != nil {
				return
			}
		}
	}
}

func newClient(t testing.TB, addr string, change ...func(*Options)) *Client {
	t.Helper()
	o := Options{
		URL:            "http://" + addr,
		ConnectTimeout: time.Second,
		Timeout:        2 * time.Second,
		KeepAlive:      time.Minute,
		MaxConnections: 16,
		Breaker:        rules.BackendBreaker{MinRequests: 1 << 30},
	}
	for _, f := range change {
		f(&o)
	}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func request(method, path, body string, fields ...string) *gate.Request {
	r := &gate.Request{ID: "id-1", Request: rules.Request{Method: method, Path: path, Host: "shop.example", Body: []byte(body)}}
	for i := 0; i < len(fields); i += 2 {
		r.Header = append(r.Header, rules.Field{Name: fields[i], Value: fields[i+1]})
	}
	return r
}

func forward(c *Client, r *gate.Request, within time.Duration) (*gate.BackendAnswer, error) {
	return c.Forward(&gate.Forward{Request: r, SendBy: time.Now().Add(within), Timeout: within, Limit: 1 << 20})
}

// askForward and askPass are the two ways of a request; each gives its answer whole.
func askForward(c *Client, r *gate.Request, within time.Duration) (status int, body string, err error) {
	a, err := forward(c, r, within)
	if err != nil {
		return 0, "", err
	}
	defer a.Release()
	return a.Status, string(a.Body), nil
}

// askPass waits as long as the client's time-outs say.
func askPass(c *Client, r *gate.Request, _ time.Duration) (status int, body string, err error) {
	s, err := c.Pass(r, bytes.NewReader(r.Body), int64(len(r.Body)))
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = s.Body.Close() }()
	b, err := io.ReadAll(s.Body)
	if err != nil {
		return 0, "", (&exchange{sent: 1}).failure(err)
	}
	return s.Status, string(b), nil
}

func failureOf(err error) gate.BackendFailure {
	var failure *gate.BackendError
	if errors.As(err, &failure) {
		return failure.Failure
	}
	return 0
}

// wantBody forwards and checks the answer's body, and gives it back.
func wantBody(t *testing.T, c *Client, r *gate.Request, want string) {
	t.Helper()
	a, err := forward(c, r, 2*time.Second)
	if err != nil {
		t.Fatalf("no answer: %v", err)
	}
	defer a.Release()
	if string(a.Body) != want {
		t.Fatalf("body is %q, want %q", a.Body, want)
	}
}

func ok(body string) string {
	return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}
