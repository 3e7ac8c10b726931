package chaos

import (
	"fmt"
	"slices"
)

// answerFaults are answers that are wrong whatever the database says.
func answerFaults(calls []call, t terms) (faults []string) {
	wrong := func(what string, c call) { faults = append(faults, fmt.Sprintf("%s: %v", what, c)) }
	sessions := map[string]call{}
	for _, c := range calls {
		switch {
		case c.status == 0:
			continue
		case c.status == 500 && c.outcome != "unknown", c.status > 504:
			wrong("no such answer", c)
		case c.decision == "" || c.mode == "":
			wrong("without Gate-Decision or Gate-Mode", c)
		case c.told != "" && c.told != c.student:
			wrong("the booking of another student, "+c.told, c)
		case c.decision == "replayed" && c.session != "":
			wrong("a replay with somebody's session", c)
		}
		if c.session != "" {
			if first, again := sessions[c.session]; again {
				wrong("the session of "+first.String(), c)
			}
			sessions[c.session] = c
		}
	}
	return append(faults, replayFaults(calls, t)...)
}

// replayFaults are answers to a key that was answered before. What one principal was
// told goes to nobody else, byte for byte, and no key books twice, unless the store
// forgot it or was not asked.
func replayFaults(calls []call, t terms) (faults []string) {
	byKey := map[string][]call{}
	for _, c := range calls {
		if c.action == book {
			byKey[c.key] = append(byKey[c.key], c)
		}
	}
	for _, same := range byKey {
		for _, c := range same {
			if c.verdict() != replayed {
				continue
			}
			if !slices.ContainsFunc(same, func(o call) bool { return o.principal == c.principal && o.mayHaveBooked(c.booking) }) {
				faults = append(faults, fmt.Sprintf("a replay of what its caller was never told: %v\nof%s", c, say(same)))
			}
		}
		for i, c := range same {
			if c.status != 201 {
				continue
			}
			for _, other := range same[:i] {
				switch {
				case other.status != 201 || other.body == c.body:
				case other.booking == c.booking:
					faults = append(faults, fmt.Sprintf("a replay that is not what was told: %v %s\n%v %s", other, other.body, c, c.body))
				case !t.forgetful:
					faults = append(faults, fmt.Sprintf("one key booked twice: %v\n%v", other, c))
				}
			}
		}
	}
	return faults
}

// mayHaveBooked tells whether this call, not a replay, led to that booking: it was told
// so, or nothing.
func (c *call) mayHaveBooked(booking int64) bool {
	switch c.verdict() {
	case booked:
		return booking == c.booking
	case unknown:
		return true
	}
	return false
}
