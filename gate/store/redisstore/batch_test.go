package redisstore

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/slotgate/slotgate/gate/testbed"
)

func TestCallsThatComeMeanwhileGoTogether(t *testing.T) {
	r := newBatchRig(t)
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
	r := newBatchRig(t)
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
	r := newBatchRig(t)
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
	r := newBatchRigAt(t, proxy.Addr(), unhurried())
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
	r := newBatchRig(t)
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
	r := newBatchRig(t)
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

// Whoever leaves, the replies that come for it later are nobody else's.
func TestEveryCallerGetsItsOwnReplyBesideThoseWhoLeave(t *testing.T) {
	r := newBatchRig(t)
	var calling sync.WaitGroup
	for caller := range 16 {
		calling.Go(func() {
			for n := range 200 {
				word := fmt.Sprintf("%d.%d", caller, n)
				ctx, leave := context.WithCancel(t.Context())
				ended := r.start(ctx, "ECHO", word)
				stays := (caller+n)%3 > 0
				if !stays {
					runtime.Gosched()
					leave()
				}
				got := <-ended
				leave()
				if got.err == nil && got.reply != word || got.err != nil && stays {
					t.Errorf("reply %v, %v; want %s", got.reply, got.err, word)
					return
				}
			}
		})
	}
	calling.Wait()
}

// Callers who gave up may use again what they gave.
func TestACallGivenUpIsReadNoMore(t *testing.T) {
	r := newBatchRig(t)
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
	r := newBatchRigAt(t, testbed.Redis(t).Addr(), &batcher{attempt: ample, patience: 50 * time.Millisecond})
	free := r.occupy()
	for n := range 3 {
		if reply, err := r.call(t.Context(), "ECHO", n); err != nil || reply != fmt.Sprint(n) {
			t.Errorf("reply %v, %v", reply, err)
		}
	}
	r.wentTogether(1) // the others found room
	free()
	free = r.occupy() // there is as much of it as before
	if reply, err := r.call(t.Context(), "ECHO", "other"); err != nil || reply != "other" {
		t.Errorf("reply %v, %v", reply, err)
	}
	r.wentTogether(1, 1)
	free()
}

// A batch that hangs costs the calls in it their time, and no others.
func TestABatchThatHangsIsAbandoned(t *testing.T) {
	const attempt = time.Second
	r := newBatchRigAt(t, testbed.Redis(t).Addr(), &batcher{attempt: attempt, patience: ample})
	free := r.occupy()
	hung, behind := r.behind(t.Context(), "BLPOP", "list", 0), r.behind(t.Context(), "ECHO", "behind")
	start := time.Now()
	free()
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
	r := newBatchRig(t)
	free := r.occupy()
	var others []<-chan outcome
	const short = 3*maxBatch + 1
	for range short {
		others = append(others, r.start(t.Context(), "ECHO", "other"))
	}
	eventually(t, "all that wait", func() bool { return waiting() == short })
	long := strings.Repeat("x", maxBatchBytes/2+1)
	for range 2 {
		others = append(others, r.behind(t.Context(), "ECHO", []byte(long)))
	}
	// One exchange ends, and takes on all that waits, while the other goes on.
	r.push("occupied-0")
	for _, ended := range others[:short] {
		r.get(ended, "other")
	}
	for _, ended := range others[short:] {
		r.get(ended, long)
	}
	r.wentTogether(maxBatch, 86, 57, 38, 26, 17, usualBatch, usualBatch, 2, 1) // each a third of what waits
	r.push("occupied-0")                                                       // for nobody
	free()
}

func TestTheQueueIsBounded(t *testing.T) {
	r := newBatchRig(t)
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
	r := newBatchRigAt(t, server.Addr(), unhurried())
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
	r := newBatchRig(t)
	var sent []<-chan outcome
	for n := range maxTrips {
		sent = append(sent, r.start(t.Context(), "BLPOP", fmt.Sprint(n), 0))
	}
	r.blocked(maxTrips)
	waits := r.behind(t.Context(), "ECHO", "waits")
	if err := r.Client.Close(); err != nil {
		t.Error(err)
	}
	for _, ended := range sent {
		if err := r.fails(ended); !mayHaveRun(err) {
			t.Errorf("on its way: %v", err)
		}
	}
	if err := r.fails(waits); mayHaveRun(err) {
		t.Errorf("one that waits: %v", err)
	}
	if _, err := r.call(t.Context(), "ECHO", "late"); !errors.Is(err, redis.ErrClosed) {
		t.Errorf("one that comes then: %v", err)
	}
}
