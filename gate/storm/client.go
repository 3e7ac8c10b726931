package storm

import (
	"bytes"
	"cmp"
	"context"
	"net/http"
	"time"
)

// client sends one request after the other, over one connection to each target.
type client struct {
	storm       *storm
	connections []*connection
	refused     *TransportError // why its first failed connect failed
	request     []byte          // buffers, used again for each request
	scratch     []byte
	body        bytes.Buffer
	asked       *http.Request // tells the reader of answers the method
}

func newClient(s *storm) *client {
	return &client{
		storm:       s,
		connections: make([]*connection, len(s.targets)),
		asked:       &http.Request{Method: s.options.Method},
	}
}

func (c *client) close() {
	for _, connection := range c.connections {
		if connection != nil {
			connection.close()
		}
	}
}

// connectAll opens the connections. One that fails is tried again when it is
// needed, and counted then.
func (c *client) connectAll(ctx context.Context) {
	for i := range c.storm.targets {
		c.connection(ctx, i)
	}
}

// connection gives a connection that can take a request now.
func (c *client) connection(ctx context.Context, target int) (*connection, *TransportError) {
	if kept := c.connections[target]; kept != nil {
		if kept.alive() {
			return kept, nil
		}
		kept.close()
		c.connections[target] = nil
	}
	fresh, err := c.storm.targets[target].connect(ctx, c.storm.options.Timeout)
	if err != nil {
		c.refused = cmp.Or(c.refused, err)
		return nil, err
	}
	c.storm.opened.Add(1)
	c.connections[target] = fresh
	return fresh, nil
}

func (c *client) run(ctx context.Context) {
	for {
		o, more := c.storm.plan.next(time.Now())
		if !more || !waitUntil(ctx, o.due) {
			return
		}
		if !c.send(ctx, o) {
			return
		}
	}
}

// waitUntil returns false when ctx ends first.
func waitUntil(ctx context.Context, due time.Time) bool {
	if ctx.Err() != nil {
		return false
	}
	wait := time.Until(due)
	if wait <= 0 {
		return true
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// send sends one request and records what came of it; false means that the
// storm ended before it could be sent.
func (c *client) send(ctx context.Context, o order) bool {
	v := values{n: o.n, subject: o.subject, key: keyOf(c.storm.options.Seed, o.n)}
	target := &c.storm.targets[o.target]
	c.request, c.scratch = target.append(c.request[:0], c.scratch, v)
	connection, err := c.connection(ctx, o.target)
	if o.twins != nil {
		// Both have all they need before either goes; the wait may have been
		// long enough for the server to close the connection.
		if !o.twins.meet(ctx) {
			return false
		}
		if err == nil {
			connection, err = c.connection(ctx, o.target)
		}
	}
	e := Exchange{N: o.n, Repeat: o.repeat, Subject: o.subject, Slot: target.slotOf(v), Key: v.key, Sent: time.Now()}
	if err == nil {
		var got answer
		got, err = connection.send(ctx, c.asked, c.request, &c.body, c.storm.options.Timeout)
		e.Status, e.Header, e.Body = got.status, got.header, got.body
	}
	e.Latency = time.Since(e.Sent)
	if err != nil {
		e.Err = err
	}
	c.storm.tally.record(o, &e)
	if c.storm.options.OnResponse != nil {
		e.URL = target.url(v)
		c.storm.options.OnResponse(e)
	}
	return true
}
