package edge

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/slotgate/slotgate/gate"
	"github.com/slotgate/slotgate/rules"
)

// drip is a body that comes in pieces, each when it is let, and ends in err.
type drip struct {
	pieces []string
	let    chan struct{} // nil: at once
	err    error
	closed bool
}

func (d *drip) Read(p []byte) (int, error) {
	if d.let != nil {
		<-d.let
	}
	if len(d.pieces) == 0 {
		return 0, d.err
	}
	n := copy(p, d.pieces[0])
	if d.pieces[0] = d.pieces[0][n:]; d.pieces[0] == "" {
		d.pieces = d.pieces[1:]
	}
	return n, nil
}

func (d *drip) Close() error { d.closed = true; return nil }

func TestReadAheadLosesNothing(t *testing.T) {
	long := string(bytes.Repeat([]byte("0123456789"), 2000))
	cut := errors.New("cut")
	for _, row := range []struct {
		name   string
		body   drip
		limit  int64
		budget int64
		seen   int
		as     gate.AnswerBody
	}{
		{"whole", drip{pieces: []string{"a", "bc"}, err: io.EOF}, 100, 1 << 20, 3, gate.BodyWhole},
		{"empty", drip{err: io.EOF}, 100, 1 << 20, 0, gate.BodyWhole},
		{"longer", drip{pieces: []string{"abcdef"}, err: io.EOF}, 4, 1 << 20, 4, gate.BodyPartly},
		{"grown", drip{pieces: []string{long}, err: io.EOF}, 1 << 20, 1 << 20, len(long), gate.BodyWhole},
		{"no memory", drip{pieces: []string{long}, err: io.EOF}, 1 << 20, firstChunk, firstChunk, gate.BodyPartly},
		{"cut", drip{pieces: []string{"abc"}, err: cut}, 100, 1 << 20, 3, gate.BodyCut},
	} {
		t.Run(row.name, func(t *testing.T) {
			budget := NewBudget(row.budget)
			want, end := bytes.Join(toBytes(row.body.pieces), nil), row.body.err
			ahead := &readAhead{body: &row.body, budget: budget}
			seen, as := ahead.fill(row.limit, time.Now().Add(time.Minute))
			if len(seen) != row.seen || as != row.as || !bytes.HasPrefix(want, seen) {
				t.Fatalf("saw %d bytes as %v, want %d as %v", len(seen), as, row.seen, row.as)
			}
			got, err := io.ReadAll(ahead)
			if end == io.EOF {
				end = nil
			}
			if !bytes.Equal(got, want) || !errors.Is(err, end) {
				t.Fatalf("read %d bytes, %v; want %d, %v", len(got), err, len(want), end)
			}
			if _ = ahead.Close(); budget.Used() != 0 || !row.body.closed {
				t.Fatalf("%d bytes kept, closed %v", budget.Used(), row.body.closed)
			}
		})
	}
}

func toBytes(list []string) (all [][]byte) {
	for _, s := range list {
		all = append(all, []byte(s))
	}
	return all
}

// What comes after it was waited for in vain is the reader's, and nobody closes a body
// that is being read.
func TestReadAheadGivesUpInTime(t *testing.T) {
	body := &drip{pieces: []string{"first", "second"}, let: make(chan struct{}, 3), err: io.EOF}
	body.let <- struct{}{}
	ahead := &readAhead{body: body, budget: NewBudget(1 << 20)}
	seen, as := ahead.fill(100, time.Now().Add(50*time.Millisecond))
	if as != gate.BodyLate || len(seen) > len("first") {
		t.Fatalf("%q as %v", seen, as)
	}
	body.let <- struct{}{}
	body.let <- struct{}{}
	if got, err := io.ReadAll(ahead); string(got) != "firstsecond" || err != nil {
		t.Fatalf("%q, %v", got, err)
	}

	body = &drip{pieces: []string{"late"}, let: make(chan struct{}), err: io.EOF}
	ahead = &readAhead{body: body, budget: NewBudget(1 << 20)}
	if _, as := ahead.fill(100, time.Now()); as != gate.BodyLate {
		t.Fatalf("%v", as)
	}
	closed := make(chan struct{})
	go func() { defer close(closed); _ = ahead.Close() }()
	select {
	case <-closed:
		t.Fatal("closed while it is read")
	case body.let <- struct{}{}:
	}
	<-closed
	if ahead.budget.Used() != 0 {
		t.Fatalf("%d bytes kept", ahead.budget.Used())
	}
}

func TestCopiedBodyKeepsWithinItsBounds(t *testing.T) {
	long := string(bytes.Repeat([]byte("x"), 3*firstChunk))
	var refusal *rules.Refusal
	for _, row := range []struct {
		name          string
		limit, budget int64
		fault         func(error) bool
	}{
		{"whole", 1 << 20, 1 << 20, func(err error) bool { return err == nil }},
		{"too long", 2 * firstChunk, 1 << 20, func(err error) bool {
			return errors.As(err, &refusal) && refusal.Kind == rules.RefuseTooLarge
		}},
		{"no memory", 1 << 20, firstChunk, func(err error) bool { return err == gate.ErrOverloaded }},
	} {
		t.Run(row.name, func(t *testing.T) {
			budget, times := NewBudget(row.budget), 0
			body := &copiedBody{
				Reader: &drip{pieces: []string{long, "end"}, err: io.EOF}, budget: budget, limit: row.limit,
				whole: func(body []byte, fault error) {
					times++
					if !row.fault(fault) || fault == nil && string(body) != long+"end" {
						t.Errorf("%d bytes, %v", len(body), fault)
					}
				},
			}
			got, err := io.ReadAll(body)
			if string(got) != long+"end" || err != nil || times != 1 {
				t.Fatalf("%d bytes, %v, shown %d times", len(got), err, times)
			}
			if budget.Used() != 0 || body.text != nil {
				t.Fatalf("%d bytes kept", budget.Used())
			}
		})
	}
}
