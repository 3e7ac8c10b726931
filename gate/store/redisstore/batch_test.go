package redisstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/slotgate/slotgate/gate/testbed"
)

// batchRig is a client of one server whose calls share pipelines.
type batchRig struct {
	*testing.T
	*redis.Client

	mu      sync.Mutex
	batches []int // how many calls went together each time
}

// ample is a batch's time where none is to run out.
const ample = time.Minute

func newBatchRig(t *testing.T, attempt time.Duration) *batchRig {
	return newBatchRigAt(t, testbed.Redis(t).Addr(), attempt)
}

func newBatchRigAt(t *testing.T, addr string, attempt time.Duration) *batchRig {
	r := &batchRig{T: t}
	o, err := Options{Addresses: []string{addr}, Timeout: ample}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	r.Client = redis.NewClient(o.direct(4))
	t.Cleanup(func() { r.Close() })
	newBatcher(r.Client, attempt)
	r.AddHook(r)
	return r
}

// DialHook is part of redis.Hook.
func (r *batchRig) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook is part of redis.Hook.
func (r *batchRig) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

// ProcessPipelineHook notes how many go together.
func (r *batchRig) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		r.mu.Lock()
		r.batches = append(r.batches, len(cmds)-1) // but for the PING at their end
		r.mu.Unlock()
		return next(ctx, cmds)
	}
}

func (r *batchRig) wentTogether(want ...int) {
	r.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Equal(r.batches, want) {
		r.Errorf("batches of %v went, want %v", r.batches, want)
	}
}

func (r *batchRig) call(ctx context.Context, words ...any) (any, error) {
	cmd := once{redis.NewCmd(ctx, words...), true}
	err := r.Process(ctx, cmd)
	return cmd.Val(), err
}

// outcome is how a call ended.
type outcome struct {
	reply any
	err   error
}

// start makes a call.
func (r *batchRig) start(ctx context.Context, words ...any) <-chan outcome {
	ended := make(chan outcome, 1)
	go func() {
		reply, err := r.call(ctx, words...)
		ended <- outcome{reply, err}
	}()
	return ended
}

// behind makes a call and returns when it waits behind those that do already.
func (r *batchRig) behind(ctx context.Context, words ...any) <-chan outcome {
	r.Helper()
	before := waiting()
	ended := r.start(ctx, words...)
	eventually(r.T, "a call that waits", func() bool { return waiting() == before+1 })
	return ended
}

// waiting is how many calls wait in batchers, to be sent or for the reply.
func waiting() int {
	stacks := make([]byte, 1<<20)
	for {
		n := runtime.Stack(stacks, true)
		if n < len(stacks) {
			return bytes.Count(stacks[:n], []byte("redisstore.(*batcher).await("))
		}
		stacks = make([]byte, 2*len(stacks))
	}
}

// occupy makes as many calls as go by themselves, whose replies come when they are freed.
func (r *batchRig) occupy() (free func()) {
	r.Helper()
	var occupied []<-chan outcome
	for n := range maxTrips {
		occupied = append(occupied, r.start(context.Background(), "BLPOP", fmt.Sprint("occupied-", n), 0))
	}
	r.blocked(maxTrips)
	return func() {
		r.Helper()
		for n := range maxTrips {
			r.push(fmt.Sprint("occupied-", n))
		}
		for _, ended := range occupied {
			if got := <-ended; got.err != nil {
				r.Fatal(got.err)
			}
		}
	}
}

// blocked returns when so many calls wait in the server.
func (r *batchRig) blocked(n int) {
	r.Helper()
	eventually(r.T, "calls that wait in the server", func() bool {
		info, err := r.Info(context.Background(), "clients").Result()
		return err == nil && strings.TrimSpace(infoField(info, "blocked_clients")) == fmt.Sprint(n)
	})
}

func (r *batchRig) push(list string) {
	r.Helper()
	if err := r.LPush(context.Background(), list, "x").Err(); err != nil {
		r.Fatal(err)
	}
}

func (r *batchRig) get(ended <-chan outcome, want any) {
	r.Helper()
	if got := <-ended; got.err != nil || got.reply != want {
		r.Errorf("reply %v, %v; want %v", got.reply, got.err, want)
	}
}

func (r *batchRig) fails(ended <-chan outcome) error {
	r.Helper()
	got := <-ended
	if got.err == nil {
		r.Fatalf("reply %v, want a failure", got.reply)
	}
	return got.err
}

func TestCallsThatComeMeanwhileGoTogether(t *testing.T) {
	r := newBatchRig(t, ample)
	for n := range 5 {
		if reply, err := r.call(t.Context(), "ECHO", n); err != nil || reply != fmt.Sprint(n) {
			t.Fatalf("reply %v, %v", reply, err)
		}
	}
	r.wentTogether() // each went at once
	free := r.occupy()
	var others []<-chan outcome
	for n := range 5 {
		others = append(others, r.behind(t.Context(), "ECHO", n))
	}
	r.wentTogether()
	free()
	for n, ended := range others {
		r.get(ended, fmt.Sprint(n))
	}
	r.wentTogether(5)
}

