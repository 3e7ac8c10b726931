package redisstore

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/slotgate/slotgate/gate/store"
)

// secretLife is how long a shared secret stays after the last gate looked at it.
const secretLife = 400 * 24 * time.Hour

// secret holds the names under the secret in use; nil until the store was asked.
type secret struct {
	configured bool
	names      atomic.Pointer[names]
	turn       chan struct{} // taken while the store is asked
}

func (s *secret) configure(text string) {
	s.turn = make(chan struct{}, 1)
	if text != "" {
		s.configured = true
		s.names.Store(newNames(text))
	}
}

// current returns the names to use, asking the store for the shared secret the
// first time.
func (s *Store) current(ctx context.Context) (*names, error) {
	if n := s.secret.names.Load(); n != nil {
		return n, nil
	}
	select {
	case s.secret.turn <- struct{}{}:
		defer func() { <-s.secret.turn }()
	case <-ctx.Done():
		return nil, s.failure("secret", ctx.Err(), false)
	}
	if n := s.secret.names.Load(); n != nil {
		return n, nil // others have asked meanwhile
	}
	if err := s.shareSecret(ctx); err != nil {
		return nil, err
	}
	return s.secret.names.Load(), nil
}

// Secret implements store.Store.
func (s *Store) Secret(ctx context.Context, purpose string) ([32]byte, error) {
	ctx, timer := within(ctx, s.timeout)
	defer timer.stop()
	n, err := s.current(ctx)
	if err != nil {
		return [32]byte{}, err
	}
	return store.DeriveKey(n.secret, purpose), nil
}

// checkSecret looks whether the store, which may be another one by now, still has
// the secret. A failure is no news: the call that needs the secret will tell.
func (s *Store) checkSecret(ctx context.Context) {
	if s.secret.configured {
		return
	}
	s.secret.turn <- struct{}{}
	defer func() { <-s.secret.turn }()
	_ = s.shareSecret(ctx)
}

// shareSecret takes the secret that stands in the store. Where none does, it puts
// there the one in use, or a new one: a store that lost its data gets the secret of
// the first gate that comes back. Whoever is second takes what stands. The caller
// has the turn.
func (s *Store) shareSecret(ctx context.Context) error {
	mine := ""
	before := s.secret.names.Load()
	if before != nil {
		mine = before.secret
	} else {
		random := make([]byte, 32)
		rand.Read(random) // never fails
		mine = hex.EncodeToString(random)
	}
	shared := mine
	err := s.try(ctx, "secret", func(ctx context.Context, client redis.UniversalClient, _ bool) error {
		standing, err := client.SetArgs(ctx, s.keys.Secret(), mine, redis.SetArgs{Mode: "NX", Get: true, TTL: secretLife}).Result()
		if errors.Is(err, redis.Nil) {
			return nil // none stood: mine does now
		}
		if err != nil {
			return err
		}
		shared = standing
		return client.PExpire(ctx, s.keys.Secret(), secretLife).Err()
	})
	if err != nil {
		return err
	}
	if before != nil && before.secret == shared {
		return nil
	}
	if before != nil {
		s.log.Warn("the store's secret has changed, keys and subjects of before are not recognised; configure store.secret to prevent this")
	}
	s.secret.names.Store(newNames(shared))
	return nil
}
