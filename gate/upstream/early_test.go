package upstream

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/slotgate/slotgate/gate"
)

// Ways to answer a long request without reading it to its end; each returns when
// the backend has done its part.
var earlyAnswers = map[string]struct {
	play   func(c net.Conn, release <-chan struct{})
	status int // 0: none
}{
	"stops reading": {func(c net.Conn, release <-chan struct{}) {
		send("HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\n\r\nbig")(c)
		<-release
	}, 413},
	"goes on reading": {func(c net.Conn, _ <-chan struct{}) {
		send("HTTP/1.1 401 Unauthorized\r\nContent-Length: 3\r\n\r\nbig")(c)
		wait(c)
	}, 401},
	"after early hints": {func(c net.Conn, release <-chan struct{}) {
		send("HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 302 Found\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nbig\r\n0\r\n\r\n")(c)
		<-release
	}, 302},
	// Closing with unread bytes sends a reset behind the answer.
	"closes": {send413, 413},
	"resets": {func(c net.Conn, _ <-chan struct{}) {
		send413(c, nil)
		_ = socketOf(c).SetLinger(0)
	}, 413},
	"ends its side": {func(c net.Conn, _ <-chan struct{}) {
		send413(c, nil)
		_ = socketOf(c).CloseWrite()
		wait(c)
	}, 413},
	"closes without an answer": {func(net.Conn, <-chan struct{}) {}, 0},
}

func socketOf(c net.Conn) *net.TCPConn {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	return c.(*net.TCPConn)
}

func send413(c net.Conn, _ <-chan struct{}) {
	send("HTTP/1.1 413 Content Too Large\r\nConnection: close\r\nContent-Length: 3\r\n\r\nbig")(c)
}

// eachEarly runs a backend of every kind, with and without TLS; ask sends it a request
// with a long body and gets its answer long before any time-out.
func eachEarly(t *testing.T, ask func(c *Client) (status int, body string, err error)) {
	const patience = 20 * time.Second
	cert := testCertificate(t)
	roots := x509.NewCertPool()
	roots.AddCert(cert.Leaf)
	for name, early := range earlyAnswers {
		for _, secure := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " TLS ", secure), func(t *testing.T) {
				release := make(chan struct{})
				defer close(release)
				b := startBackend(t, func(c net.Conn, in *bufio.Reader, _ int) {
					if secure {
						c = tls.Server(c, &tls.Config{Certificates: []tls.Certificate{cert}})
						in = bufio.NewReader(c)
					}
					if _, err := in.ReadString('\n'); err == nil {
						early.play(c, release)
					}
				})
				c := newClient(t, b.addr, func(o *Options) {
					o.Timeout = patience
					if secure {
						o.URL, o.TLS = "https://"+b.addr, &tls.Config{RootCAs: roots}
					}
				})
				began := time.Now()
				status, body, err := ask(c)
				if took := time.Since(began); took > patience/5 {
					t.Errorf("took %v", took)
				}
				if early.status == 0 {
					if failureOf(err) != gate.Broken {
						t.Fatalf("%d, %v", status, err)
					}
				} else if err != nil || status != early.status || body != "big" {
					t.Fatalf("%d %q, %v", status, body, err)
				}
				// One that reads on may get everything before its answer is here.
				if n := len(c.gated.idle) + len(c.open.idle); n != 0 && name != "goes on reading" {
					t.Fatal("a connection with half a request on it was kept")
				}
			})
		}
	}
}

// overBuffers is more than the sockets between client and backend take in.
const overBuffers = 16 << 20

func TestForwardHearsEarlyAnswers(t *testing.T) {
	r := request("POST", "/", strings.Repeat("x", overBuffers))
	eachEarly(t, func(c *Client) (int, string, error) { return askForward(c, r, 20*time.Second) })
}

func TestPassHearsEarlyAnswers(t *testing.T) {
	for name, length := range map[string]int64{"length": long, "chunks": Unknown} {
		t.Run(name, func(t *testing.T) {
			eachEarly(t, func(c *Client) (int, string, error) {
				source := newNoise(long)
				defer func() {
					if source.left == 0 {
						t.Error("the whole body was read for a backend that did not want it")
					}
				}()
				return passed(c.Pass(request("POST", "/", ""), source, length))
			})
		})
	}
}

// A client that pauses in its body until it has an answer gets it.
func TestPassInterruptsAClientThatPauses(t *testing.T) {
	eachEarly(t, func(c *Client) (int, string, error) {
		r, w := io.Pipe()
		go func() { _, _ = w.Write(make([]byte, 100<<10)) }()
		return passed(c.Pass(request("POST", "/", ""), pausing{r}, long))
	})
}

func passed(s *Stream, err error) (int, string, error) {
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = s.Body.Close() }()
	body, err := io.ReadAll(s.Body)
	if !s.Early {
		err = errors.New("not called early")
	}
	return s.Status, string(body), err
}

type pausing struct{ *io.PipeReader }

func (p pausing) Interrupt() { _ = p.CloseWithError(net.ErrClosed) }

// A good answer that is complete ends a gated request too: more will not come.
func TestForwardHearsAGoodAnswerOfABackendThatReadsNothing(t *testing.T) {
	release := make(chan struct{})
	b := startBackend(t, func(c net.Conn, in *bufio.Reader, _ int) {
		if _, err := in.ReadString('\n'); err == nil {
			send(ok("booked"))(c)
			<-release
		}
	})
	defer close(release)
	status, body, err := askForward(newClient(t, b.addr), request("POST", "/", strings.Repeat("x", overBuffers)), 20*time.Second)
	if status != 200 || body != "booked" || err != nil {
		t.Fatal(status, body, err)
	}
}
