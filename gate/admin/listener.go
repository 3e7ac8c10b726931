package admin

import (
	"net"
	"sync"
)

// maxConnections bounds what the admin listener costs, whoever connects. Further
// connections wait in the kernel's queue.
const maxConnections = 512

// boundedListener accepts while fewer than cap(room) of its connections are open.
type boundedListener struct {
	net.Listener
	room   chan struct{}
	closed chan struct{}
	once   sync.Once
}

func newBoundedListener(ln net.Listener, connections int) *boundedListener {
	return &boundedListener{Listener: ln, room: make(chan struct{}, connections), closed: make(chan struct{})}
}

func (l *boundedListener) Accept() (net.Conn, error) {
	select {
	case l.room <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	conn, err := l.Listener.Accept()
	if err != nil {
		<-l.room
		return nil, err
	}
	return &boundedConn{Conn: conn, leave: sync.OnceFunc(func() { <-l.room })}, nil
}

func (l *boundedListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

type boundedConn struct {
	net.Conn
	leave func()
}

func (c *boundedConn) Close() error {
	defer c.leave()
	return c.Conn.Close()
}
