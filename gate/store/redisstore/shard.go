package redisstore

import (
	"errors"
	"slices"
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
var tags = sync.OnceValue(func() []string {
	texts := make([]string, hashSlots)
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

// lowestSlot reads the reply of CLUSTER NODES: whether the node which gave it is a
// replica, and the lowest hash slot that it serves, -1 if none. One that is being moved
// away is passed over: its keys may be gone already.
func lowestSlot(nodes string) (lowest int, replica bool, err error) {
	for line := range strings.Lines(nodes) {
		fields := strings.Fields(line)
		if len(fields) < 8 {
			continue
		}
		flags := strings.Split(fields[2], ",")
		if !slices.Contains(flags, "myself") {
			continue
		}
		lowest, err = lowestOf(fields[8:])
		return lowest, slices.Contains(flags, "slave"), err
	}
	return -1, false, errors.New("CLUSTER NODES does not list the node that answered")
}

// lowestOf reads ranges of hash slots, and what is on its way: [SLOT->-NODE].
func lowestOf(ranges []string) (int, error) {
	lowest, leaving := -1, map[int]bool{}
	for _, text := range ranges {
		if slot, _, ok := strings.Cut(strings.TrimPrefix(text, "["), "->-"); ok {
			if n, err := strconv.Atoi(slot); err == nil {
				leaving[n] = true
			}
		}
	}
	for _, text := range ranges {
		if strings.HasPrefix(text, "[") {
			continue
		}
		from, to, ok := strings.Cut(text, "-")
		if !ok {
			to = from
		}
		first, err := strconv.Atoi(from)
		last, err2 := strconv.Atoi(to)
		if err != nil || err2 != nil || first < 0 || last >= hashSlots {
			return -1, errors.New("CLUSTER NODES lists the hash slots " + strconv.Quote(text))
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
