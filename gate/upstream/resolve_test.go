package upstream

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/slotgate/slotgate/gate"
)

// names is a DNS server in this process that gives every name the same addresses.
type names struct {
	mu        sync.Mutex
	addresses []netip.Addr
	serving   sync.WaitGroup
}

func (n *names) set(addresses ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.addresses = nil
	for _, a := range addresses {
		n.addresses = append(n.addresses, netip.MustParseAddr(a))
	}
}

// resolver asks the server over a connection that is a stream to both.
func (n *names) resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		n.serving.Go(func() {
			defer func() { _ = server.Close() }()
			for n.answer(server) == nil {
			}
		})
		return client, nil
	}}
}

// answer answers one question (RFC 1035 section 4, in the framing of 4.2.2).
func (n *names) answer(c net.Conn) error {
	var size [2]byte
	if _, err := io.ReadFull(c, size[:]); err != nil {
		return err
	}
	query := make([]byte, binary.BigEndian.Uint16(size[:]))
	if _, err := io.ReadFull(c, query); err != nil {
		return err
	}
	const header = 12
	end := header
	for query[end] != 0 {
		end += 1 + int(query[end])
	}
	end += 1 + 4 // the root, type and class
	const typeA, typeAAAA = 1, 28
	asked := binary.BigEndian.Uint16(query[end-4:])

	answers, count := []byte(nil), byte(0)
	n.mu.Lock()
	for _, a := range n.addresses {
		if a.Is4() && asked == typeA || a.Is6() && asked == typeAAAA {
			raw := a.AsSlice()
			answers = append(answers, 0xc0, header, 0, byte(asked), 0, 1, 0, 0, 0, 0, 0, byte(len(raw)))
			answers = append(answers, raw...)
			count++
		}
	}
	n.mu.Unlock()
	const isAnswer, recursive = 0x80, 0x80
	reply := append([]byte{query[0], query[1], isAnswer | query[2], recursive, 0, 1, 0, count, 0, 0, 0, 0}, query[header:end]...)
	reply = append(reply, answers...)
	_, err := c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...))
	return err
}

// newNamedClient is a client of http://backend.test at the port of a backend.
func newNamedClient(t *testing.T, addr string, n *names, change ...func(*Options)) *Client {
	t.Helper()
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	c := newClient(t, net.JoinHostPort("backend.test", port), change...)
	c.dialer.Resolver = n.resolver()
	t.Cleanup(n.serving.Wait)
	return c
}

// twoBackends listen on one port of two addresses and tell which one they are.
func twoBackends(t *testing.T) (first, second *backend) {
	t.Helper()
	first = startBackendAt(t, "127.0.0.1:0", answers(ok("first")))
	_, port, err := net.SplitHostPort(first.addr)
	if err != nil {
		t.Fatal(err)
	}
	return first, startBackendAt(t, net.JoinHostPort("127.0.0.2", port), answers(ok("second")))
}

// A name that has moved is followed: at once where the old address is dead, and
// where it still answers when its connections have aged.
func TestANameThatMoves(t *testing.T) {
	const first, second = "127.0.0.1", "127.0.0.2"
	t.Run("the old connection is dead", func(t *testing.T) {
		a, b := twoBackends(t)
		var n names
		n.set(first)
		c := newNamedClient(t, b.addr, &n)
		wantBody(t, c, request("POST", "/", "x"), "first")
		a.stop()
		if _, err := forward(c, request("POST", "/", "x"), time.Second); failureOf(err) != gate.NotConnected {
			t.Fatal(err)
		}
		n.set(second)
		wantBody(t, c, request("POST", "/", "x"), "second")
	})
	t.Run("the old connection was idle for keep_alive", func(t *testing.T) {
		const keepAlive = 20 * time.Millisecond
		a, _ := twoBackends(t)
		var n names
		n.set(first)
		c := newNamedClient(t, a.addr, &n, func(o *Options) { o.KeepAlive = keepAlive })
		wantBody(t, c, request("POST", "/", "x"), "first")
		n.set(second)
		until(t, "without an idle connection", func() bool {
			c.gated.mu.Lock()
			defer c.gated.mu.Unlock()
			return len(c.gated.idle) == 0
		})
		wantBody(t, c, request("POST", "/", "x"), "second")
	})
	t.Run("the old connection is in steady use", func(t *testing.T) {
		a, _ := twoBackends(t)
		var n names
		n.set(first)
		c := newNamedClient(t, a.addr, &n)
		wantBody(t, c, request("POST", "/", "x"), "first")
		n.set(second)
		wantBody(t, c, request("POST", "/", "x"), "first")
		c.gated.maxAge = 0
		wantBody(t, c, request("POST", "/", "x"), "first") // its last
		wantBody(t, c, request("POST", "/", "x"), "second")
	})
}

// Of the addresses that a name has, one that refuses does not keep the others from
// being tried, whatever their order and kind.
func TestAddressesThatRefuse(t *testing.T) {
	for _, test := range []struct {
		serves    string
		addresses []string
	}{
		{"127.0.0.1", []string{"::1", "127.0.0.1"}},
		{"::1", []string{"127.0.0.1", "::1"}},
		{"127.0.0.3", []string{"127.0.0.1", "127.0.0.2", "127.0.0.3"}},
		{"127.0.0.1", []string{"127.0.0.1", "127.0.0.2"}},
	} {
		t.Run(test.serves, func(t *testing.T) {
			b := startBackendAt(t, net.JoinHostPort(test.serves, "0"), answers(ok("hi")))
			var n names
			n.set(test.addresses...)
			c := newNamedClient(t, b.addr, &n)
			wantBody(t, c, request("POST", "/", "x"), "hi")
			b.stop()
			if _, err := forward(c, request("POST", "/", "x"), time.Second); failureOf(err) != gate.NotConnected {
				t.Fatal(err)
			}
			n.set()
			if _, err := forward(c, request("POST", "/", "x"), time.Second); failureOf(err) != gate.NotConnected {
				t.Fatalf("a name without an address: %v", err)
			}
		})
	}
}
