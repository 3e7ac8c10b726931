package gate

import (
	"fmt"
	"time"

	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

// noteLimits remembers where the limits stood, the latest word of each.
func (j *journey) noteLimits(states []store.LimitState) {
next:
	for _, s := range states {
		for i := range j.limits {
			if j.limits[i].Name == s.Name {
				j.limits[i] = s
				continue next
			}
		}
		j.limits = append(j.limits, s)
	}
}

// rateLimitFields are the RateLimit-Policy and RateLimit lines of
// draft-ietf-httpapi-ratelimit-headers-11, one each for all limits looked at. The
// quota is the bucket's size and the window the time in which it refills, so that
// what remains never exceeds the quota. They are added as lines of their own; a
// backend's lines stay.
func (j *journey) rateLimitFields() []rules.Field {
	if len(j.limits) == 0 {
		return nil
	}
	var policy, limit []byte
	for i, s := range j.limits {
		if i > 0 {
			policy, limit = append(policy, ", "...), append(limit, ", "...)
		}
		policy = fmt.Appendf(policy, `"%s";q=%d`, s.Name, s.Limit.Burst)
		if s.Limit.Count > 0 {
			window := time.Duration(float64(s.Limit.Per) * float64(s.Limit.Burst) / float64(s.Limit.Count))
			policy = fmt.Appendf(policy, `;w=%d`, wholeSeconds(window))
		}
		limit = fmt.Appendf(limit, `"%s";r=%d`, s.Name, s.Remaining)
		if s.Reset > 0 {
			limit = fmt.Appendf(limit, `;t=%d`, wholeSeconds(s.Reset))
		}
	}
	return []rules.Field{
		{Name: "RateLimit-Policy", Value: string(policy)},
		{Name: "RateLimit", Value: string(limit)},
	}
}

func wholeSeconds(d time.Duration) int64 { return max(1, int64((d+time.Second-1)/time.Second)) }
