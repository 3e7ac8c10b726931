package redisstore

import (
	"errors"
	"strconv"
	"strings"
	"sync"
)

// hashSlots is how many hash slots a cluster has (Redis cluster specification, "Key
// distribution model").
const hashSlots = 16384

// keySlot is the hash slot of a key without a hash tag, or of what stands in one:
// CRC16 as of XMODEM, polynomial 0x1021, modulo hashSlots.
func keySlot(tag string) int {
	crc := uint16(0)
	for i := range len(tag) {
		crc ^= uint16(tag[i]) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return int(crc % hashSlots)
}

// tags holds a short text for each hash slot.
var tags = sync.OnceValue(func() (texts [hashSlots]string) {
	for n, missing := uint64(0), hashSlots; missing > 0; n++ {
		text := strconv.FormatUint(n, 36)
		if slot := keySlot(text); texts[slot] == "" {
			texts[slot] = text
			missing--
		}
	}
	return texts
})

// epochAt names the epoch of a shard, by the lowest hash slot it serves.
func (s *Store) epochAt(slot int) string { return s.keys.Epoch() + ":{" + tags()[slot] + "}" }

// lowestSlot reads the reply of CLUSTER NODES and returns the lowest hash slot that the
// node which gave it serves, -1 if none. One that is being moved away is passed over:
// its keys may be gone already.
func lowestSlot(nodes string) (int, error) {
	for line := range strings.Lines(nodes) {
		fields := strings.Fields(line)
		if len(fields) < 8 || !strings.Contains(fields[2], "myself") {
			continue
		}
		leaving := map[int]bool{}
		for _, field := range fields[8:] {
			if slot, _, ok := strings.Cut(strings.TrimPrefix(field, "["), "->-"); ok {
				if n, err := strconv.Atoi(slot); err == nil {
					leaving[n] = true
				}
			}
		}
		lowest := -1
		for _, field := range fields[8:] {
			if strings.HasPrefix(field, "[") {
				continue
			}
			from, to, ok := strings.Cut(field, "-")
			if !ok {
				to = from
			}
			first, err := strconv.Atoi(from)
			last, err2 := strconv.Atoi(to)
			if err != nil || err2 != nil || first < 0 || last >= hashSlots {
				return -1, errors.New("CLUSTER NODES lists the hash slots " + strconv.Quote(field))
			}
			for leaving[first] && first <= last {
				first++
			}
			if first <= last && (lowest < 0 || first < lowest) {
				lowest = first
			}
		}
		return lowest, nil
	}
	return -1, errors.New("CLUSTER NODES does not list the node that answered")
}
