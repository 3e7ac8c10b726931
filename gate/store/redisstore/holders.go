package redisstore

import (
	"encoding/base64"
	"encoding/binary"
	"strings"
	"time"

	"github.com/slotgate/slotgate/gate/store"
)

// shortHash is how much of a hash tells a subject or a key among those of a slot: 66 bits.
// It is SHORT_HASH in luascripts/holders.lua.
const shortHash = 11

func shorten(hash string) string { return hash[:min(shortHash, len(hash))] }

// repeats is how long the slot is asked to give notice. A slot may be forgotten before the
// keys that were used on it, and knows nothing of them then.
func repeats(d *store.Decide) time.Duration {
	if d.Retain < d.KeyTTL {
		return 0
	}
	return d.Repeat
}

// holders are the subjects and keys that a slot knew when it was sold out, each as the
// first 64 bits of its digest.
type holders struct {
	names *names
	known map[uint64]struct{}
}

// holders reads what slot_holders in luascripts/holders.lua writes; nil where that is none,
// false where it is something else.
func (n *names) holders(packed string) (store.Holders, bool) {
	if packed == "" {
		return nil, true
	}
	hashes, ok := strings.CutPrefix(packed, "1")
	if !ok || len(hashes)%shortHash != 0 {
		return nil, false
	}
	h := &holders{n, make(map[uint64]struct{}, len(hashes)/shortHash)}
	for at := 0; at < len(hashes); at += shortHash {
		var first [8]byte
		if _, err := base64.RawURLEncoding.Decode(first[:], []byte(hashes[at:at+shortHash])); err != nil {
			return nil, false
		}
		h.known[binary.BigEndian.Uint64(first[:])] = struct{}{}
	}
	return h, true
}

// Know is part of store.Holders.
func (h *holders) Know(d *store.Decide) bool {
	if d.Subject != "" && h.has(h.names.subjectDigest(d.Subject)) {
		return true
	}
	return d.Key != "" && h.has(h.names.keyDigest(d.Group, d.Partition, d.Key))
}

func (h *holders) has(d digest) bool {
	_, ok := h.known[binary.BigEndian.Uint64(d[:8])]
	return ok
}
