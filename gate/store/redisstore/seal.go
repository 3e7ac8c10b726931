package redisstore

import (
	"encoding/base64"
	"errors"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/slotgate/slotgate/gate/store/seal"
)

// sealer encrypts what is stored of clients: answers, subjects' and references' texts.
// Names and hashes are never sealed, for gates find things by them.
type sealer struct {
	keys          *seal.Keys
	foreign, torn sync.Once // what has been said of values that do not open
}

// answerPlace is where an answer stands: in its key's record, or beside it for twins.
func answerPlace(record string) string { return "answer " + record }

// holdPlace is where what stands at a hold of a slot does.
type holdPlace struct{ what, state, hold string }

func subjectPlace(state, hold string) holdPlace   { return holdPlace{"subject", state, hold} }
func referencePlace(state, hold string) holdPlace { return holdPlace{"reference", state, hold} }

func (p holdPlace) String() string { return p.what + " " + p.state + " " + p.hold }

// sealAnswer keeps none, which tells that the outcome is all that is known, as it is.
func (s *Store) sealAnswer(record string, answer []byte) []byte {
	switch {
	case len(answer) == 0:
		return nil
	case !s.sealer.keys.Seals():
		return answer
	}
	return s.sealer.keys.Seal(answerPlace(record), answer)
}

// openAnswer is false for an answer that does not open: it is as good as lost.
func (s *Store) openAnswer(record string, answer []byte) ([]byte, bool) {
	return s.open(answerPlace(record), answer)
}

func (s *Store) open(place string, value []byte) ([]byte, bool) {
	plain, err := s.sealer.keys.Open(place, value)
	switch {
	case errors.Is(err, seal.ErrKey):
		s.sealer.foreign.Do(func() {
			s.log.Warn("the store has values sealed with a key that is not configured: stored answers are not replayed and subjects not shown; add the key to store.encrypt_old_keys")
		})
	case err != nil:
		s.sealer.torn.Do(func() {
			s.log.Error("the store has sealed values that were changed or moved: they count as lost; see who else can write to it")
		})
	}
	return plain, err == nil
}

// encodeText writes a subject or a reference: "s:" and base64 of it sealed, or, without
// a key, so that it can be read by people where it is readable at all: "t:" and the
// text, else "b:" and base64.
func (s *Store) encodeText(place holdPlace, text string) (kind, written string) {
	switch {
	case text != "" && s.sealer.keys.Seals():
		return "s:", base64.RawStdEncoding.EncodeToString(s.sealer.keys.Seal(place.String(), []byte(text)))
	case utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }):
		return "t:", text
	}
	return "b:", base64.RawStdEncoding.EncodeToString([]byte(text))
}

// decodeText is false when the text is nothing that a gate writes. One that does not
// open is "".
func (s *Store) decodeText(place holdPlace, encoded string) (string, bool) {
	kind, text, marked := strings.Cut(encoded, ":")
	switch {
	case kind == "t" && marked:
		return text, true
	case (kind == "b" || kind == "s") && marked:
		raw, err := base64.RawStdEncoding.DecodeString(text)
		if err != nil {
			return "", false
		}
		if kind == "s" {
			raw, _ = s.open(place.String(), raw)
		}
		return string(raw), true
	}
	return "", false
}
