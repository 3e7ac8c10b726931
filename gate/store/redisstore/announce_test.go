package redisstore

import (
	"testing"
	"time"

	"github.com/slotgate/slotgate/gate/testbed"
)

func TestGatesSeeWhatOthersDecideBy(t *testing.T) {
	addr := testbed.Redis(t).Addr()
	one, other := openStore(t, addr), openStore(t, addr)
	elsewhere := openStore(t, addr, withPrefix("another"))
	announce := func(s *Store, gate, policy string, life time.Duration, running, differing int) {
		t.Helper()
		r, d, err := s.Announce(t.Context(), gate, policy, life)
		if err != nil || r != running || d != differing {
			t.Fatalf("%s: %d gates, %d differ, %v; want %d and %d", gate, r, d, err, running, differing)
		}
	}
	const life = 7 * time.Second
	announce(one, "gate-a", "x", life, 1, 0)
	announce(elsewhere, "gate-e", "y", life, 1, 0)
	announce(other, "gate-b", "x", life, 2, 0)
	announce(one, "gate-c", "y", life, 3, 2)
	announce(other, "gate-b", "x", life, 3, 1)
	announce(other, "gate-b", "y", life, 3, 1) // it was given the other's
	announce(one, "gate-a", "x", 0, 2, 2)      // it stops

	advance(life-time.Second, one, other)
	announce(one, "gate-c", "y", life, 2, 0)
	advance(2*time.Second, one, other) // gate-b was killed
	announce(one, "gate-c", "y", life, 1, 0)
	if ttl, err := one.client.PTTL(t.Context(), one.keys.Gates()).Result(); err != nil || ttl <= 0 || ttl > life {
		t.Errorf("the gates live for %v, %v", ttl, err)
	}
	announce(one, "gate-c", "y", 0, 0, 0)
	if left, err := one.client.Exists(t.Context(), one.keys.Gates()).Result(); err != nil || left != 0 {
		t.Errorf("the last gate has stopped, and left %d keys, %v", left, err)
	}
	if _, _, err := one.Announce(t.Context(), "", "x", life); err == nil {
		t.Error("a gate without a name was noted")
	}
}
