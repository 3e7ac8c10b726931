package upstream

import (
	"time"

	"github.com/slotgate/slotgate/gate"
	"github.com/slotgate/slotgate/rules"
)

// Tunnel is a connection on which the backend has changed the protocol (RFC 9110
// section 7.8). One goroutine may read while another writes.
type Tunnel struct {
	Protocol string        // of the answer's Upgrade field
	Header   []rules.Field // of the 101 answer, end-to-end
	exchange
}

// Upgrade sends a request without a body that asks for another protocol. The
// answer is a tunnel, which the caller closes, or, where the backend does not
// agree, a stream as that of Pass. Each tunnel has a connection of its own, which
// never serves another request; there may be Options.MaxConnections of them.
func (c *Client) Upgrade(r *gate.Request, protocol string) (*Tunnel, *Stream, error) {
	began := time.Now()
	p := &passing{exchange: exchange{client: c, pool: c.tunnels}}
	tunnel, stream, err := p.upgrade(r, protocol, began)
	if c.observe != nil {
		c.observe(Exchange{Took: time.Since(began), Err: err})
	}
	return tunnel, stream, err
}

func (p *passing) upgrade(r *gate.Request, protocol string, now time.Time) (*Tunnel, *Stream, error) {
	if err := p.connect(now, now.Add(p.client.connect)); err != nil {
		return nil, nil, err
	}
	if err := p.askUpgrade(r, protocol); err != nil {
		p.end(false)
		return nil, nil, p.failure(err)
	}
	a := &p.answer
	if a.status != 101 {
		a.closes = true
		p.begin(false)
		return nil, &p.stream, nil
	}
	t := &Tunnel{Header: EndToEnd(append([]rules.Field(nil), a.fields...)), exchange: p.exchange}
	for _, f := range a.fields {
		if SameName(f.Name, "Upgrade") {
			t.Protocol = f.Value
		}
	}
	return t, nil, p.conn.SetDeadline(time.Time{})
}

func (p *passing) askUpgrade(r *gate.Request, protocol string) error {
	if err := p.conn.SetDeadline(time.Now().Add(p.client.timeout)); err != nil {
		return err
	}
	head := appendHead(nil, r, p.client.target.authority, 0)
	head = appendField(head[:len(head)-len("\r\n")], "Connection", "Upgrade")
	head = append(appendField(head, "Upgrade", protocol), '\r', '\n')
	if err := p.writeBytes(head); err != nil {
		return err
	}
	return p.answer.readFinal(&p.in, r.Method, true)
}

// Read reads what the backend sends. It fails with a time-out after
// Options.IdleTimeout without a byte; another Read may follow.
func (t *Tunnel) Read(p []byte) (int, error) {
	if err := t.conn.SetReadDeadline(time.Now().Add(t.client.idle)); err != nil {
		return 0, err
	}
	return t.in.Read(p)
}

// Write sends to the backend, for Options.IdleTimeout at most.
func (t *Tunnel) Write(p []byte) (int, error) {
	if err := t.conn.SetWriteDeadline(time.Now().Add(t.client.idle)); err != nil {
		return 0, err
	}
	return t.conn.Write(p)
}

// CloseWrite tells the backend that nothing more will come.
func (t *Tunnel) CloseWrite() error {
	if half, ok := t.conn.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// Interrupt makes Read and Write fail, now and later.
func (t *Tunnel) Interrupt() { _ = t.conn.Close() }

// Close ends the connection. Nothing may be read or written any more.
func (t *Tunnel) Close() { t.end(false) }
