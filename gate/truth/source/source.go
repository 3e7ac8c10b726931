package source

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

// Source reads what the backend's own data says of a slot. Safe for concurrent use.
type Source interface {
	// Read is one look. It begins after the call does, reads no cache, and ends
	// with ctx, which carries the deadline. Errors never hold a password.
	Read(ctx context.Context, slot string) (Value, error)
	// Close ends all connections. Reads that run may fail.
	Close() error
}

// Lister is a Source that lists bookings: sql with bookings.query.
type Lister interface {
	// Bookings returns all bookings of a slot as the query orders them.
	Bookings(ctx context.Context, slot string) ([]Booking, error)
}

// Looker is a Source that looks a booking up: sql with bookings.query, http with
// bookings.path.
type Looker interface {
	// Booked tells whether the subject has the slot.
	Booked(ctx context.Context, slot, subject string) (bool, error)
}

// Value is what a look found.
type Value struct {
	// Missing: there is no such slot. None: its value is NULL, or no member of the
	// answer. All else is zero then.
	Missing, None bool
	// N is the units left, below zero where more is booked than there is; under
	// means: capacity it is the units in all.
	N int64
	// Total is the units in all, store.Learned where the source does not tell.
	Total int64
}

// Booking is one booking of the backend.
type Booking struct {
	ID, Subject string
	At          time.Time // when it was made; zero where the query does not tell
}

// Options is what a source needs beside its own configuration.
type Options struct {
	// URL and TLS are the upstream's, as upstream.Options has them: a unix: URL is
	// dialed as a socket, a nil TLS verifies against the system's roots. http only.
	URL string
	TLS *tls.Config
	// Log gets what an operator should know when the source is opened; default slog.Default.
	Log *slog.Logger
}

// Open makes the source that cfg describes. It does not connect: a database that
// is down fails the looks, not the start.
func Open(cfg *rules.TruthConfig, o Options) (Source, error) {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	switch {
	case cfg.SQL != nil && cfg.HTTP == nil:
		return openSQL(cfg, o)
	case cfg.HTTP != nil && cfg.SQL == nil:
		return openHTTP(cfg, o)
	}
	return nil, errors.New("truth: want one of sql and http")
}

// meaning turns what was read into a Value.
type meaning struct {
	means string
	total int64 // of means: booked, 0 where it is read too
}

// value makes a Value of n. total is what was read beside it, store.Learned if nothing.
func (m meaning) value(n, total int64) (Value, error) {
	switch m.means {
	case rules.MeansBooked:
		if m.total > 0 {
			total = m.total
		}
		if n < 0 {
			return Value{}, fmt.Errorf("%d units booked: want 0 or more", n)
		}
		if total < 0 {
			return Value{}, fmt.Errorf("a total of %d units: want 0 or more", total)
		}
		return Value{N: total - n, Total: total}, nil // neither is negative: no overflow
	case rules.MeansCapacity:
		if n < 0 {
			return Value{}, fmt.Errorf("a capacity of %d units: want 0 or more", n)
		}
		return Value{N: n, Total: n}, nil
	}
	return Value{N: n, Total: store.Learned}, nil
}
