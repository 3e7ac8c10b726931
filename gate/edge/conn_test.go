package edge

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slotgate/slotgate/gate"
	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/rules"
)

// testTLS writes a certificate for 127.0.0.1 and returns who trusts it.
func testTLS(t *testing.T) (rules.TLSConfig, *tls.Config) {
	t.Helper()
	server := httptest.NewUnstartedServer(nil)
	server.StartTLS()
	defer server.Close()
	cert := server.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	cfg := rules.TLSConfig{CertFile: filepath.Join(t.TempDir(), "cert.pem"), KeyFile: filepath.Join(t.TempDir(), "key.pem")}
	for file, block := range map[string]*pem.Block{
		cfg.CertFile: {Type: "CERTIFICATE", Bytes: cert.Certificate[0]},
		cfg.KeyFile:  {Type: "PRIVATE KEY", Bytes: key},
	} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	return cfg, &tls.Config{RootCAs: roots, ServerName: "127.0.0.1"}
}

func tlsClient(nc net.Conn, c *tls.Config) net.Conn { return tls.Client(nc, c) }

// A client that goes away is noticed, plain and under TLS, also behind a request
// that it sent ahead, and does not end the journey of its request.
func TestClientGone(t *testing.T) {
	files, trusting := testTLS(t)
	for _, secure := range []bool{false, true} {
		for _, ahead := range []string{"", "GET /ahead HTTP/1.1\r\nHost: x\r\n\r\n"} {
			began, finished := make(chan struct{}), make(chan bool)
			g := &testGate{serve: func(r *gate.Request) *gate.Reply {
				if r.Gone() {
					t.Error("gone before it went")
				}
				began <- struct{}{}
				gone := false
				for deadline := time.Now().Add(5 * time.Second); !gone && time.Now().Before(deadline); {
					gone = r.Gone()
					time.Sleep(time.Millisecond)
				}
				finished <- gone
				return own(decision.DecisionSoldOut)
			}}
			f := start(t, "", g, func(c *rules.ServerConfig) {
				if secure {
					c.TLS = files
				}
			})
			nc, err := net.Dial("tcp", f.addr)
			if err != nil {
				t.Fatal(err)
			}
			if secure {
				nc = tls.Client(nc, trusting)
			}
			if _, err := io.WriteString(nc, "POST /book HTTP/1.1\r\nHost: x\r\n\r\n"+ahead); err != nil {
				t.Fatal(err)
			}
			<-began
			_ = nc.Close()
			if !<-finished {
				t.Errorf("TLS %v, request ahead %v: never noticed", secure, ahead != "")
			}
		}
	}
}

func TestTLS(t *testing.T) {
	files, trusting := testTLS(t)
	var proto string
	f := start(t, echo(t).URL, &testGate{serve: func(r *gate.Request) *gate.Reply {
		proto = fieldValue(r.Header, "X-Forwarded-Proto")
		return own(decision.DecisionSoldOut)
	}}, func(c *rules.ServerConfig) { c.TLS = files })
	transport := &http.Transport{TLSClientConfig: trusting, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	hc := &http.Client{Transport: transport}
	for _, path := range []string{"/book", "/other"} {
		resp, err := hc.Post("https://"+f.addr+path, "text/plain", strings.NewReader("abc"))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		if resp.ProtoMajor != 1 {
			t.Fatal(resp.Proto)
		}
	}
	if proto != "https" {
		t.Fatalf("X-Forwarded-Proto %q", proto)
	}
	cfg := config()
	cfg.TLS = rules.TLSConfig{CertFile: "none.pem", KeyFile: "none.pem"}
	if _, err := New(Options{Config: cfg, Gate: &testGate{}, Backend: f.backend, Meter: f.meter, Logger: f.log}); err == nil || !strings.Contains(err.Error(), "server.tls") {
		t.Fatal(err)
	}
}

// A renewed certificate is used without a restart; files that do not fit together,
// as between the two writes of a renewal, are not.
func TestCertificateReload(t *testing.T) {
	files, _ := testTLS(t)
	cert, err := newCertificate(files, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	first, _ := cert.get(nil)
	keyOnly := func(name string) {
		renewed, _ := testTLS(t) // another file with the same pair
		text, err := os.ReadFile(renewed.KeyFile)
		if err != nil || os.WriteFile(files.KeyFile, append(text, name...), 0o600) != nil {
			t.Fatal(err)
		}
	}
	look := func() *tls.Certificate {
		cert.looked = time.Time{}
		c, err := cert.get(nil)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	if look() != first {
		t.Fatal("read again though nothing changed")
	}
	keyOnly("\n# renewed\n")
	second := look()
	if second == first {
		t.Fatal("the changed files are not in use")
	}
	if err := os.WriteFile(files.KeyFile, []byte("half a"), 0o600); err != nil {
		t.Fatal(err)
	}
	if look() != second {
		t.Fatal("a broken pair is in use")
	}
	if err := os.Remove(files.CertFile); err != nil {
		t.Fatal(err)
	}
	if look() != second {
		t.Fatal("the last good pair is gone")
	}
	keyOnly("\n# back\n")
	if look() != second {
		t.Fatal("half a pair is in use")
	}
}

func TestConnectionsAreBounded(t *testing.T) {
	f := start(t, echo(t).URL, nil, func(c *rules.ServerConfig) { c.MaxConnections = 2 })
	first, second := dial(t, f.addr), dial(t, f.addr)
	for _, c := range []*client{first, second} {
		c.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		c.answer("GET")
	}
	resp, body := ask(t, f.addr, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	if resp.StatusCode != 503 || resp.Header.Get("Retry-After") == "" || !strings.Contains(body, "Too many connections") || f.meter.of("connections") != 1 {
		t.Fatalf("%d %v %q", resp.StatusCode, resp.Header, body)
	}
	_ = first.Close()
	for deadline := time.Now().Add(5 * time.Second); f.Connections() > 1; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("a closed connection is still counted")
		}
	}
	if resp, _ := ask(t, f.addr, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); resp.StatusCode != 200 {
		t.Fatal(resp.StatusCode)
	}
}

// A client that takes nothing of its answer does not keep the connection.
func TestClientThatDoesNotRead(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.Copy(w, newNoise(long))
	}))
	defer server.Close()
	f := start(t, server.URL, nil, func(c *rules.ServerConfig) { c.IdleTimeout = 100 * time.Millisecond })
	c := dial(t, f.addr)
	c.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	for f.Connections() == 0 {
		time.Sleep(time.Millisecond)
	}
	for deadline := time.Now().Add(10 * time.Second); f.Connections() > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the connection is still open")
		}
	}
}

