package redisstore

import (
	"context"
	"sync"
	"time"
)

// timed is a context that ends at a time, for a call or an attempt. One of package context
// starts a timer when it is made; this one has none until somebody waits for its end, which
// most calls are over before.
//
// It is safe for concurrent use, as every context is.
type timed struct {
	context.Context // the caller's
	end             time.Time
	whole           time.Time // the end of the call that this is an attempt of

	mu     sync.Mutex
	waited context.Context // with a timer, once somebody has asked for Done
	cancel context.CancelFunc
}

// within is like context.WithTimeout: the time that a caller gives, but no more than d. The
// same is returned twice, to be used and to be stopped.
func within(ctx context.Context, d time.Duration) (context.Context, *timed) {
	t := &timed{Context: callers(ctx), end: time.Now().Add(d)}
	if given, bounded := ctx.Deadline(); bounded && given.Before(t.end) {
		t.end = given
	}
	t.whole = t.end
	if call, ok := ctx.(*timed); ok {
		t.whole = call.end
	}
	return t, t
}

// sendBy is until when a call may wait to be sent: an attempt begins when it is sent, and one
// that would be cut short is not worth it. It may take effect and yet find nobody who waits
// for it.
func sendBy(ctx context.Context) (by time.Time, bounded bool) {
	end, bounded := ctx.Deadline()
	if t, ok := ctx.(*timed); ok {
		end = t.whole
	}
	return end.Add(-firstShare(time.Until(end))), bounded
}

// callers is the context that a call was made with: it ends early only when the caller
// gives up.
func callers(ctx context.Context) context.Context {
	if t, ok := ctx.(*timed); ok {
		return t.Context
	}
	return ctx
}

// stop ends the waiting, if anybody did.
func (t *timed) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cancel != nil {
		t.cancel()
	}
}

// Deadline is part of context.Context.
func (t *timed) Deadline() (time.Time, bool) { return t.end, true }

// Done is part of context.Context.
func (t *timed) Done() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.waited == nil {
		t.waited, t.cancel = context.WithDeadline(t.Context, t.end)
	}
	return t.waited.Done()
}

// Err is part of context.Context.
func (t *timed) Err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.waited != nil:
		return t.waited.Err()
	case t.Context.Err() != nil:
		return t.Context.Err()
	case time.Now().Before(t.end):
		return nil
	}
	return context.DeadlineExceeded
}
