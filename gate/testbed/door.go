package testbed

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
)

// door is a listening port that can be shut and opened again, with the
// connections that came in by it. Safe for concurrent use.
type door struct {
	t     testing.TB
	addr  string
	admit func(net.Conn) visit

	running  sync.WaitGroup
	mu       sync.Mutex
	listener net.Listener // nil while shut
	gone     bool         // shut for good
	visits   map[visit]bool
}

// visit is one connection. run serves it until it ends; sever ends it from outside,
// at any time and more than once.
type visit interface {
	run()
	sever()
}

// openDoor listens at addr until the test ends.
func openDoor(t testing.TB, addr string, admit func(net.Conn) visit) (*door, error) {
	d := &door{t: t, addr: addr, admit: admit, visits: make(map[visit]bool)}
	if err := d.listen(); err != nil {
		return nil, err
	}
	t.Cleanup(d.close)
	return d, nil
}

func (d *door) close() {
	d.mu.Lock()
	d.gone = true
	if d.listener != nil {
		d.listener.Close()
		d.listener = nil
	}
	d.mu.Unlock()
	d.sever()
	d.running.Wait()
}

// refuse shuts the port or opens it; connections live on.
func (d *door) refuse(refuse bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.gone || refuse == (d.listener == nil) {
		return
	}
	if refuse {
		d.listener.Close()
		d.listener = nil
		return
	}
	if err := d.listen(); err != nil {
		d.t.Error(err)
	}
}

// listen opens the port. The caller holds d.mu, or is alone.
func (d *door) listen() error {
	listener, err := net.Listen("tcp", d.addr)
	if err != nil {
		return fmt.Errorf("testbed: proxy: %w", err)
	}
	d.listener = listener
	d.running.Go(func() { d.accept(listener) })
	return nil
}

// sever ends all connections.
func (d *door) sever() {
	d.severWhere(func(visit) bool { return true })
}

func (d *door) severWhere(chosen func(visit) bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for v := range d.visits {
		if chosen(v) {
			v.sever()
		}
	}
}

func (d *door) accept(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			d.t.Errorf("testbed: proxy: accept: %v", err)
			return
		}
		v := d.admit(conn)
		d.mu.Lock()
		if d.listener != listener {
			// Refused since it was accepted. Nothing could sever it later.
			d.mu.Unlock()
			conn.Close()
			return
		}
		d.visits[v] = true
		d.mu.Unlock()
		d.running.Go(func() {
			v.run()
			d.mu.Lock()
			defer d.mu.Unlock()
			delete(d.visits, v)
		})
	}
}
