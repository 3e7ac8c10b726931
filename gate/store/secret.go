package store

import (
	"crypto/hkdf"
	"crypto/sha256"
)

// DeriveKey is the key for one purpose under a store's secret. It is HKDF (RFC 5869), so
// that no key tells another, nor the hashes that the secret keys in stored names.
func DeriveKey(secret, purpose string) [32]byte {
	key, err := hkdf.Key(sha256.New, []byte(secret), nil, "slotgate "+purpose, 32)
	if err != nil {
		panic("store: " + err.Error()) // 32 bytes are not too many
	}
	return [32]byte(key)
}
