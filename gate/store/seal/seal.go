// Package seal encrypts what stands in places that others may read: values in the
// store, and the journal's file.
//
// A sealed value is
//
//	"\x00s" version keyid nonce ciphertext
//
// version is "1". keyid is the first 4 bytes of the key's SHA-256: which of the keys
// opens the value. The rest is AES-256-GCM (NIST SP 800-38D) with a random nonce of 12
// bytes and a tag of 16.
//
// A value is bound to its place, a text that names where it stands: the place is the
// additional data, so that a value that was moved elsewhere does not open. Each place
// also has a key of its own, HKDF-Expand (RFC 5869) of the configured one: few values
// are ever sealed for one place, and nobody has to count the random nonces that one key
// may be used with (2^32, SP 800-38D section 8.3).
package seal

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strings"
)

const (
	mark    = "\x00s" // of every version
	version = "1"
	keySize = 32
	idSize  = 4

	nonceSize = 12
	tagSize   = 16
)

// Overhead is by how many bytes a sealed value is longer.
const Overhead = len(mark) + len(version) + idSize + nonceSize + tagSize

var (
	// ErrKey: the value is sealed with a key that is not among these, or in a newer form.
	ErrKey = errors.New("sealed with a key that is not configured")
	// ErrOpen: the value is damaged, or stands where it was not sealed for.
	ErrOpen = errors.New("sealed value is damaged or was moved")
)

// Keys seal values with the current key and open those of old ones too. They are safe
// for concurrent use. Nil Keys have none: they seal nothing and open nothing sealed.
type Keys struct {
	current *key // nil: nothing is sealed any more
	all     []*key
}

type key struct {
	id  [idSize]byte
	key []byte
}

// New takes keys as the configuration has them: 32 bytes in base64. With an empty
// current key nothing is sealed any more, and what the old ones sealed is still opened.
func New(current string, old []string) (*Keys, error) {
	k := new(Keys)
	if current != "" {
		var err error
		if k.current, err = newKey(current); err != nil {
			return nil, err
		}
		k.all = append(k.all, k.current)
	}
	for _, text := range old {
		one, err := newKey(text)
		if err != nil {
			return nil, err
		}
		k.all = append(k.all, one)
	}
	return k, nil
}

func newKey(text string) (*key, error) {
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(raw) != keySize {
		return nil, errors.New("an encryption key is not 32 bytes in base64: make one with `openssl rand -base64 32`")
	}
	sum := sha256.Sum256(raw)
	return &key{id: [idSize]byte(sum[:]), key: raw}, nil
}

// IsSealed tells a sealed value from one that was written without a key.
func IsSealed[T string | []byte](value T) bool { return strings.HasPrefix(string(value), mark) }

// Seals reports whether Seal does anything.
func (k *Keys) Seals() bool { return k != nil && k.current != nil }

// Seal encrypts a value for a place; without a key it returns the value as it is.
func (k *Keys) Seal(place string, value []byte) []byte {
	if !k.Seals() {
		return value
	}
	sealed := make([]byte, 0, Overhead+len(value))
	sealed = append(append(append(sealed, mark...), version...), k.current.id[:]...)
	nonce := sealed[len(sealed) : len(sealed)+nonceSize]
	rand.Read(nonce) // never fails
	return k.current.at(place).Seal(sealed[:len(sealed)+nonceSize], nonce, value, []byte(place))
}

// Open is the inverse of Seal. A value that is not sealed is returned as it is. The
// error is ErrKey or ErrOpen.
func (k *Keys) Open(place string, sealed []byte) ([]byte, error) {
	if !IsSealed(sealed) {
		return sealed, nil
	}
	rest, known := bytes.CutPrefix(sealed, []byte(mark+version))
	switch {
	case !known && len(sealed) > len(mark):
		return nil, ErrKey
	case len(rest) < idSize+nonceSize+tagSize:
		return nil, ErrOpen
	case k == nil:
		return nil, ErrKey
	}
	id, nonce, text := [idSize]byte(rest), rest[idSize:idSize+nonceSize], rest[idSize+nonceSize:]
	err := ErrKey
	for _, one := range k.all {
		if one.id != id {
			continue
		}
		value, failure := one.at(place).Open(nil, nonce, text, []byte(place))
		if failure == nil {
			return value, nil
		}
		err = ErrOpen
	}
	return nil, err
}

// at is the cipher of one place.
func (k *key) at(place string) cipher.AEAD {
	own, err := hkdf.Expand(sha256.New, k.key, "slotgate seal 1 "+place, keySize)
	if err != nil {
		panic(err) // only for a length that SHA-256 cannot give
	}
	block, err := aes.NewCipher(own)
	if err != nil {
		panic(err) // only for keys that are not 16, 24 or 32 bytes
	}
	sealer, err := cipher.NewGCM(block)
	if err != nil {
		panic(err) // only for ciphers whose block is not 16 bytes
	}
	return sealer
}
