package testbed

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
)

// RedisProxy stands between clients and one Redis and misbehaves on demand. It
// understands enough RESP (2 and 3) to know each command and the reply that
// belongs to it, so faults are placed by counting, never by timing, and
// pipelines work. Without a fault it passes every byte on unchanged.
//
// Methods that take a command name it by its leading words, compared without
// regard to case: "EVALSHA" is every EVALSHA, "EVALSHA 5f3c…" that of one
// script, "CLIENT SETINFO" one subcommand.
//
// All methods are safe for concurrent use.
type RedisProxy struct {
	t        testing.TB
	upstream string
	addr     string
	rewrite  func(reply []byte) []byte // nil: replies pass as they are

	running sync.WaitGroup

	mu         sync.Mutex
	listener   net.Listener // nil while refusing
	links      map[*link]bool
	orders     []*order
	recordings []*Recording
	requests   map[string]int // by upper-case first word
	terms      terms
}

// Proxy listens on a free loopback port and passes on to the Redis at
// upstream (host:port). It ends with the test.
func Proxy(t testing.TB, upstream string) *RedisProxy {
	t.Helper()
	p, err := startProxy(t, loopback(FreePort(t)), upstream, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func startProxy(t testing.TB, addr, upstream string, rewrite func([]byte) []byte) (*RedisProxy, error) {
	p := &RedisProxy{
		t: t, upstream: upstream, addr: addr, rewrite: rewrite,
		links: make(map[*link]bool), requests: make(map[string]int),
	}
	if err := p.listen(); err != nil {
		return nil, err
	}
	t.Cleanup(p.stop)
	return p, nil
}

// Addr returns the host:port to connect to.
func (p *RedisProxy) Addr() string { return p.addr }

// Refuse with true closes the listening port: new connections are refused by
// the kernel, existing ones live on. With false it opens the port again.
func (p *RedisProxy) Refuse(refuse bool) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if refuse == (p.listener == nil) {
		return
	}
	if refuse {
		p.listener.Close()
		p.listener = nil
		return
	}
	if err := p.listen(); err != nil {
		p.t.Error(err)
	}
}

// listen opens the port. The caller holds p.mu, or is alone.
func (p *RedisProxy) listen() error {
	listener, err := net.Listen("tcp", p.addr)
	if err != nil {
		return fmt.Errorf("testbed: proxy: %w", err)
	}
	p.listener = listener
	p.running.Go(func() { p.accept(listener) })
	return nil
}

// Sever cuts all connections. No reply reaches a client after it returns;
// requests that were on their way may still reach Redis.
func (p *RedisProxy) Sever() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.sever()
	}
}

func (p *RedisProxy) stop() {
	p.Refuse(true)
	p.Sever()
	p.running.Wait()
}

func (p *RedisProxy) accept(listener net.Listener) {
	for {
		client, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			p.t.Errorf("testbed: proxy: accept: %v", err)
			return
		}
		l := newLink(p, client)
		p.mu.Lock()
		if p.listener != listener {
			// Refused since it was accepted. Nothing could sever it later.
			p.mu.Unlock()
			client.Close()
			return
		}
		p.links[l] = true
		p.mu.Unlock()
		p.running.Go(func() {
			l.run()
			p.mu.Lock()
			defer p.mu.Unlock()
			delete(p.links, l)
		})
	}
}
