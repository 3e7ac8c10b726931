package redisstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// maxTrips is how many exchanges with a server go on at the same time: while one waits for
// its replies another is written.
const maxTrips = 3

// batcher is a hook of a client of one server, through which the scripts on requests' way
// share pipelines. As long as fewer than maxTrips exchanges are under way a call goes at
// once, with those that other goroutines are about to make, or on its own and without
// another goroutine; those that come meanwhile go together when one of these ends.
// Connections, and whatever befalls them, are the client's.
//
// A batch has the time of a first attempt, from when it is sent; a call that has not been
// sent keeps its place for as long as there is time for that. Calls do not wait for a batch
// that takes long: when none has begun for a while (patience), those that wait are sent over
// another connection, and what is late then counts no more.
//
// It is safe for concurrent use.
type batcher struct {
	client            *redis.Client
	attempt, patience time.Duration
	sent              atomic.Uint64 // batches so far

	mu        sync.Mutex
	trips     int       // under way, but for those that were overtaken
	begun     time.Time // when the last did
	overtakes int       // so far
	company   bool      // whether the last exchange was of several calls
	line      line
	watchdog  *time.Timer // calls overtake; nil: not yet
	due       time.Time   // when it is to
	watched   bool        // by it, as long as calls wait
}

// waiter is a call that waits, in the order of coming, or has been sent with others. Its
// command is not the caller's own, who may leave while it is written or answered.
type waiter struct {
	redis.Cmd
	bytes  int  // of answers in it
	inLine bool // guarded by the batcher

	done  chan struct{} // told once, when the call has ended
	timer *time.Timer
}

// waiters are those whose calls have ended and whose callers have gone: nobody else knows
// them any more.
var waiters = sync.Pool{New: func() any {
	w := &waiter{done: make(chan struct{}, 1), timer: time.NewTimer(time.Hour)}
	w.timer.Stop()
	return w
}}

// errUnsent is the failure of a call that was not sent, because others were ahead of it until
// its time was over. It says nothing of the server.
var errUnsent = fmt.Errorf("%w: other calls were ahead of it", redis.ErrPoolTimeout)

// NoRetry keeps the library from repeating it.
func (*waiter) NoRetry() bool { return true }

// newBatcher makes a client's scripts share pipelines.
func newBatcher(client *redis.Client, attempt time.Duration) {
	client.AddHook(&batcher{client: client, attempt: attempt, patience: attempt / 8})
}

// DialHook is part of redis.Hook.
func (b *batcher) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessPipelineHook is part of redis.Hook.
func (b *batcher) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// ProcessHook is part of redis.Hook.
func (b *batcher) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		script, ok := cmd.(once)
		if !ok || !script.shared {
			return next(ctx, cmd)
		}
		since, room := b.enter()
		if room && b.alone() {
			defer b.passOn(since)
			return next(ctx, cmd)
		}
		w := newWaiter(script.Args())
		queued := b.enqueue(w)
		if room {
			b.passOn(since)
		}
		if !queued {
			return fmt.Errorf("%w: %w", errUnsent, redis.ErrPoolExhausted)
		}
		if err := b.await(ctx, w); err != nil {
			return err
		}
		reply, err := w.Val(), w.Err()
		w.Cmd = redis.Cmd{}
		waiters.Put(w)
		script.SetVal(reply)
		return err
	}
}

// enter begins an exchange where there is room for one more.
func (b *batcher) enter() (since int, room bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if room = b.trips < maxTrips; room {
		b.trips++
		b.begun = time.Now()
	}
	return b.overtakes, room
}

// alone reports whether no call waits. Where several went together a moment ago, it lets
// goroutines run that may be about to call.
func (b *batcher) alone() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.company {
		b.mu.Unlock()
		runtime.Gosched()
		b.mu.Lock()
	}
	b.company = b.line.waiting > 0
	return !b.company
}

func (b *batcher) enqueue(w *waiter) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.line.join(w) {
		return false
	}
	if !b.watched {
		b.watch(b.patience)
	}
	return true
}

// watch has the time of the last exchange looked at after d. The batcher is locked.
func (b *batcher) watch(d time.Duration) {
	b.watched, b.due = true, time.Now().Add(d)
	if b.watchdog == nil {
		b.watchdog = time.AfterFunc(d, b.overtake)
	} else {
		b.watchdog.Reset(d)
	}
}

