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

// digest is a hash cut to 128 bits.
type digest [16]byte

// text is the digest in base64url.
func (d digest) text() string {
	var text [22]byte
	base64.RawURLEncoding.Encode(text[:], d[:])
	return string(text[:])
}

// digest is HMAC-SHA-256 over the parts, each behind its length so that no two lists
// meet.
func (n *names) digest(parts ...string) digest {
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
	return digest(h.out[:len(digest{})])
}

func (n *names) hash(parts ...string) string { return n.digest(parts...).text() }

func (n *names) keyDigest(group, partition, key string) digest {
	return n.digest("key", group, partition, key)
}

func (n *names) key(group, partition, key string) string {
	return n.keyDigest(group, partition, key).text()
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
	return n.subjectDigest(subject).text()
}

func (n *names) subjectDigest(subject string) digest { return n.digest("subject", subject) }

func (n *names) reference(pool, reference string) string { return n.hash("reference", pool, reference) }

func (n *names) client(address string) string { return n.hash("client", address) }
