package redisstore

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// reloadPause is how long what was learned of a cluster's masters is not asked again.
const reloadPause = 50 * time.Millisecond

// reloads look up a cluster's masters, one at a time however many calls fail. The
// client library does so every few seconds, and not at all when a master is dead.
type reloads struct {
	mu      sync.Mutex
	running chan struct{} // closed when the one under way has ended
	ended   time.Time
}

// lookAround looks up the masters anew after an attempt whose failure may mean that
// there are others. It returns when that is done, but leaves half of the time that ctx
// has for another attempt.
func (s *Store) lookAround(ctx context.Context) {
	if s.server != nil {
		return
	}
	end, _ := ctx.Deadline()
	patience := time.NewTimer(time.Until(end) / 2)
	defer patience.Stop()
	select {
	case <-s.reload():
	case <-patience.C:
	case <-ctx.Done():
	}
}

// reload returns a channel that is closed when the masters have been looked up.
func (s *Store) reload() <-chan struct{} {
	s.reloads.mu.Lock()
	defer s.reloads.mu.Unlock()
	if s.reloads.running != nil {
		return s.reloads.running
	}
	done := make(chan struct{})
	if time.Since(s.reloads.ended) < reloadPause {
		close(done)
		return done
	}
	s.reloads.running = done
	go func() {
		defer close(done)
		s.lookUpMasters()
		s.reloads.mu.Lock()
		defer s.reloads.mu.Unlock()
		s.reloads.running, s.reloads.ended = nil, time.Now()
	}()
	return done
}

// lookUpMasters does so for first and second attempts. The library asks one node, which
// may be the one that hangs: then it is asked again, which asks another in all
// likelihood. A failure is heard of by the next call.
func (s *Store) lookUpMasters() {
	const tries = 5
	var both sync.WaitGroup
	for _, client := range []redis.UniversalClient{s.client, s.fresh} {
		cluster, ok := client.(*redis.ClusterClient)
		if !ok {
			continue // a server alone that takes the steps of a cluster, as the models have it
		}
		both.Go(func() {
			for try := 0; try < tries && !s.lookUp(cluster); try++ {
			}
		})
	}
	both.Wait()
}

// lookUp reports whether it was in time.
func (s *Store) lookUp(client *redis.ClusterClient) bool {
	ctx, cancel := context.WithTimeout(context.Background(), s.timeout/8)
	defer cancel()
	visit := func(context.Context, *redis.Client) error { return nil }
	_ = client.ForEachMaster(ctx, visit) // which looks them up first
	return ctx.Err() == nil
}
