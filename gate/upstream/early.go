package upstream

import (
	"fmt"
	"sync/atomic"
	"time"
)

// A backend may answer before it has read the whole request, and then read no
// more, or close. Whoever only writes until everything is sent waits for a peer that
// does not read, or finds the connection reset under its answer. So while a long
// body is written the answer is listened for, and one that makes the rest of the
// body useless ends the writing.

// Interrupter is a request body that can be told, by another goroutine, that the
// rest of it is of no use: Read, one that is waiting too, then fails.
type Interrupter interface{ Interrupt() }

// longAgo as a deadline ends an operation that is under way.
var longAgo = time.Unix(1, 0)

// listening waits for the answer to a request that is still being written.
type listening[A any] struct {
	conn   *conn
	over   atomic.Bool // the rest of the request is of no use
	ended  chan struct{}
	answer A
	err    error
}

// listen calls read in a goroutine of its own. When read fails, or its answer is one
// after which no more of the request is needed, writing ends, and so does reading
// body, if that is an Interrupter.
func listen[A any](c *conn, body any, read func() (A, error), ends func(A) bool) *listening[A] {
	l := &listening[A]{conn: c, ended: make(chan struct{})}
	go func() {
		defer close(l.ended)
		defer func() {
			if fault := recover(); fault != nil {
				l.err = fmt.Errorf("panic while reading the backend's answer: %v", fault)
				l.stopWriting(body)
			}
		}()
		if l.answer, l.err = read(); l.err != nil || ends(l.answer) {
			l.stopWriting(body)
		}
	}()
	return l
}

func (l *listening[A]) stopWriting(body any) {
	l.over.Store(true)
	_ = l.conn.SetWriteDeadline(longAgo)
	if b, ok := body.(Interrupter); ok {
		b.Interrupt()
	}
}

// wait returns what was heard until the connection's read deadline.
func (l *listening[A]) wait() (A, error) {
	<-l.ended
	return l.answer, l.err
}
