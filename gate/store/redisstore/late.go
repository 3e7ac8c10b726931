package redisstore

import (
	"errors"
	"net"
	"os"
	"syscall"
	"time"
)

// lookAgain is how long a reader whose time is over still looks for what is there.
const lookAgain = 5 * time.Millisecond

// late is a connection whose reader is given what came in time though the reader did not.
// With thousands of requests to read at the same moment, the goroutine that waits for a
// reply has its turn when its deadline is over: it would be refused a reply that has been
// here all the time, and the server be taken for one that does not answer.
type late struct{ net.Conn }

// Read is part of net.Conn.
func (c late) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		return n, err
	}
	if c.SetReadDeadline(time.Now().Add(lookAgain)) != nil {
		return 0, err
	}
	if n, _ = c.Conn.Read(p); n > 0 {
		return n, nil
	}
	return 0, err
}

// lateSocket is late for one that the library looks at before it uses it again.
type lateSocket struct {
	late
	syscall.Conn
}

func lookingAgain(c net.Conn) net.Conn {
	if socket, ok := c.(syscall.Conn); ok {
		return lateSocket{late{c}, socket}
	}
	return late{c}
}
