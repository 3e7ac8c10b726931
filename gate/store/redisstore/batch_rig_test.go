package redisstore

import (
	"bytes"
	"context"
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

// ample is a time where none is to run out.
const ample = time.Minute

// unhurried is a batcher whose times do not run out.
func unhurried() *batcher { return &batcher{attempt: ample, patience: ample} }

func newBatchRig(t *testing.T) *batchRig {
	return newBatchRigAt(t, testbed.Redis(t).Addr(), unhurried())
}

func newBatchRigAt(t *testing.T, addr string, b *batcher) *batchRig {
	r := &batchRig{T: t}
	o, err := Options{Addresses: []string{addr}, Timeout: ample}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	r.Client = redis.NewClient(o.direct(4))
	t.Cleanup(func() { r.Close() })
	b.client = r.Client
	r.AddHook(b)
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
func waiting() int { return goroutinesIn("redisstore.(*batcher).await(") }

// alone is how many calls a batcher has let go by themselves.
func alone() int {
	return goroutinesIn("redis/go-redis/v9.(*baseClient)._process(", "redisstore.(*batcher).ProcessHook.")
}

// goroutinesIn is how many goroutines are in all of these functions.
func goroutinesIn(functions ...string) (n int) {
	stacks := make([]byte, 1<<20)
	size := runtime.Stack(stacks, true)
	for size == len(stacks) {
		stacks = make([]byte, 2*len(stacks))
		size = runtime.Stack(stacks, true)
	}
	for stack := range bytes.SplitSeq(stacks[:size], []byte("\n\n")) {
		if !slices.ContainsFunc(functions, func(f string) bool { return !bytes.Contains(stack, []byte(f)) }) {
			n++
		}
	}
	return n
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
