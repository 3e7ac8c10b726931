package memstore

import (
	"context"
	"sync"
	"time"
)

// leaders are who looks at truth, by pool. A store in one process has one gate, but
// a reload may leave two that look for a moment.
type leaders struct {
	mu    sync.Mutex
	pools map[string]leader
}

type leader struct {
	who   string // "" nobody
	until int64
	fence int64
}

// Lead takes or renews the leadership of a pool; see the package gate/store.
func (s *Store) Lead(ctx context.Context, pool, who string, ttl time.Duration) (fence int64, ok bool, err error) {
	defer s.observed("lead")(&err)
	if err := s.ready(ctx, "lead"); err != nil {
		return 0, false, err
	}
	s.leaders.mu.Lock()
	defer s.leaders.mu.Unlock()
	now, l := s.now(), s.leaders.pools[pool]
	leads := l.who != "" && l.until > now
	if leads && l.who != who {
		return l.fence, false, nil
	}
	if !leads {
		l.who = who
		l.fence++
	}
	l.until = now + int64(ttl)
	s.leaders.set(pool, l)
	return l.fence, true, nil
}

// Resign gives the leadership up if who has it.
func (s *Store) Resign(ctx context.Context, pool, who string) (err error) {
	defer s.observed("resign")(&err)
	if err := s.ready(ctx, "resign"); err != nil {
		return err
	}
	s.leaders.mu.Lock()
	defer s.leaders.mu.Unlock()
	if l := s.leaders.pools[pool]; l.who == who {
		l.who = ""
		s.leaders.set(pool, l)
	}
	return nil
}

func (l *leaders) set(pool string, to leader) {
	if l.pools == nil {
		l.pools = map[string]leader{}
	}
	l.pools[pool] = to
}
