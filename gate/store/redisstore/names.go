package redisstore

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"hash"
	"sync"
)

// names hashes what must not be readable in the store. It is safe for concurrent
// use.
type names struct {
	secret string
	macs   sync.Pool
}

func newNames(secret string) *names {
	n := &names{secret: secret}
	n.macs.New = func() any { return &keyedHash{mac: hmac.New(sha256.New, []byte(secret))} }
	return n
}

// keyedHash is a hash with room for what goes in and what comes out.
type keyedHash struct {
	mac     hash.Hash
	in, out []byte
}

// hash is HMAC-SHA-256 over the parts, each behind its length so that no two lists
// meet, cut to 128 bits, in base64url.
func (n *names) hash(parts ...string) string {
	h := n.macs.Get().(*keyedHash)
	defer n.macs.Put(h)
	h.in = h.in[:0]
	for _, part := range parts {
		h.in = binary.BigEndian.AppendUint32(h.in, uint32(len(part)))
		h.in = append(h.in, part...)
	}
	h.mac.Reset()
	h.mac.Write(h.in)
	h.out = h.mac.Sum(h.out[:0])
	var text [22]byte
	base64.RawURLEncoding.Encode(text[:], h.out[:16])
	return string(text[:])
}

func (n *names) key(group, partition, key string) string {
	return n.hash("key", group, partition, key)
}

// scope and subject are "" for none.
func (n *names) scope(scope string) string {
	if scope == "" {
		return ""
	}
	return n.hash("scope", scope)
}

func (n *names) subject(subject string) string {
	if subject == "" {
		return ""
	}
	return n.hash("subject", subject)
}

func (n *names) reference(pool, reference string) string { return n.hash("reference", pool, reference) }

func (n *names) client(address string) string { return n.hash("client", address) }
