package degrade

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
	"strings"

	"github.com/slotgate/slotgate/gate/store/seal"
)

// A journal file is a header and then records:
//
//	header = "slotgate journal 1\n" mark crc
//	record = mark length crc body
//	body   = 'a' seq settlement     a settlement that waits for the store
//	       | 's' seq sealed         the same with the settlement sealed (package seal)
//	       | 'd' seq…               settlements that the store has taken
//
// length (of the body) and crc (CRC-32C of all that goes before it in the header,
// of the body in a record) are 4 bytes, big-endian; a seq is a uvarint. The mark
// is 8 random bytes of the file's own. It is where reading goes on after damage,
// and no answer that a client shaped can pass for a record.
const (
	fileTitle  = "slotgate journal 1\n"
	titleStem  = "slotgate journal "
	headerSize = len(fileTitle) + len(mark{}) + 4
	frameSize  = len(mark{}) + 4 + 4

	kindAdd    = 'a'
	kindSealed = 's'
	kindDone   = 'd'
)

type mark [8]byte

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// appendHeader starts a file under a mark of its own.
func appendHeader(b []byte) ([]byte, mark) {
	var m mark
	rand.Read(m[:])
	start := len(b)
	b = append(append(b, fileTitle...), m[:]...)
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b[start:], castagnoli)), m
}

// appendAdd appends the record of a settlement that waits.
func appendAdd(b []byte, m mark, keys *seal.Keys, e *entry) []byte {
	return appendRecord(b, m, func(b []byte) []byte {
		if !keys.Seals() {
			return appendSettle(binary.AppendUvarint(append(b, kindAdd), e.seq), e.settle)
		}
		sealed := keys.Seal(sealPlace(m, e.seq), appendSettle(nil, e.settle))
		return append(binary.AppendUvarint(append(b, kindSealed), e.seq), sealed...)
	})
}

// sealPlace is where a sealed settlement stands: one record of one file.
func sealPlace(m mark, seq uint64) string { return fmt.Sprintf("journal %x %d", m, seq) }

// appendDone appends the record of settlements that no longer wait.
func appendDone(b []byte, m mark, seqs []uint64) []byte {
	return appendRecord(b, m, func(b []byte) []byte {
		b = append(b, kindDone)
		for _, seq := range seqs {
			b = binary.AppendUvarint(b, seq)
		}
		return b
	})
}

// appendRecord appends a frame around what body appends.
func appendRecord(b []byte, m mark, body func([]byte) []byte) []byte {
	start := len(b)
	b = append(append(b, m[:]...), make([]byte, 8)...)
	b = body(b)
	frame, written := b[start:start+frameSize], b[start+frameSize:]
	binary.BigEndian.PutUint32(frame[len(m):], uint32(len(written)))
	binary.BigEndian.PutUint32(frame[len(m)+4:], crc32.Checksum(written, castagnoli))
	return b
}

// history is what a journal file tells.
type history struct {
	waiting []*entry // added and not taken, in order
	last    uint64   // the highest seq
	// torn is how many bytes at the end are no record: what a crash leaves of the
	// last write, which nobody was told had succeeded.
	torn int
	// damage is where the first bad record before a good one begins; 0 is none.
	damage int
}

var (
	errNoJournal = errors.New("not a journal of slotgate: name another file")
	errNewerFile = errors.New("written by a newer version of slotgate: run that one until nothing waits, or move the file away")
)

// replay reads a journal file. It reads what is whole before and after damage; an
// error means that the file is not for this program, or not with these keys, to touch.
func replay(file []byte, keys *seal.Keys) (history, error) {
	var h history
	m, whole, err := readHeader(file)
	switch {
	case err != nil:
		return h, err
	case whole:
	case len(file) < headerSize:
		h.torn = len(file)
		return h, nil
	default:
		h.damage = len(fileTitle)
		return h, nil
	}
	waiting := make(map[uint64]*entry)
	for at := headerSize; at < len(file); {
		body, ok := readRecord(file[at:], m)
		if !ok {
			next := nextRecord(file, at+1, m)
			if next == len(file) {
				h.torn = next - at
			} else if h.damage == 0 {
				h.damage = at
			}
			at = next
			continue
		}
		if err := h.apply(waiting, body, m, keys); err != nil {
			return h, fmt.Errorf("at byte %d: %w", at, err)
		}
		at += frameSize + len(body)
	}
	h.waiting = slices.SortedFunc(maps.Values(waiting), bySeq)
	return h, nil
}

// apply takes one record into the history.
func (h *history) apply(waiting map[uint64]*entry, body []byte, m mark, keys *seal.Keys) error {
	if len(body) == 0 {
		return errNewerFile
	}
	kind, rest := body[0], body[1:]
	switch kind {
	case kindAdd, kindSealed:
		seq, size := binary.Uvarint(rest)
		if size <= 0 {
			return errNewerFile
		}
		record, err := rest[size:], error(nil)
		if kind == kindSealed {
			if record, err = keys.Open(sealPlace(m, seq), record); err != nil {
				return fmt.Errorf("a settlement is %w: configure the key it was written with, or move the file away", err)
			}
		}
		s, err := readSettle(record)
		if err != nil {
			return err
		}
		waiting[seq] = newEntry(s, seq)
		h.last = max(h.last, seq)
	case kindDone:
		for len(rest) > 0 {
			seq, size := binary.Uvarint(rest)
			if size <= 0 {
				return errNewerFile
			}
			delete(waiting, seq)
			rest = rest[size:]
		}
	default:
		return errNewerFile
	}
	return nil
}

// readHeader returns a file's mark; false when the header is cut short or damaged.
func readHeader(file []byte) (m mark, whole bool, err error) {
	title := file[:min(len(file), len(fileTitle))]
	switch {
	case strings.HasPrefix(fileTitle, string(title)):
	case strings.HasPrefix(string(title), titleStem):
		return m, false, errNewerFile
	default:
		return m, false, errNoJournal
	}
	if len(file) < headerSize {
		return m, false, nil
	}
	sum := headerSize - 4
	copy(m[:], file[len(fileTitle):sum])
	return m, binary.BigEndian.Uint32(file[sum:]) == crc32.Checksum(file[:sum], castagnoli), nil
}

// readRecord returns the body of the record at the start of b, a part of b; false
// when there is no whole one.
func readRecord(b []byte, m mark) (body []byte, whole bool) {
	if len(b) < frameSize || !bytes.HasPrefix(b, m[:]) {
		return nil, false
	}
	length, sum := binary.BigEndian.Uint32(b[len(m):]), binary.BigEndian.Uint32(b[len(m)+4:])
	b = b[frameSize:]
	if uint64(length) > uint64(len(b)) {
		return nil, false
	}
	body = b[:length]
	return body, crc32.Checksum(body, castagnoli) == sum
}

// nextRecord is where the next whole record begins, or the end of the file.
func nextRecord(file []byte, at int, m mark) int {
	for {
		skip := bytes.Index(file[at:], m[:])
		if skip < 0 {
			return len(file)
		}
		at += skip
		if _, whole := readRecord(file[at:], m); whole {
			return at
		}
		at++
	}
}

func bySeq(a, b *entry) int { return cmp.Compare(a.seq, b.seq) }
