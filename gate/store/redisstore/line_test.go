package redisstore

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/gate/testbed"
)

// Whoever comes, leaves and is taken in between, the rest are taken in the order of coming,
// and what has left takes no more room than what waits.
func TestALineKeepsItsOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l line
		var waiting, gone []*waiter
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 2).Draw(t, "what") {
			case 0:
				for range rapid.IntRange(1, 2*maxBatch).Draw(t, "come") {
					w := &waiter{bytes: rapid.SampledFrom([]int{0, 0, 1, maxBatchBytes / 3, 2 * maxBatchBytes}).Draw(t, "bytes")}
					if !l.join(w) {
						t.Fatal("there was no room")
					}
					waiting = append(waiting, w)
				}
			case 1:
				for range rapid.IntRange(0, len(waiting)).Draw(t, "leave") {
					i := rapid.IntRange(0, len(waiting)-1).Draw(t, "who")
					if !l.leave(waiting[i]) {
						t.Fatal("one that waits was not in line")
					}
					gone = append(gone, waiting[i])
					waiting = slices.Delete(waiting, i, i+1)
				}
			case 2:
				batch := l.take()
				most := min(maxBatch, max(usualBatch, len(waiting)/maxTrips))
				size := 0
				for _, w := range batch {
					size += w.bytes
				}
				if len(batch) > most || len(batch) > 1 && size > maxBatchBytes || len(batch) == 0 && len(waiting) > 0 {
					t.Fatalf("%d calls of %d bytes were taken of %d", len(batch), size, len(waiting))
				}
				if n := len(batch); n < len(waiting) && n < most && size+waiting[n].bytes <= maxBatchBytes {
					t.Fatalf("only %d calls of %d bytes were taken", n, size)
				}
				if !slices.Equal(batch, waiting[:len(batch)]) {
					t.Fatal("others were taken than came first")
				}
				gone = append(gone, batch...)
				waiting = slices.Delete(waiting, 0, len(batch))
			}
			if l.waiting != len(waiting) || len(l.calls) > 2*len(waiting) {
				t.Fatalf("%d wait in %d places, want %d", l.waiting, len(l.calls), len(waiting))
			}
		}
		for _, w := range gone {
			if l.leave(w) {
				t.Fatal("one that was taken, or has left, was in line")
			}
		}
	})
}

// Whoever has left makes room.
func TestAFullLineHasRoomForOneWhenOneLeaves(t *testing.T) {
	var l line
	first := new(waiter)
	for w := first; l.join(w); w = new(waiter) {
	}
	if l.waiting != maxQueued {
		t.Fatalf("%d wait, want %d", l.waiting, maxQueued)
	}
	l.leave(first)
	if !l.join(new(waiter)) || l.join(new(waiter)) {
		t.Error("there is not room for just one")
	}
}

// An attempt begins when the call is sent: until then the call keeps its place.
func TestACallKeepsItsPlaceBeyondAnAttempt(t *testing.T) {
	r := newBatchRig(t)
	free := r.occupy()
	whole, stop := within(t.Context(), ample)
	defer stop.stop()
	ctx, attempt := within(whole, 20*time.Millisecond)
	defer attempt.stop()
	first, second := r.behind(ctx, "ECHO", "first"), r.behind(ctx, "ECHO", "second")
	<-ctx.Done()
	third := r.behind(t.Context(), "ECHO", "third")
	free()
	for word, ended := range map[string]<-chan outcome{"first": first, "second": second, "third": third} {
		r.get(ended, word)
	}
	r.wentTogether(3)
}

// A call is not sent any more when there is too little time for its reply.
func TestACallThatHasWaitedTooLongIsNeverSent(t *testing.T) {
	r := newBatchRig(t)
	free := r.occupy()
	whole, stop := within(t.Context(), time.Second)
	defer stop.stop()
	ctx, attempt := within(whole, firstShare(time.Second))
	defer attempt.stop()
	err := r.fails(r.behind(ctx, "SET", "late", "x"))
	if !errors.Is(err, errUnsent) || !errors.Is(err, context.DeadlineExceeded) || mayHaveRun(err) {
		t.Errorf("it ended with %v", err)
	}
	free()
	if n, err := r.Exists(t.Context(), "late").Result(); err != nil || n != 0 {
		t.Errorf("it was sent: %d, %v", n, err)
	}
	r.wentTogether()
}

// unsent is a hook with which no script is sent.
type unsent struct{ calls int }

// DialHook is part of redis.Hook.
func (*unsent) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessPipelineHook is part of redis.Hook.
func (*unsent) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// ProcessHook is part of redis.Hook.
func (u *unsent) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(context.Context, redis.Cmder) error {
		u.calls++
		return errUnsent
	}
}

// A call that found no turn is not made again at the end of the line.
func TestACallThatWasNeverSentIsNotRepeated(t *testing.T) {
	s := openStore(t, testbed.Redis(t).Addr(), patient)
	if _, err := admitted(s, booking(0)); err != nil {
		t.Fatal(err)
	}
	hook := new(unsent)
	s.client.AddHook(hook)
	_, err := s.Decide(t.Context(), booking(1))
	var failure *store.Error
	if !errors.As(err, &failure) || failure.Kind != store.KindUnsent || failure.Maybe || hook.calls != 1 {
		t.Errorf("%d calls: %v", hook.calls, err)
	}
}

// A call that was sent ends with its batch, whatever its caller's clock says by then.
func TestACallThatWasSentEndsWithItsBatch(t *testing.T) {
	r := newBatchRig(t)
	free := r.occupy()
	ctx, timer := within(t.Context(), 2*time.Second)
	defer timer.stop()
	sent := r.behind(ctx, "BLPOP", "list", 0)
	free()
	r.blocked(1)
	<-ctx.Done()
	r.push("list")
	if o := <-sent; o.err != nil {
		t.Errorf("it ended with %v", o.err)
	}
}

// A watch that comes late itself tells nothing of the server.
func TestAWatchThatComesLateOvertakesNothing(t *testing.T) {
	ago := time.Now().Add(-2 * time.Minute)
	b := &batcher{patience: time.Minute, begun: ago, due: ago, watched: true}
	b.line.join(new(waiter))
	b.overtake()
	defer b.watchdog.Stop()
	if b.overtakes != 0 || b.line.waiting != 1 || !b.watched {
		t.Errorf("%d overtakes, %d wait, watched %t", b.overtakes, b.line.waiting, b.watched)
	}
}
