package rules

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"

	"github.com/dunglas/httpsfv"
)

// maxKey is the length of an idempotency key in characters.
const maxKey = 255

// KeySource says where a key comes from.
type KeySource uint8

const (
	NoKey      KeySource = iota
	KeySent              // by the client
	KeyIssued            // handed out with the booking page, and brought back
	KeyDerived           // from the request itself
)

// What the client did not make up begins with a word and a blank, as no key that was sent
// can.
const (
	issuedPrefix  = "issued "
	derivedPrefix = "derived "
)

// KeySourceOf tells where a key of Facts comes from.
func KeySourceOf(key string) KeySource {
	switch {
	case key == "":
		return NoKey
	case strings.HasPrefix(key, issuedPrefix):
		return KeyIssued
	case strings.HasPrefix(key, derivedPrefix):
		return KeyDerived
	}
	return KeySent
}

// idempotencyKey reads the first key source that is present.
func (x *Extraction) idempotencyKey(f *Facts) (string, *Refusal) {
	for i := range x.rule.key {
		s := &x.rule.key[i]
		if s.issued {
			if id := x.issuedID(s.Name, f); id != "" {
				return issuedKey(id, f), nil
			}
			continue
		}
		if s.Source == FromHeader && countHeader(x.req.Header, s.Name) > 1 {
			return "", refuse(RefuseKeyInvalid, "the header %s is sent more than once", s.Name)
		}
		value, found, ok, refusal := x.text(s)
		if refusal != nil {
			return "", refusal
		}
		if !found {
			continue
		}
		if s.Source == FromHeader {
			value, ok = unquoteKey(value)
		}
		if !ok || !isKey(value) {
			return "", refuse(RefuseKeyInvalid, "the key in %s is not 1 to %d visible ASCII characters", s.label, maxKey)
		}
		return value, nil
	}
	if !x.rule.Idempotency.Required {
		return "", nil
	}
	for i := range x.rule.key {
		if s := &x.rule.key[i]; s.issued {
			return "", refuse(RefuseKeyMissing, "the request needs the id that came with its page, in %s: load the page again", s.label)
		}
	}
	return "", refuse(RefuseKeyMissing, "the request needs a key in %s", x.rule.key[0].label)
}

// issuedID is the good id of a cookie for what the request is about.
func (x *Extraction) issuedID(cookie string, f *Facts) string {
	if x.req.Issued == nil {
		return ""
	}
	pool := ""
	if x.rule.Pool != nil {
		pool = x.rule.Pool.Name
	}
	return x.req.Issued.ID(cookie, f.Group, pool, f.Slot)
}

// issuedKey is the key that an id is for one subject: browsers have one cookie for all
// tabs, and in two of them two subjects may be booked for.
func issuedKey(id string, f *Facts) string {
	subject := sha256.Sum256([]byte(f.Subject))
	return issuedPrefix + id + " " + base64.RawURLEncoding.EncodeToString(subject[:16])
}

// derives reports whether a request without a key is to be known again by what it says.
func (r *Rule) derives(f *Facts) bool {
	return f.Key == "" && r.Idempotency != nil && r.Idempotency.Derive > 0 && f.Subject != ""
}

// derivedKey stands for subject, slot, method and all that the fingerprint holds.
func derivedKey(f *Facts) string {
	return derivedPrefix + base64.RawURLEncoding.EncodeToString(f.Fingerprint[:])
}

// unquoteKey makes the bare and the quoted form one key. The quoted form is a String
// of RFC 9651, 3.3.3, without parameters.
func unquoteKey(value string) (string, bool) {
	if !strings.HasPrefix(value, `"`) {
		return value, true
	}
	item, err := httpsfv.UnmarshalItem([]string{value})
	if err != nil || len(item.Params.Names()) > 0 {
		return "", false
	}
	text, ok := item.Value.(string)
	return text, ok
}

func isKey(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] <= ' ' || s[i] >= 0x7f {
			return false
		}
	}
	return 0 < len(s) && len(s) <= maxKey
}
