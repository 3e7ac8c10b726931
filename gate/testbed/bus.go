package testbed

import (
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
)

// busSeat is a Cluster node's place at the bus, by which the nodes talk to each
// other.
type busSeat struct {
	bus       *bus   // nil: the nodes are connected directly
	source    string // address that the node dials from, with a bus
	port      int    // where the node listens
	announced int    // where the others find it
}

func (s *busSeat) choosePorts() (err error) {
	if s.port, err = freePort(); err != nil {
		return err
	}
	s.announced = s.port
	if s.bus != nil {
		s.announced, err = freePort()
	}
	return err
}

// args are those of the node.
func (s *busSeat) args() []string {
	args := []string{"--cluster-enabled", "yes", "--cluster-port", strconv.Itoa(s.port)}
	if s.bus != nil {
		args = append(args, "--cluster-announce-bus-port", strconv.Itoa(s.announced), "--bind-source-addr", s.source)
	}
	return args
}

// bus stands between the nodes of a Cluster with proxies. It listens where the nodes
// are announced and passes on to them. Each node dials from an address of its own, so
// every connection tells from which node to which it goes, and one node can be parted
// from all others in both directions.
type bus struct {
	mu     sync.Mutex
	seats  int
	parted map[string]bool // by source
	doors  []*door
}

func newBus() *bus { return &bus{parted: make(map[string]bool)} }

func (b *bus) newSeat() *busSeat {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.seats++
	return &busSeat{bus: b, source: fmt.Sprintf("127.0.1.%d", b.seats)}
}

// attach listens where a node is announced.
func (b *bus) attach(node *RedisServer) error {
	upstream := fmt.Sprintf("%s:%d", node.hosts.inner, node.seat.port)
	announced := fmt.Sprintf("%s:%d", node.hosts.peers, node.seat.announced)
	door, err := openDoor(node.t, announced, func(conn net.Conn) visit {
		from, _, _ := net.SplitHostPort(conn.RemoteAddr().String())
		return &busLink{bus: b, from: from, to: node.seat.source, upstream: upstream, conns: []net.Conn{conn}}
	})
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.doors = append(b.doors, door)
	return nil
}

// part with true closes all connections from and to a node and lets none come up.
func (b *bus) part(source string, part bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.parted[source] = part
	for _, door := range b.doors {
		door.severWhere(func(v visit) bool { return part && v.(*busLink).touches(source) })
	}
}

func (b *bus) passes(l *busLink) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.parted[l.from] && !b.parted[l.to]
}

// busLink is one connection between nodes.
type busLink struct {
	bus      *bus
	from, to string // source addresses of the nodes
	upstream string

	mu      sync.Mutex
	conns   []net.Conn // both ends, once they are there
	severed bool
}

func (l *busLink) touches(source string) bool { return l.from == source || l.to == source }

func (l *busLink) sever() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.severed = true
	for _, conn := range l.conns {
		conn.Close()
	}
}

func (l *busLink) run() {
	defer l.sever()
	if !l.bus.passes(l) {
		return
	}
	upstream, err := net.Dial("tcp", l.upstream)
	if err != nil {
		return // as with a dead node
	}
	defer upstream.Close()
	l.mu.Lock()
	if l.severed {
		l.mu.Unlock()
		return
	}
	client := l.conns[0]
	l.conns = append(l.conns, upstream)
	l.mu.Unlock()

	var back sync.WaitGroup
	back.Go(func() {
		defer l.sever()
		_, _ = io.Copy(client, upstream)
	})
	_, _ = io.Copy(upstream, client)
	l.sever()
	back.Wait()
}
