package rules

import (
	"bytes"
	"crypto/sha256"
	"slices"
	"strconv"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// digestJSON hashes a valid text so that spellings of one value are equal: members
// sorted by name, strings decoded, numbers by exact decimal value (RFC 8785 with
// exact numbers in place of doubles). Objects and arrays enter their parent as a
// hash, so that each byte is looked at once however deep the text nests.
func digestJSON(text []byte) [sha256.Size]byte {
	d := jsonDigests.Get().(*jsonDigest)
	d.text, d.at, d.buf, d.members = text, skipBlank(text, 0), d.buf[:0], d.members[:0]
	d.value()
	sum := sha256.Sum256(d.buf)
	if d.text = nil; cap(d.buf) <= keepDigest {
		jsonDigests.Put(d)
	}
	return sum
}

// keepDigest bounds the memory that is kept for the next text, in bytes.
const keepDigest = 64 << 10

var jsonDigests = sync.Pool{New: func() any { return new(jsonDigest) }}

// jsonDigest appends the canonical form of value after value to buf.
type jsonDigest struct {
	text    []byte
	at      int
	buf     []byte
	members []jsonMember // of the objects being read, innermost last
}

// jsonMember says where a member stands in buf.
type jsonMember struct{ start, nameEnd, end int }

func (d *jsonDigest) value() {
	start := d.at
	switch c := d.text[start]; c {
	case '{':
		d.object()
	case '[':
		d.array()
	case '"':
		d.at = skipString(d.text, start)
		d.string(d.text[start:d.at])
	case 't', 'f', 'n':
		d.at = skipValue(d.text, start)
		d.buf = append(d.buf, c)
	default:
		d.at = skipValue(d.text, start)
		d.number(string(d.text[start:d.at]))
	}
}

// string is a part, so that its end is known without escapes.
func (d *jsonDigest) string(raw []byte) {
	text := raw[1 : len(raw)-1]
	if bytes.IndexByte(raw, '\\') >= 0 {
		text, _ = jsontext.AppendUnquote(nil, raw)
	}
	d.buf = append(d.buf, 's')
	d.buf = strconv.AppendInt(d.buf, int64(len(text)), 10)
	d.buf = append(d.buf, ':')
	d.buf = append(d.buf, text...)
}

func (d *jsonDigest) number(literal string) {
	n, ok := parseDecimalLiteral(literal)
	if !ok {
		d.buf = append(d.buf, 'x')
		d.buf = append(d.buf, literal...)
		d.buf = append(d.buf, ';')
		return
	}
	d.buf = append(d.buf, 'd')
	if n.negative {
		d.buf = append(d.buf, '-')
	}
	d.buf = append(d.buf, n.digits...)
	d.buf = append(d.buf, 'e')
	d.buf = strconv.AppendInt(d.buf, n.exponent, 10)
	d.buf = append(d.buf, ';')
}

func (d *jsonDigest) array() {
	start := len(d.buf)
	d.at = skipBlank(d.text, d.at+1)
	for d.text[d.at] != ']' {
		d.value()
		d.next()
	}
	d.at++
	d.fold('a', start, start)
}

func (d *jsonDigest) object() {
	start, outer := len(d.buf), len(d.members)
	d.at = skipBlank(d.text, d.at+1)
	for d.text[d.at] != '}' {
		m := jsonMember{start: len(d.buf)}
		nameStart := d.at
		d.at = skipString(d.text, nameStart)
		d.string(d.text[nameStart:d.at])
		m.nameEnd = len(d.buf)
		d.at = skipBlank(d.text, skipBlank(d.text, d.at)+1)
		d.value()
		m.end = len(d.buf)
		d.members = append(d.members, m)
		d.next()
	}
	d.at++
	members := d.members[outer:]
	byName := func(a, b jsonMember) int {
		return bytes.Compare(d.buf[a.start:a.nameEnd], d.buf[b.start:b.nameEnd])
	}
	sorted := start
	if !slices.IsSortedFunc(members, byName) {
		slices.SortStableFunc(members, byName)
		sorted = len(d.buf)
		for _, m := range members {
			d.buf = append(d.buf, d.buf[m.start:m.end]...)
		}
	}
	d.members = d.members[:outer]
	d.fold('o', start, sorted)
}

// next steps over the comma behind a value, if there is one.
func (d *jsonDigest) next() {
	d.at = skipBlank(d.text, d.at)
	if d.text[d.at] == ',' {
		d.at = skipBlank(d.text, d.at+1)
	}
}

// fold replaces what stands in buf from start by the hash of buf[from:].
func (d *jsonDigest) fold(kind byte, start, from int) {
	digest := sha256.Sum256(d.buf[from:])
	d.buf = append(append(d.buf[:start], kind), digest[:]...)
}
