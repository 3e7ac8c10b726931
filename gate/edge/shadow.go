package edge

import (
	"errors"
	"io"
	"time"

	"github.com/slotgate/slotgate/gate"
	"github.com/slotgate/slotgate/gate/upstream"
	"github.com/slotgate/slotgate/rules"
)

// watched is the backend of a request in shadow: it passes as any other, and its shadow
// gets to see what passes, no more of it than that needs.
type watched struct {
	Backend
	server *Server
	shadow *gate.Shadow
}

// backendOf is where a request that is not gated is passed on to.
func (s *Server) backendOf(req *gate.Request) Backend {
	if req.Shadow == nil {
		return s.backend
	}
	return &watched{s.backend, s, req.Shadow}
}

// Pass implements Backend.
func (w *watched) Pass(r *gate.Request, body io.Reader, length int64) (*upstream.Stream, error) {
	limit := w.shadow.MaxBody()
	switch {
	case body == nil:
		w.shadow.Requested(nil, nil)
	case length > limit:
		w.shadow.Requested(nil, tooLarge(limit))
	default:
		copied := &copiedBody{Reader: body, whole: w.shadow.Requested, budget: w.server.budget, limit: limit}
		defer copied.drop()
		body = copied
	}
	stream, err := w.Backend.Pass(r, body, length)
	var fromClient *upstream.RequestBodyError
	switch {
	case errors.As(err, &fromClient):
	case err != nil:
		w.shadow.Failed(err)
	default:
		w.see(stream)
	}
	return stream, err
}

// Upgrade implements Backend.
func (w *watched) Upgrade(r *gate.Request, protocol string) (*upstream.Tunnel, *upstream.Stream, error) {
	w.shadow.Requested(nil, nil)
	tunnel, stream, err := w.Backend.Upgrade(r, protocol)
	switch {
	case err != nil:
		w.shadow.Failed(err)
	case stream != nil:
		w.see(stream)
	default:
		w.shadow.Answered(&rules.Response{Status: 101, Header: tunnel.Header}, gate.BodyWhole)
	}
	return tunnel, stream, err
}

// see shows the shadow an answer, and as much of its body as it wants.
func (w *watched) see(stream *upstream.Stream) {
	answer := &rules.Response{Status: stream.Status, Header: stream.Header}
	limit, until := w.shadow.Wants()
	if limit == 0 && stream.Length > 0 && stream.Length <= copyBelow {
		limit = stream.Length // it is waited for in any case, and may be cut
	}
	seen := gate.BodyPartly
	switch {
	case stream.Length == 0:
		seen = gate.BodyWhole
	case limit > 0:
		ahead := &readAhead{body: stream.Body, budget: w.server.budget}
		stream.Body = ahead
		answer.Body, seen = ahead.fill(limit, until)
	}
	w.shadow.Answered(answer, seen)
}

// appendShadow tells what the gate would have done; nothing without a shadow.
func (s *Server) appendShadow(b []byte, shadow *gate.Shadow) []byte {
	if r := shadow.Reply(); r != nil && s.config.GateHeaders {
		return appendGateFields(b, r)
	}
	return b
}

// copiedBody copies a request's body on its way, as long as that is short enough, and
// shows the copy before the end of the body goes on.
type copiedBody struct {
	io.Reader
	// whole is told once: of the body, or why there is no copy of it.
	whole  func(body []byte, fault error)
	budget *Budget
	limit  int64
	text   []byte
	taken  int64 // of the budget
	shown  bool
}

func (b *copiedBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if b.shown {
		return n, err
	}
	switch {
	case int64(len(b.text)+n) > b.limit:
		b.show(tooLarge(b.limit))
	case !b.add(p[:n]):
		b.show(gate.ErrOverloaded)
	case err == io.EOF:
		b.show(nil)
	}
	return n, err
}

