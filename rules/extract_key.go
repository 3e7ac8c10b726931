package rules

import (
	"strings"

	"github.com/dunglas/httpsfv"
)

// maxKey is the length of an idempotency key in characters.
const maxKey = 255

// idempotencyKey reads the first key source that is present.
func (x *extraction) idempotencyKey(required bool) (string, *Refusal) {
	for i := range x.rule.key {
		s := &x.rule.key[i]
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
	if required {
		return "", refuse(RefuseKeyMissing, "the request needs a key in %s", x.rule.key[0].label)
	}
	return "", nil
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
