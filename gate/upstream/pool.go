package upstream

import (
	"errors"
	"sync"
	"time"
)

// maxConnAge retires a connection in steady use, so that a changed DNS record is
// followed.
const maxConnAge = 10 * time.Minute

var errPoolFull = errors.New("every connection to the backend is in use (upstream.max_connections)")

// pool keeps idle connections, and bounds those in use. Newest first: what was
// used last is the least likely to have been closed by the backend, and the
// others may age and go.
type pool struct {
	dial      func(deadline time.Time) (*conn, error)
	keepAlive time.Duration
	maxAge    time.Duration
	inUse     chan struct{}

	mu     sync.Mutex
	idle   []*conn // by idleSince, oldest first
	sweep  *time.Timer
	closed bool
}

func newPool(dial func(time.Time) (*conn, error), maxInUse int, keepAlive time.Duration) *pool {
	return &pool{dial: dial, keepAlive: keepAlive, maxAge: maxConnAge, inUse: make(chan struct{}, maxInUse)}
}

// get returns a connection that was quiet a moment ago: idle, open and without a
// byte to read. It waits for one until the deadline. The caller sets the connection's
// deadlines, where those of its last use may still stand, and ends its use with put or
// discard.
func (p *pool) get(now, deadline time.Time) (*conn, error) {
	select {
	case p.inUse <- struct{}{}:
	default:
		if err := p.enter(deadline); err != nil {
			return nil, err
		}
		now = time.Now()
	}
	for {
		c := p.pop()
		if c == nil {
			break
		}
		if now.Sub(c.idleSince) < p.keepAlive && c.quiet() {
			c.taken, c.reused = now, true
			return c, nil
		}
		_ = c.Close()
	}
	c, err := p.dial(deadline)
	if err != nil {
		<-p.inUse
		return nil, err
	}
	c.taken = c.born
	return c, nil
}

// enter waits for a free place among the connections in use.
func (p *pool) enter(deadline time.Time) error {
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	select {
	case p.inUse <- struct{}{}:
		return nil
	case <-timer.C:
		return errPoolFull
	}
}

func (p *pool) pop() *conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := len(p.idle) - 1
	if last < 0 {
		return nil
	}
	c := p.idle[last]
	p.idle[last] = nil
	p.idle = p.idle[:last]
	return c
}

// put takes back a connection whose last answer was read to its very end.
func (p *pool) put(c *conn) {
	defer func() { <-p.inUse }()
	c.idleSince = time.Now()
	if c.idleSince.Sub(c.born) > p.maxAge {
		_ = c.Close()
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		_ = c.Close()
		return
	}
	p.idle = append(p.idle, c)
	if p.sweep == nil {
		p.sweep = time.AfterFunc(p.keepAlive, p.closeStale)
	}
}

// discard ends a connection that cannot be used again.
func (p *pool) discard(c *conn) {
	_ = c.Close()
	<-p.inUse
}

// closeStale closes what has been idle for too long and comes back for the rest.
func (p *pool) closeStale() {
	now := time.Now()
	p.mu.Lock()
	n := 0
	for n < len(p.idle) && now.Sub(p.idle[n].idleSince) >= p.keepAlive {
		n++
	}
	stale := append([]*conn(nil), p.idle[:n]...)
	p.idle = append(p.idle[:0], p.idle[n:]...)
	clear(p.idle[len(p.idle) : len(p.idle)+n])
	if len(p.idle) > 0 && !p.closed {
		p.sweep.Reset(p.idle[0].idleSince.Add(p.keepAlive).Sub(now))
	} else {
		p.sweep = nil
	}
	p.mu.Unlock()
	for _, c := range stale {
		_ = c.Close()
	}
}

func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	idle := p.idle
	p.idle = nil
	if p.sweep != nil {
		p.sweep.Stop()
	}
	p.mu.Unlock()
	for _, c := range idle {
		_ = c.Close()
	}
}
