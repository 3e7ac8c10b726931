package decision

import (
	"bytes"
	"encoding/binary"
	"errors"

	"github.com/slotgate/slotgate/rules"
)

// Stored is an answer as it is kept under an idempotency key and handed to
// waiting twins.
type Stored struct {
	Answer
	Outcome rules.Outcome
	// Fingerprint is that of the request which was answered. Whoever reads a
	// stored answer compares it with its own: a store that confuses two replies
	// must not show one customer another's booking.
	Fingerprint [32]byte
	// Bodyless: the body was too large to keep.
	Bodyless bool
}

// codecVersion changes when the layout does; two versions of the gate share one
// store during a rollout.
const codecVersion = 1

const flagBodyless = 1

// ErrStoredAnswer is a stored answer that cannot be read.
var ErrStoredAnswer = errors.New("the stored answer is damaged or of a newer version")

// EncodeStored packs an answer: version, flags, outcome, status (2 bytes),
// fingerprint (32 bytes), the number of fields and each name and value with
// their lengths, then the body. Fields that must not reach another request are
// left out (see replayable). A body over maxBody bytes is left out and marked.
func EncodeStored(s *Stored, maxBody int64) []byte {
	bodyless := s.Bodyless || int64(len(s.Body)) > maxBody
	size := 5 + len(s.Fingerprint) + binary.MaxVarintLen32
	var room [16]rules.Field
	kept := room[:0]
	for _, f := range s.Header {
		if replayable(f.Name, bodyless) {
			size += 2*binary.MaxVarintLen32 + len(f.Name) + len(f.Value)
			kept = append(kept, f)
		}
	}
	if !bodyless {
		size += len(s.Body)
	}
	b := make([]byte, 0, size)
	var flags byte
	if bodyless {
		flags |= flagBodyless
	}
	b = append(b, codecVersion, flags, byte(s.Outcome))
	b = binary.BigEndian.AppendUint16(b, uint16(s.Status))
	b = append(b, s.Fingerprint[:]...)
	b = binary.AppendUvarint(b, uint64(len(kept)))
	for _, f := range kept {
		b = appendText(appendText(b, f.Name), f.Value)
	}
	if !bodyless {
		b = append(b, s.Body...)
	}
	return b
}

// DecodeStored is the inverse of EncodeStored. The body is a part of b.
func DecodeStored(b []byte) (*Stored, error) {
	const head = 5 + 32
	if len(b) < head || b[0] != codecVersion {
		return nil, ErrStoredAnswer
	}
	s := &Stored{Bodyless: b[1]&flagBodyless != 0, Outcome: rules.Outcome(b[2])}
	s.Status = int(binary.BigEndian.Uint16(b[3:5]))
	copy(s.Fingerprint[:], b[5:head])
	if s.Status < 100 || s.Status > 999 {
		return nil, ErrStoredAnswer
	}
	count, n := binary.Uvarint(b[head:])
	rest := b[head+max(n, 0):]
	if n <= 0 || count > uint64(len(rest))/2 {
		return nil, ErrStoredAnswer
	}
	s.Header = make([]rules.Field, count)
	for i := range s.Header {
		var okName, okValue bool
		s.Header[i].Name, rest, okName = cutText(rest)
		s.Header[i].Value, rest, okValue = cutText(rest)
		if !okName || !okValue {
			return nil, ErrStoredAnswer
		}
	}
	s.Body = rest
	return s, nil
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func cutText(b []byte) (text string, rest []byte, ok bool) {
	length, n := binary.Uvarint(b)
	if n <= 0 || length > uint64(len(b)-n) {
		return "", nil, false
	}
	end := n + int(length)
	return string(b[n:end]), b[end:], true
}

// ownedByFirst are fields of the first exchange alone, in lower case: they set
// the state of one client, prove one login, or describe one connection or moment.
var ownedByFirst = map[string]bool{
	"date": true, "age": true, "server-timing": true, "idempotent-replayed": true, "x-request-id": true,
	"connection": true, "keep-alive": true, "transfer-encoding": true, "te": true,
	"trailer": true, "upgrade": true, "proxy-connection": true, "via": true,
	"content-length": true, // set anew from the body
	"ratelimit":      true, "ratelimit-policy": true, "clear-site-data": true,
	"alt-svc": true, "strict-transport-security": true,
}

// secretWords in a field's name mean that its value may be a credential.
var secretWords = bytes.Fields([]byte("cookie auth token csrf xsrf session secret password credential " +
	"bearer jwt api-key api_key apikey x-ratelimit gate-"))

// replayable reports whether a field of the first answer may be given to a later
// request with the same key.
func replayable(name string, bodyless bool) bool {
	var room [64]byte
	lower := room[:0]
	for _, c := range []byte(name) {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		lower = append(lower, c)
	}
	if ownedByFirst[string(lower)] {
		return false
	}
	for _, word := range secretWords {
		if bytes.Contains(lower, word) {
			return false
		}
	}
	return !bodyless || !bytes.HasPrefix(lower, []byte("content-")) || string(lower) == "content-location"
}
