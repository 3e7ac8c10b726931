package degrade

import (
	"bytes"
	"encoding/binary"
	"errors"

	"github.com/slotgate/slotgate/gate/store"
)

// settleSchema is the layout that settleFields gives. A change of it takes the
// next number and still reads the ones before: fields are added at the end.
const settleSchema = 2

var errSettle = errors.New("not a settlement that this version of slotgate can read: " +
	"run the one that wrote it until nothing waits, or move the file away")

// appendSettle appends a settlement's record to b: the schema, then its fields.
// It holds keys, scopes and answers as they are, since the store needs them.
func appendSettle(b []byte, s *store.Settle) []byte {
	w := fieldWriter{b: append(b, settleSchema)}
	settleFields(&w, s, settleSchema)
	return w.b
}

// readSettle is the inverse of appendSettle. It keeps nothing of b.
func readSettle(b []byte) (*store.Settle, error) {
	if len(b) == 0 || b[0] < 1 || b[0] > settleSchema {
		return nil, errSettle
	}
	r := fieldReader{b: b[1:]}
	s := new(store.Settle)
	settleFields(&r, s, b[0])
	if r.bad || len(r.b) > 0 {
		return nil, errSettle
	}
	return s, nil
}

// settleFields is the one list of what a record of a schema holds, for both
// directions.
func settleFields(w fieldWalk, s *store.Settle, schema byte) {
	w.text(&s.ID)
	w.text(&s.Hold)
	w.text(&s.Pool)
	w.text(&s.Slot)
	w.text(&s.Subject)
	w.number(&s.Units)
	w.number(&s.Capacity)
	w.number((*int64)(&s.HoldTTL))
	w.number((*int64)(&s.Retain))
	w.number(&s.MaxPerSubject)
	w.number(&s.ReleaseSeq)
	w.flag(&s.KeepUnknown)
	w.flag(&s.Probe)
	w.octet((*uint8)(&s.Outcome))
	w.text(&s.Group)
	w.text(&s.Partition)
	w.text(&s.Key)
	w.number((*int64)(&s.KeyTTL))
	w.flag(&s.Keep)
	w.text(&s.Scope)
	w.octets(s.Fingerprint[:])
	w.bytes(&s.Answer)
	if schema < 2 {
		return
	}
	w.octet((*uint8)(&s.Action))
	w.octet((*uint8)(&s.Truth))
	w.text(&s.Reference)
	w.number((*int64)(&s.PendingTTL))
}

// fieldWalk writes the fields it is shown, or reads into them.
type fieldWalk interface {
	text(*string)
	bytes(*[]byte) // nil when empty
	number(*int64)
	octet(*uint8)
	octets([]uint8) // as many as are shown
	flag(*bool)
}

// fieldWriter appends: numbers as varints, texts and bytes after their length.
type fieldWriter struct{ b []byte }

func (w *fieldWriter) text(s *string) {
	w.b = append(binary.AppendUvarint(w.b, uint64(len(*s))), *s...)
}

func (w *fieldWriter) bytes(p *[]byte) {
	w.b = append(binary.AppendUvarint(w.b, uint64(len(*p))), *p...)
}

func (w *fieldWriter) number(n *int64)  { w.b = binary.AppendVarint(w.b, *n) }
func (w *fieldWriter) octet(o *uint8)   { w.b = append(w.b, *o) }
func (w *fieldWriter) octets(o []uint8) { w.b = append(w.b, o...) }

func (w *fieldWriter) flag(f *bool) {
	var o uint8
	if *f {
		o = 1
	}
	w.octet(&o)
}

// fieldReader takes from the front of b; once bad, there is nothing left to read.
type fieldReader struct {
	b   []byte
	bad bool
}

func (r *fieldReader) text(s *string) { *s = string(r.counted()) }

func (r *fieldReader) bytes(p *[]byte) {
	if b := r.counted(); len(b) > 0 {
		*p = bytes.Clone(b)
	}
}

func (r *fieldReader) number(n *int64) {
	value, size := binary.Varint(r.b)
	if size <= 0 {
		r.fail()
		return
	}
	*n, r.b = value, r.b[size:]
}

func (r *fieldReader) octet(o *uint8) {
	if len(r.b) == 0 {
		r.fail()
		return
	}
	*o, r.b = r.b[0], r.b[1:]
}

func (r *fieldReader) octets(o []uint8) {
	if len(r.b) < len(o) {
		r.fail()
		return
	}
	r.b = r.b[copy(o, r.b):]
}

func (r *fieldReader) flag(f *bool) {
	var o uint8
	r.octet(&o)
	if o > 1 {
		r.fail()
	}
	*f = o == 1
}

// counted takes a length and as many bytes.
func (r *fieldReader) counted() []byte {
	length, size := binary.Uvarint(r.b)
	if size <= 0 || length > uint64(len(r.b)-size) {
		r.fail()
		return nil
	}
	end := size + int(length)
	taken := r.b[size:end]
	r.b = r.b[end:]
	return taken
}

func (r *fieldReader) fail() { r.b, r.bad = nil, true }