func TestEveryCallerGetsItsOwnReply(t *testing.T) {
	r := newBatchRig(t, ample)
	var calling sync.WaitGroup
	for caller := range 16 {
		calling.Go(func() {
			for n := range 200 {
				word := fmt.Sprintf("%d.%d", caller, n)
				if reply, err := r.call(t.Context(), "ECHO", word); err != nil || reply != word {
					t.Errorf("reply %v, %v; want %s", reply, err, word)
					return
				}
			}
		})
	}
	calling.Wait()
	if len(r.batches) == 0 {
		t.Error("nothing went together")
	}
}

func TestAnErrorIsItsOwnCallsOnly(t *testing.T) {
	r := newBatchRig(t, ample)
	free := r.occupy()
	ctx := t.Context()
	bad, missing, good := r.behind(ctx, "EVALSHA", "unknown", 0), r.behind(ctx, "GET", "missing"), r.behind(ctx, "ECHO", "good")
	free()
	if err := r.fails(bad); code(err) != "NOSCRIPT" {
		t.Errorf("bad: %v", err)
	}
	if err := r.fails(missing); err != redis.Nil {
		t.Errorf("missing: %v", err)
	}
	r.get(good, "good")
	r.wentTogether(3)
}

// With a reply too many in between nobody is given another's, and all are told so.
func TestRepliesOutOfStep(t *testing.T) {
	proxy := testbed.Proxy(t, testbed.Redis(t).Addr())
	r := newBatchRigAt(t, proxy.Addr(), ample)
	more := proxy.Corrupt("ECHO second", 1, func(reply []byte) []byte { return append([]byte("$4\r\nmore\r\n"), reply...) })
	free := r.occupy()
	first, second, third := r.behind(t.Context(), "ECHO", "first"), r.behind(t.Context(), "ECHO", "second"), r.behind(t.Context(), "ECHO", "third")
	free()
	<-more
	for _, ended := range []<-chan outcome{first, second, third} {
		if err := r.fails(ended); !errors.Is(err, errOutOfStep) || !mayHaveRun(err) {
			t.Errorf("a call ended with %v", err)
		}
	}
	if reply, err := r.call(t.Context(), "ECHO", "fourth"); err != nil || reply != "fourth" {
		t.Errorf("reply %v, %v", reply, err)
	}
}

// A call whose caller gave up before it was sent is never sent.
func TestACallGivenUpInTheQueueIsNeverSent(t *testing.T) {
	r := newBatchRig(t, ample)
	free := r.occupy()
	ctx, cancel := context.WithCancel(t.Context())
	given, kept := r.behind(ctx, "SET", "given", "up"), r.behind(t.Context(), "ECHO", "kept")
	cancel()
	if err := r.fails(given); !errors.Is(err, context.Canceled) || mayHaveRun(err) {
		t.Errorf("given up: %v, may have run %t", err, mayHaveRun(err))
	}
	free()
	r.get(kept, "kept")
	r.wentTogether(1)
	if n, err := r.Exists(t.Context(), "given").Result(); err != nil || n != 0 {
		t.Errorf("it was sent: %d, %v", n, err)
	}
}

// One that was sent may run, and its reply is nobody else's.
func TestACallGivenUpOnItsWay(t *testing.T) {
	r := newBatchRig(t, ample)
	free := r.occupy()
	ctx, cancel := context.WithCancel(t.Context())
	given, kept := r.behind(ctx, "BLPOP", "list", 0), r.behind(t.Context(), "ECHO", "kept")
	free()
	r.blocked(1)
	cancel()
	if err := r.fails(given); !errors.Is(err, context.Canceled) || !mayHaveRun(err) {
		t.Errorf("given up: %v, may have run %t", err, mayHaveRun(err))
	}
	r.push("list")
	r.get(kept, "kept")
}

// Callers who gave up may use again what they gave.
func TestACallGivenUpIsReadNoMore(t *testing.T) {
	r := newBatchRig(t, ample)
	var calling sync.WaitGroup
	for range 16 {
		calling.Go(func() {
			word := make([]byte, 4<<10)
			for n := range 100 {
				ctx, cancel := context.WithCancel(t.Context())
				ended := r.start(ctx, "ECHO", word)
				if n%2 == 0 {
					runtime.Gosched()
				}
				cancel()
				<-ended
				word[n]++ // which the race detector would see
			}
		})
	}
	calling.Wait()
}

// Calls do not wait for those that take long, nor do those for whom these have waited.
func TestSlowCallsStallNobody(t *testing.T) {
	r := newBatchRig(t, ample/50)
	free := r.occupy()
	for n := range 3 {
		if reply, err := r.call(t.Context(), "ECHO", n); err != nil || reply != fmt.Sprint(n) {
			t.Errorf("reply %v, %v", reply, err)
		}
	}
	r.wentTogether(1) // the others found room
	free()
	free = r.occupy() // there is as much of it as before
	other := r.behind(t.Context(), "ECHO", "other")
	free()
	r.get(other, "other")
}

