package truth

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
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

// guard is a breaker around a source, so that one which is down costs nobody its
// time-out.
type guard struct {
	breaker *gobreaker.TwoStepCircuitBreaker[struct{}]
}

func newGuard(pool string) guard {
	jitter := rand.N(breakerOpenFor / 5) // gates of one outage do not come back in step
	return guard{gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
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

// call makes one call of the source, or fails at once while the breaker is open.
func (g *guard) call(ctx context.Context, timeout time.Duration, f func(context.Context) error) error {
	done, err := g.breaker.Allow()
	if err != nil {
		return fmt.Errorf("the source has failed %d times in a row and is left alone for a moment: %w", breakerFailures, err)
	}
	// A probe that never reports would leave the breaker half-open for ever.
	err = errors.New("the call panicked")
	defer func() { done(err) }()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err = f(ctx)
	return err
}

// read is one read of a slot's value, within the source's time-out.
func (p *Pool) read(ctx context.Context, slot string) (v source.Value, err error) {
	err = p.guard.call(ctx, p.truth.Timeout, func(ctx context.Context) (err error) {
		v, err = p.source.Read(ctx, slot)
		return err
	})
	return v, err
}

// bookings is one read of a slot's list.
func (p *Pool) bookings(ctx context.Context, slot string) (list []source.Booking, err error) {
	err = p.guard.call(ctx, p.truth.Timeout, func(ctx context.Context) (err error) {
		list, err = p.lister.Bookings(ctx, slot)
		return err
	})
	return list, err
}
