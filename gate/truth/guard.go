package truth

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/slotgate/slotgate/gate/truth/source"
)

// Source reads what the backend's own data says of a slot. See source.Source.
type Source interface {
	Read(ctx context.Context, slot string) (source.Value, error)
}

// Lister lists a slot's bookings. See source.Lister.
type Lister interface {
	Bookings(ctx context.Context, slot string) ([]source.Booking, error)
}

// Looker looks a subject's booking up. See source.Looker.
type Looker interface {
	Booked(ctx context.Context, slot, subject string) (bool, error)
}

const (
	breakerFailures = 5
	breakerOpenFor  = 2 * time.Second
)

// guardedSource puts a breaker around a source, so that one which is down costs
// nobody its time-out.
type guardedSource struct {
	source  Source
	breaker *gobreaker.TwoStepCircuitBreaker[struct{}]
}

func newGuardedSource(pool string, s Source) guardedSource {
	jitter := rand.N(breakerOpenFor / 5) // gates of one outage do not come back in step
	return guardedSource{source: s, breaker: gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		Name:         pool,
		MaxRequests:  1,
		Timeout:      breakerOpenFor + jitter,
		ReadyToTrip:  func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= breakerFailures },
		IsSuccessful: func(err error) bool { return !away(err) },
		IsExcluded:   func(err error) bool { return errors.Is(err, context.Canceled) },
	})}
}

// away tells a source that cannot be reached, or not in time, from one that answers
// and refuses the question: any client can name a slot that a query chokes on.
func away(err error) bool {
	var network net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &network) ||
		errors.Is(err, driver.ErrBadConn) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// read is one read of the source, or an error at once while the breaker is open.
func (g *guardedSource) read(ctx context.Context, slot string) (v source.Value, err error) {
	done, err := g.breaker.Allow()
	if err != nil {
		return v, err
	}
	// A probe that never reports would leave the breaker half-open for ever.
	result := errors.New("the read panicked")
	defer func() { done(result) }()
	v, result = g.source.Read(ctx, slot)
	return v, result
}
