package redisstore

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"
)

func TestATimedContextEndsInTime(t *testing.T) {
	ctx, timed := within(t.Context(), 20*time.Millisecond)
	defer timed.stop()
	if err := ctx.Err(); err != nil {
		t.Errorf("at first: %v", err)
	}
	var waiting sync.WaitGroup
	for range 8 {
		waiting.Go(func() {
			<-ctx.Done()
			if err := ctx.Err(); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("who waited: %v", err)
			}
		})
	}
	waiting.Wait()
	if end, bounded := ctx.Deadline(); !bounded || time.Now().Before(end) {
		t.Errorf("it ended before %v", end)
	}
}

func TestATimedContextThatNobodyWaitsForEndsInTime(t *testing.T) {
	ctx, timed := within(t.Context(), -time.Nanosecond)
	defer timed.stop()
	if err := ctx.Err(); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

func TestATimedContextEndsWithItsCaller(t *testing.T) {
	for _, waits := range []bool{false, true} {
		caller, leave := context.WithCancel(t.Context())
		whole, timed := within(caller, time.Hour)
		defer timed.stop()
		part, timed := within(whole, time.Minute)
		defer timed.stop()
		if waits {
			whole.Done()
			part.Done()
		}
		leave()
		for _, ctx := range []context.Context{whole, part} {
			if waits {
				<-ctx.Done()
			}
			if err := ctx.Err(); !errors.Is(err, context.Canceled) {
				t.Errorf("waits %t: %v", waits, err)
			}
		}
	}
}

// A part of a call's time is no longer than the whole, nor than what the caller gives.
func TestATimedContextKeepsTheEarlierEnd(t *testing.T) {
	caller, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	given, _ := caller.Deadline()
	whole, timed := within(caller, time.Hour)
	defer timed.stop()
	part, timed := within(whole, time.Hour)
	defer timed.stop()
	if end, _ := part.Deadline(); !end.Equal(given) {
		t.Errorf("it ends at %v, the caller's time at %v", end, given)
	}
}

func TestATimedContextThatIsStopped(t *testing.T) {
	ctx, timed := within(t.Context(), time.Hour)
	done := ctx.Done()
	timed.stop()
	<-done
	if err := ctx.Err(); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
