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
	n.macs.New = func() any { return hmac.New(sha256.New, []byte(secret)) }
	return n
}

// hash is HMAC-SHA-256 over the parts, each behind its length so that no two lists
// meet, cut to 128 bits, in base64url.
func (n *names) hash(parts ...string) string {
	mac := n.macs.Get().(hash.Hash)
	defer n.macs.Put(mac)
	mac.Reset()
	buffer := make([]byte, 0, 256)
	for _, part := range parts {
		buffer = binary.BigEndian.AppendUint32(buffer, uint32(len(part)))
		buffer = append(buffer, part...)
	}
	mac.Write(buffer)
	var sum [sha256.Size]byte
	return base64.RawURLEncoding.EncodeToString(mac.Sum(sum[:0])[:16])
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