// Between two requests idle_timeout counts, and read_timeout from the first byte of
// the next.
func TestIdleConnectionsOutlastTheReadTimeout(t *testing.T) {
	const read = 50 * time.Millisecond
	f := start(t, echo(t).URL, nil, func(c *rules.ServerConfig) { c.ReadTimeout, c.IdleTimeout = read, time.Minute })
	c := dial(t, f.addr)
	for range 3 {
		for _, path := range []string{"/x", "/book"} {
			c.send("POST " + path + " HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi")
			if _, body := c.answer("POST"); body != "POST "+path+" hi" {
				t.Fatal(body)
			}
		}
		<-time.After(2 * read)
	}
	c.send("POST /x HT")
	if resp, _ := c.answer("POST"); resp.StatusCode != 408 || !c.closed() {
		t.Fatalf("half a head: %d", resp.StatusCode)
	}
	f = start(t, echo(t).URL, nil, func(c *rules.ServerConfig) { c.IdleTimeout = read })
	c = dial(t, f.addr)
	c.send("GET /x HTTP/1.1\r\nHost: x\r\n\r\n")
	if _, body := c.answer("GET"); body != "GET /x " || !c.closed() {
		t.Fatalf("%q, or the idle connection stays open", body)
	}
}

// Draining answers what runs, says that the connection ends, closes idle and
// silent ones, and refuses new ones.
func TestShutdown(t *testing.T) {
	began, release := make(chan struct{}), make(chan struct{})
	f := start(t, echo(t).URL, &testGate{serve: func(*gate.Request) *gate.Reply {
		close(began)
		<-release
		return own(decision.DecisionSoldOut)
	}})
	idle, silent, running := dial(t, f.addr), dial(t, f.addr), dial(t, f.addr)
	idle.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	idle.answer("GET")
	running.send("POST /book HTTP/1.1\r\nHost: x\r\n\r\n")
	<-began
	for f.Connections() < 3 {
		time.Sleep(time.Millisecond)
	}
	done := make(chan error, 1)
	go func() { done <- f.Shutdown(context.Background()) }()
	if !idle.closed() || !silent.closed() {
		t.Fatal("an idle connection was answered")
	}
	if nc, err := net.Dial("tcp", f.addr); err == nil {
		_ = nc.Close()
		t.Fatal("a new connection was accepted")
	}
	close(release)
	resp, _ := running.answer("POST")
	if resp.StatusCode != 409 || !resp.Close {
		t.Fatalf("%d, close %v", resp.StatusCode, resp.Close)
	}
	if err := <-done; err != nil || f.Connections() != 0 {
		t.Fatalf("%v, %d connections", err, f.Connections())
	}
}

// When the time for draining ends, clients are cut off, but not the journeys of
// their requests.
func TestShutdownThatRunsOut(t *testing.T) {
	began, release, finished := make(chan struct{}), make(chan struct{}), make(chan struct{})
	f := start(t, "", &testGate{serve: func(*gate.Request) *gate.Reply {
		close(began)
		<-release
		close(finished)
		return own(decision.DecisionSoldOut)
	}})
	c := dial(t, f.addr)
	c.send("POST /book HTTP/1.1\r\nHost: x\r\n\r\n")
	<-began
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := f.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	if !c.closed() {
		t.Fatal("the client was answered")
	}
	close(release)
	<-finished
}