func (b *copiedBody) add(p []byte) bool {
	need := int64(len(b.text) + len(p))
	if need > b.taken {
		size := min(max(need, 2*b.taken, firstChunk), b.limit)
		if !b.budget.Take(size - b.taken) {
			return false
		}
		b.taken = size
		b.text = append(make([]byte, 0, size), b.text...)
	}
	b.text = append(b.text, p...)
	return true
}

func (b *copiedBody) show(fault error) {
	b.shown = true
	b.whole(b.text, fault)
	b.drop()
}

func (b *copiedBody) drop() {
	b.budget.Give(b.taken)
	b.text, b.taken = nil, 0
}

// Interrupt, Announced and Trailers are those of the body that is copied.
func (b *copiedBody) Interrupt() {
	if body, ok := b.Reader.(upstream.Interrupter); ok {
		body.Interrupt()
	}
}

func (b *copiedBody) Announced() []string {
	if body, ok := b.Reader.(upstream.Trailing); ok {
		return body.Announced()
	}
	return nil
}

func (b *copiedBody) Trailers() []rules.Field {
	if body, ok := b.Reader.(upstream.Trailing); ok {
		return body.Trailers()
	}
	return nil
}

// readAhead is an answer's body of which the beginning has been read before its time.
type readAhead struct {
	body   io.ReadCloser
	budget *Budget
	text   []byte
	taken  int64      // of the budget
	given  int        // of text
	end    error      // that came behind text; nil: not there yet
	under  chan piece // a read that still goes on; nil: none
}

type piece struct {
	n   int
	err error
}

// fill reads ahead until the end of the body, limit bytes, or the given time, if any. What is
// read late is not lost: the reader gets it.
func (a *readAhead) fill(limit int64, until time.Time) ([]byte, gate.AnswerBody) {
	var late <-chan time.Time // never, if until is zero
	if !until.IsZero() {
		timer := time.NewTimer(time.Until(until))
		defer timer.Stop()
		late = timer.C
	}
	for int64(len(a.text)) < limit {
		if len(a.text) == cap(a.text) {
			size := min(max(firstChunk, 2*a.taken), limit)
			if !a.budget.Take(size - a.taken) {
				return a.text, gate.BodyPartly
			}
			a.taken = size
			a.text = append(make([]byte, 0, size), a.text...)
		}
		room := a.text[len(a.text):cap(a.text)]
		under := make(chan piece, 1)
		go func() {
			n, err := a.body.Read(room)
			under <- piece{n, err}
		}()
		select {
		case p := <-under:
			a.take(p)
		case <-late:
			a.under = under
			return a.text, gate.BodyLate
		}
		switch {
		case a.end == io.EOF:
			return a.text, gate.BodyWhole
		case a.end != nil:
			return a.text, gate.BodyCut
		}
	}
	return a.text, gate.BodyPartly
}

func (a *readAhead) take(p piece) {
	a.text, a.end = a.text[:len(a.text)+p.n], p.err
}

func (a *readAhead) settle() {
	if a.under != nil {
		a.take(<-a.under)
		a.under = nil
	}
}

// Read gives what was read ahead, then the rest.
func (a *readAhead) Read(p []byte) (int, error) {
	if a.given == len(a.text) {
		a.settle()
	}
	switch {
	case a.given < len(a.text):
		n := copy(p, a.text[a.given:])
		a.given += n
		return n, nil
	case a.end != nil:
		return 0, a.end
	}
	return a.body.Read(p)
}

// Close waits for a read that goes on: nobody may use the connection meanwhile.
func (a *readAhead) Close() error {
	a.settle()
	a.budget.Give(a.taken)
	a.text, a.given, a.taken = nil, 0, 0
	return a.body.Close()
}

// Announced and Trailers are those of the body.
func (a *readAhead) Announced() []string {
	if body, ok := a.body.(upstream.Trailing); ok {
		return body.Announced()
	}
	return nil
}

func (a *readAhead) Trailers() []rules.Field {
	if body, ok := a.body.(upstream.Trailing); ok {
		return body.Trailers()
	}
	return nil
}
