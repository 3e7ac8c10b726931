package testbed

import (
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
	door     *door
	rewrite  func(reply []byte) []byte // nil: replies pass as they are

	mu         sync.Mutex
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
	p := &RedisProxy{t: t, upstream: upstream, rewrite: rewrite, requests: make(map[string]int)}
	door, err := openDoor(t, addr, func(client net.Conn) visit { return newLink(p, client) })
	if err != nil {
		return nil, err
	}
	p.door = door
	return p, nil
}

// Addr returns the host:port to connect to.
func (p *RedisProxy) Addr() string { return p.door.addr }

// Refuse with true closes the listening port: new connections are refused by
// the kernel, existing ones live on. With false it opens the port again.
func (p *RedisProxy) Refuse(refuse bool) {
	p.t.Helper()
	p.door.refuse(refuse)
}

// Sever cuts all connections. No reply reaches a client after it returns;
// requests that were on their way may still reach Redis.
func (p *RedisProxy) Sever() { p.door.sever() }