// A batch that hangs costs the calls in it their time, and no others.
func TestABatchThatHangsIsAbandoned(t *testing.T) {
	const attempt = 2 * time.Second
	r := newBatchRig(t, attempt)
	free := r.occupy()
	hung, behind := r.behind(t.Context(), "BLPOP", "list", 0), r.behind(t.Context(), "ECHO", "behind")
	start := time.Now()
	free()
	r.blocked(1)
	for n := range 100 {
		if reply, err := r.call(t.Context(), "ECHO", n); err != nil || reply != fmt.Sprint(n) {
			t.Errorf("reply %v, %v", reply, err)
		}
	}
	for _, ended := range []<-chan outcome{hung, behind} {
		if err := r.fails(ended); !errors.Is(err, context.DeadlineExceeded) && !isTimeout(err) || !mayHaveRun(err) {
			t.Errorf("in a batch that hung: %v", err)
		}
	}
	if took := time.Since(start); took < attempt {
		t.Errorf("it was abandoned after %v", took)
	}
}

func isTimeout(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.As(err, &timeout) && timeout.Timeout()
}

func TestABatchIsBounded(t *testing.T) {
	r := newBatchRig(t, ample)
	free := r.occupy()
	var others []<-chan outcome
	for range maxBatch + 1 {
		others = append(others, r.start(t.Context(), "ECHO", "other"))
	}
	eventually(t, "all that wait", func() bool { return waiting() == maxBatch+1 })
	long := strings.Repeat("x", maxBatchBytes/2+1)
	for range 2 {
		others = append(others, r.behind(t.Context(), "ECHO", []byte(long)))
	}
	// One exchange ends, and takes on all that waits, while the other goes on.
	r.push("occupied-0")
	for _, ended := range others[:maxBatch+1] {
		r.get(ended, "other")
	}
	for _, ended := range others[maxBatch+1:] {
		r.get(ended, long)
	}
	r.wentTogether(maxBatch, 2, 1)
	r.push("occupied-0") // for nobody
	free()
}

func TestTheQueueIsBounded(t *testing.T) {
	r := newBatchRig(t, ample)
	free := r.occupy()
	ctx, cancel := context.WithCancel(t.Context())
	var others []<-chan outcome
	for range maxQueued {
		others = append(others, r.start(ctx, "ECHO", "other"))
	}
	eventually(t, "a full queue", func() bool { return waiting() == maxQueued })
	if _, err := r.call(t.Context(), "ECHO", "more"); !errors.Is(err, redis.ErrPoolExhausted) || mayHaveRun(err) {
		t.Errorf("one more: %v", err)
	}
	cancel()
	for _, ended := range others {
		if err := r.fails(ended); mayHaveRun(err) {
			t.Errorf("a call that was never sent: %v", err)
		}
	}
	more := r.behind(t.Context(), "ECHO", "more")
	free()
	r.get(more, "more")
	r.wentTogether(1)
}

// What was idle when the server closed it is not used, whatever it was for.
func TestAnIdleConnectionThatEnds(t *testing.T) {
	server := testbed.Redis(t)
	r := newBatchRigAt(t, server.Addr(), ample)
	admin := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer admin.Close()
	for round := range 3 {
		free := r.occupy()
		other := r.behind(t.Context(), "ECHO", round)
		free()
		r.get(other, fmt.Sprint(round))
		if reply, err := r.call(t.Context(), "ECHO", "one"); err != nil || reply != "one" {
			t.Errorf("reply %v, %v", reply, err)
		}
		if round == 1 {
			server.Kill()
			server.Restart()
		} else if err := admin.Do(t.Context(), "CLIENT", "KILL", "SKIPME", "yes", "TYPE", "normal").Err(); err != nil {
			t.Fatal(err)
		}
	}
	r.wentTogether(1, 1, 1)
}

func TestCloseEndsWhatWaitsAndWhatIsOnItsWay(t *testing.T) {
	r := newBatchRig(t, ample)
	first := r.start(t.Context(), "BLPOP", "first", 0)
	second := r.start(t.Context(), "BLPOP", "second", 0)
	r.blocked(2)
	third := r.behind(t.Context(), "ECHO", "third")
	if err := r.Client.Close(); err != nil {
		t.Error(err)
	}
	for _, ended := range []<-chan outcome{first, second} {
		if err := r.fails(ended); !mayHaveRun(err) {
			t.Errorf("on its way: %v", err)
		}
	}
	if err := r.fails(third); mayHaveRun(err) {
		t.Errorf("third: %v", err)
	}
	if _, err := r.call(t.Context(), "ECHO", "fourth"); !errors.Is(err, redis.ErrClosed) {
		t.Errorf("fourth: %v", err)
	}
}
