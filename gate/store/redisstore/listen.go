package redisstore

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// listenCheck is how long the notices may be silent before the connection is
	// asked whether it is still there.
	listenCheck = 2 * time.Second
	// secretCheck is how often the store is asked whether it still has the secret.
	secretCheck  = time.Minute
	firstRedial  = 50 * time.Millisecond
	longestPause = time.Second
)

// listen passes notices on to the watches until ctx ends.
func (s *Store) listen(ctx context.Context) {
	keepHearing(ctx, func() bool { return s.hear(ctx) })
}

// keepHearing hears again and again until ctx ends, at longer intervals while hear reports
// that it could not.
func keepHearing(ctx context.Context, hear func() bool) {
	pause := firstRedial
	for {
		if hear() {
			pause = firstRedial
		}
		timer := time.NewTimer(pause/2 + rand.N(pause))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		pause = min(2*pause, longestPause)
	}
}

// hear reads one connection to its end and reports whether it was ever subscribed.
func (s *Store) hear(ctx context.Context) (heard bool) {
	subscription := s.client.Subscribe(ctx, s.channel)
	defer subscription.Close()
	defer context.AfterFunc(ctx, func() { subscription.Close() })()
	var checked time.Time
	for {
		message, err := nextMessage(ctx, subscription)
		if err != nil {
			return heard
		}
		if time.Since(checked) > secretCheck {
			checked = time.Now()
			s.checkSecret(ctx)
		}
		switch m := message.(type) {
		case *redis.Subscription:
			// Whatever was said while nobody listened is lost.
			heard = true
			s.watches.fireAll()
		case *redis.Message:
			s.watches.fire(m.Payload)
		}
	}
}

// nextMessage asks whether the other side is still there when it is silent for long.
func nextMessage(ctx context.Context, subscription *redis.PubSub) (any, error) {
	message, err := subscription.ReceiveTimeout(ctx, listenCheck)
	var network net.Error
	if errors.As(err, &network) && network.Timeout() && subscription.Ping(ctx) == nil {
		return subscription.ReceiveTimeout(ctx, listenCheck)
	}
	return message, err
}
