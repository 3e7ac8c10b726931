package issue

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"time"

	"github.com/slotgate/slotgate/rules"
)

// RedirectGrace is how long after a booking that was answered by a redirect its id is
// still that of the page: the page that is led to may be the same.
const RedirectGrace = 10 * time.Second

// ClockSkew is by how much the clocks of gates may differ. The record of a booking with an
// id has to be kept for so much longer than the ttl.
const ClockSkew = time.Minute

// ID is a one-time request id. Times are whole seconds of the gates' clocks.
type ID struct {
	Text   string // 128 random bits, 22 characters of base64url
	Issued time.Time
	Spent  time.Time // from when on the page gets another; zero: not spent
}

// NewID makes one.
func NewID(now time.Time) ID {
	var random [idSize]byte
	rand.Read(random[:]) // never fails
	return ID{Text: encoding.EncodeToString(random[:]), Issued: now}
}

// Good reports whether the id may be a key.
func (id ID) Good(now time.Time, ttl time.Duration) bool {
	return now.Before(id.Issued.Add(ttl)) && !id.Issued.After(now.Add(ClockSkew))
}

// Fresh reports whether a page that is fetched with the id needs no other.
func (id ID) Fresh(now time.Time, ttl time.Duration) bool {
	if !id.Spent.IsZero() {
		return now.Before(id.Spent) && id.Good(now, ttl)
	}
	return id.Good(now, ttl/2)
}

// Spend says from when on the page gets another id, unless it is to get one sooner; false
// when that changes nothing.
func (id *ID) Spend(from time.Time) bool {
	from = from.Truncate(time.Second)
	if !id.Spent.IsZero() && !from.Before(id.Spent) {
		return false
	}
	id.Spent = from
	return true
}

// Binding is what an id is for.
type Binding struct {
	Cookie            string // as configured
	Group, Pool, Slot string
}

// BindingOf is what a page's id is for.
func BindingOf(p rules.Page) Binding {
	b := Binding{Cookie: p.Rule.Idempotency.Issue.Cookie, Group: p.Rule.Idempotency.Group, Slot: p.Slot}
	if p.Rule.Pool != nil {
		b.Pool = p.Rule.Pool.Name
	}
	return b
}

// Name is the name of the cookie: the configured one, and what the id is for.
func (b Binding) Name() string {
	sum := sha256.Sum256(b.append(nil))
	return b.Cookie + "_" + encoding.EncodeToString(sum[:nameSize])
}

// append writes each part behind its length, so that no two bindings meet.
func (b Binding) append(text []byte) []byte {
	for _, part := range []string{b.Cookie, b.Group, b.Pool, b.Slot} {
		text = binary.BigEndian.AppendUint32(text, uint32(len(part)))
		text = append(text, part...)
	}
	return text
}

// Key signs ids.
type Key [32]byte

// A cookie's value is, in base64url, the id, the seconds at which it was issued and is
// spent (0: not), and the first half of an HMAC-SHA-256 over these and the binding.
const (
	idSize   = 16
	timeSize = 5
	macSize  = 16
	size     = idSize + 2*timeSize + macSize
	nameSize = 9
)

var encoding = base64.RawURLEncoding.Strict() // one spelling of each value

// Seal is the cookie's value.
func (k Key) Seal(b Binding, id ID) string {
	value := make([]byte, 0, size)
	value, _ = encoding.AppendDecode(value, []byte(id.Text))
	value = appendTime(value, id.Issued)
	value = appendTime(value, id.Spent)
	return encoding.EncodeToString(append(value, k.mac(b, value)...))
}

// Open reads a cookie's value; false for one that was not sealed with the key for b.
func (k Key) Open(b Binding, value string) (ID, bool) {
	id, raw, ok := read(value)
	signed, mac := raw[:size-macSize], raw[size-macSize:]
	return id, ok && hmac.Equal(mac, k.mac(b, signed))
}

func (k Key) mac(b Binding, signed []byte) []byte {
	mac := hmac.New(sha256.New, k[:])
	mac.Write(signed)
	mac.Write(b.append(nil))
	return mac.Sum(nil)[:macSize]
}

// read takes a value apart without believing it.
func read(value string) (id ID, raw [size]byte, ok bool) {
	if encoding.DecodedLen(len(value)) != size {
		return id, raw, false
	}
	if _, err := encoding.Decode(raw[:], []byte(value)); err != nil {
		return id, raw, false
	}
	id.Text = encoding.EncodeToString(raw[:idSize])
	id.Issued = timeOf(raw[idSize:])
	if spent := timeOf(raw[idSize+timeSize:]); spent.Unix() != 0 {
		id.Spent = spent
	}
	return id, raw, true
}

func appendTime(b []byte, t time.Time) []byte {
	seconds := int64(0)
	if !t.IsZero() {
		seconds = t.Unix()
	}
	var wide [8]byte
	binary.BigEndian.PutUint64(wide[:], uint64(seconds))
	return append(b, wide[8-timeSize:]...)
}

func timeOf(b []byte) time.Time {
	var wide [8]byte
	copy(wide[8-timeSize:], b[:timeSize])
	return time.Unix(int64(binary.BigEndian.Uint64(wide[:])), 0)
}