// newWaiter copies what a caller may use again as soon as it has left.
func newWaiter(args []any) *waiter {
	w := waiters.Get().(*waiter)
	w.bytes = 0
	for i, arg := range args {
		if answer, ok := arg.([]byte); ok {
			args[i] = bytes.Clone(answer)
			w.bytes += len(answer)
		}
	}
	w.Cmd = *redis.NewCmd(context.Background(), args...)
	return w
}

// await returns when a call has ended, or why its caller leaves it: that one must not be
// used again. One that was sent ends with its batch, which has the time of an attempt: a
// clock of the caller's own would say when this process has got to it, not when the server
// answered.
func (b *batcher) await(ctx context.Context, w *waiter) error {
	caller := callers(ctx)
	if by, bounded := sendBy(ctx); bounded {
		w.timer.Reset(time.Until(by))
		defer w.timer.Stop()
	}
	for {
		select {
		case <-w.done:
			return nil
		case <-caller.Done():
			return b.leave(w, caller.Err())
		case <-w.timer.C:
			if err := b.leaveLine(w, context.DeadlineExceeded); err != nil {
				return err
			}
		}
	}
}

// leaveLine takes a call out of the line, so that it is never sent; nil where it was sent.
func (b *batcher) leaveLine(w *waiter, why error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.line.leave(w) {
		return fmt.Errorf("%w: %w", errUnsent, why)
	}
	return nil
}

// leave is for a caller who leaves a call wherever it is. One that was sent may run; nil where
// it has ended just now.
func (b *batcher) leave(w *waiter, why error) error {
	if err := b.leaveLine(w, why); err != nil {
		return err
	}
	select {
	case <-w.done:
		return nil
	default:
		return why
	}
}

// overtake has what waits sent beside the exchanges under way, if none has begun for long. If
// it comes late itself, this process is slow, and nothing is known of the server.
func (b *batcher) overtake() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.line.waiting == 0 {
		b.watched = false
		return
	}
	late := time.Since(b.begun)
	if time.Since(b.due) > b.patience {
		late = 0
	}
	if late >= b.patience {
		b.overtakes++
		b.trips = 1
		go b.serve(b.take(), b.overtakes)
		late = 0
	}
	b.watch(b.patience - late)
}

// passOn ends an exchange that began after so many overtakes, and begins another for what
// came meanwhile.
func (b *batcher) passOn(since int) {
	if batch := b.next(since); batch != nil {
		go b.serve(batch, since)
	}
}

// next is what the exchange that has ended is followed by: nil where nothing waits, and
// after one that was overtaken.
func (b *batcher) next(since int) []*waiter {
	b.mu.Lock()
	defer b.mu.Unlock()
	if since != b.overtakes {
		return nil
	}
	if b.line.waiting == 0 {
		b.trips--
		return nil
	}
	return b.take()
}

// take begins an exchange of the calls that are sent next. The batcher is locked, and a call
// waits.
func (b *batcher) take() []*waiter {
	batch := b.line.take()
	b.begun, b.company = time.Now(), len(batch) > 1
	return batch
}

// serve sends one batch after the other until nothing waits.
func (b *batcher) serve(batch []*waiter, since int) {
	for ; batch != nil; batch = b.next(since) {
		b.send(batch)
	}
}

// errOutOfStep is the failure of calls whose replies may be each other's.
var errOutOfStep = errors.New("the server's replies are out of step with the calls")

// send returns when each call has its reply, or has failed. The last reply must be that to
// a PING: with one reply too many or too few, nobody is given another's.
func (b *batcher) send(batch []*waiter) {
	ctx, cancel := context.WithTimeout(context.Background(), b.attempt)
	defer cancel()
	mark := strconv.FormatUint(b.sent.Add(1), 36)
	last := once{Cmd: redis.NewCmd(ctx, "PING", mark)}
	cmds := make([]redis.Cmder, 0, len(batch)+1)
	for _, w := range batch {
		cmds = append(cmds, w)
	}
	pipe := b.client.Pipeline()
	_ = pipe.BatchProcess(ctx, append(cmds, last)...) // only queues them
	_, _ = pipe.Exec(ctx)                             // every call has its own error
	inStep := last.Err() == nil && last.Val() == mark
	refused := isReply(last.Err()) // as everything is while Redis loads
	for _, w := range batch {
		err := w.Err()
		if !inStep && (err == nil || isReply(err) && !refused) {
			w.SetErr(errOutOfStep)
		}
		w.done <- struct{}{}
	}
}
