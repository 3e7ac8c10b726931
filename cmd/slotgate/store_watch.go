package main

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/gate/store/redisstore"
	"github.com/slotgate/slotgate/luascripts"
	"github.com/slotgate/slotgate/rules"
)

const (
	// inspectEvery is how often the store's servers are looked at: after a failover they
	// are others.
	inspectEvery = time.Minute
	// inspectAgain is how soon after they could not be.
	inspectAgain = 5 * time.Second
	// inspectTime is how long one look may take.
	inspectTime = 2 * time.Second
)

// storeWatch looks at the servers of a Redis store now and then, on connections of its
// own, and logs what endangers bookings there, once each. Whose slots they hold it looks
// at only once: what this gate calls its pools does not change.
type storeWatch struct {
	store *redisstore.Store
	under atomic.Pointer[configured]
	log   *slog.Logger

	latest atomic.Pointer[inspected]
	said   map[string]bool // by run alone
}

// configured is a configuration and where its settings stand.
type configured struct {
	*rules.Config
	rules.Places
}

type inspected struct {
	seen store.Inspection
	at   time.Time
}

func newStoreWatch(of *redisstore.Store, config *rules.Config, places rules.Places, log *slog.Logger) *storeWatch {
	w := &storeWatch{store: of, log: log, said: map[string]bool{}}
	w.follow(config, places)
	w.latest.Store(&inspected{seen: store.Inspection{Mode: config.Store.Mode, Schema: luascripts.Schema}})
	return w
}

// follow has later looks go by another configuration.
func (w *storeWatch) follow(config *rules.Config, places rules.Places) {
	w.under.Store(&configured{config, places})
}

// Inspected implements admin.Servers.
func (w *storeWatch) Inspected() (store.Inspection, time.Time) {
	latest := w.latest.Load()
	return latest.seen, latest.at
}

// RunIDs implements admin.Servers.
func (w *storeWatch) RunIDs() []string { return w.store.RunIDs() }

// run looks until ctx ends.
func (w *storeWatch) run(ctx context.Context) {
	for {
		pause := inspectEvery
		if err := w.look(ctx); err != nil {
			pause = inspectAgain
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

// look looks once. A failure is no news: calls of the store fail, too.
func (w *storeWatch) look(ctx context.Context) error {
	looking, cancel := context.WithTimeout(ctx, inspectTime)
	defer cancel()
	under := w.under.Load()
	inspect := inspectServers
	if _, before := w.Inspected(); before.IsZero() {
		inspect = inspectStore
	}
	seen, err := inspect(looking, under.Config)
	if err != nil {
		w.log.Debug("the store's servers could not be looked at", "err", err)
		return err
	}
	w.latest.Store(&inspected{seen, time.Now()})
	standing := map[string]bool{}
	for _, warning := range storeWarnings(under.Config, under.Places, seen) {
		text := warning.String()
		if standing[text] = true; !w.said[text] {
			w.log.Warn(text)
		}
	}
	w.said = standing // what is over and comes back is said again
	return nil
}
