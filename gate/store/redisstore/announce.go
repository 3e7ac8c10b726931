package redisstore

import (
	"context"
	"time"

	"github.com/slotgate/slotgate/luascripts"
)

// Announce notes what a gate decides by, for life; with no life, that it ends. It
// returns how many gates run, this one included, and how many of them decide by
// something else.
func (s *Store) Announce(ctx context.Context, gate, policy string, life time.Duration) (running, differing int, err error) {
	if err := checkGate(gate); err != nil {
		return 0, 0, err
	}
	raw, err := s.run(ctx, &call{op: "announce", script: luascripts.Announce,
		keys: []string{s.keys.Gates()}, args: []any{gate, policy, millis(life)}})
	if err != nil {
		return 0, 0, err
	}
	r := newReply("announce", raw, 2)
	running, differing = int(r.count()), int(r.count())
	return running, differing, r.end()
}
