package relief

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/slotgate/slotgate/cmd/legacybooking/booking"
	"github.com/slotgate/slotgate/deploy/bench/conf"
	"github.com/slotgate/slotgate/deploy/bench/rig"
)

const database = "bench"

// measure is one round: a fresh database, API, store and front.
func measure(ctx context.Context, r *rig.Rig, o Options, style booking.Style,
	front func(context.Context, *rig.Rig, conf.Settings) (*rig.Process, error)) (f Figures, err error) {
	postgres, err := r.Postgres(ctx)
	if err != nil {
		return f, err
	}
	defer postgres.Stop()
	if err := postgres.Create(ctx, database); err != nil {
		return f, err
	}
	// A first run makes the tables, so that the second counts none of that.
	api, _, err := startAPI(ctx, r, style, postgres.DSN(database))
	if err != nil {
		return f, err
	}
	api.Stop()
	if err := postgres.AwaitClosed(ctx, database); err != nil {
		return f, err
	}
	before, err := postgres.Transactions(ctx, database)
	if err != nil {
		return f, err
	}

	api, backend, err := startAPI(ctx, r, style, postgres.DSN(database))
	if err != nil {
		return f, err
	}
	defer api.Stop()
	target := backend
	if front != nil {
		store, err := r.Redis(ctx)
		if err != nil {
			return f, err
		}
		defer store.Stop()
		s, err := o.settings(r, backend, store.Addr)
		if err != nil {
			return f, err
		}
		proxy, err := front(ctx, r, s)
		if err != nil {
			return f, err
		}
		defer proxy.Stop()
		target = s.Listen
	}

	cpu, err := rig.TakeSnapshot()
	if err != nil {
		return f, err
	}
	seen, err := sell(ctx, o, target)
	if err != nil {
		return f, err
	}
	if err := f.read(ctx, seen, backend); err != nil {
		return f, err
	}
	now, err := rig.TakeSnapshot()
	if err != nil {
		return f, err
	}
	f.DatabaseCPU = (now.Of(postgres.PID) - cpu.Of(postgres.PID)).Seconds()
	api.Stop()
	if err := postgres.AwaitClosed(ctx, database); err != nil {
		return f, err
	}
	after, err := postgres.Transactions(ctx, database)
	f.Transactions = after - before - seen.others.booked()
	return f, err
}

// read takes over what the clients saw and what the API counted.
func (f *Figures) read(ctx context.Context, seen sale, backend string) error {
	stats, err := readStats(ctx, backend)
	if err != nil {
		return err
	}
	others := seen.others.booked()
	f.Arrived = stats.Requests.Book - others
	f.LockWaits = stats.LockWaits
	f.Booked = stats.Bookings - others
	f.HotSeconds = seen.closed.Sub(seen.opened).Seconds()
	f.HotP99 = seen.hot.p99(func(sent, answered time.Time) bool { return true })
	f.CalmP99 = seen.others.p99(func(sent, answered time.Time) bool { return answered.Before(seen.opened) })
	f.OthersP99 = seen.others.p99(func(sent, answered time.Time) bool {
		return answered.After(seen.opened) && sent.Before(seen.closed)
	})
	f.Unserved = seen.hot.unserved()
	f.answers = seen.answers()
	return nil
}

func readStats(ctx context.Context, backend string) (stats booking.Stats, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+backend+"/_stats", nil)
	if err != nil {
		return stats, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return stats, err
	}
	defer answer.Body.Close()
	return stats, json.NewDecoder(answer.Body).Decode(&stats)
}
