package degrade

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotgate/slotgate/gate/store"
)

// taker records the order in which settlements were taken.
type taker struct {
	mu    sync.Mutex
	taken []string
	err   func(id string) error
}

func (k *taker) settle(_ context.Context, s *store.Settle) (store.Settled, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.err != nil {
		if err := k.err(s.ID); err != nil {
			return store.Settled{}, err
		}
	}
	k.taken = append(k.taken, s.ID)
	return store.Settled{Applied: true}, nil
}

func (k *taker) set(err func(id string) error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.err = err
}

func newTestBacklog(k *taker) (*Backlog, *int) {
	told := 0
	return NewBacklog(k.settle, func(*store.Settle, store.Settled) { told++ }, slog.New(slog.DiscardHandler)), &told
}

func TestBacklogKeepsItsOrderThroughAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &taker{err: func(string) error { return &store.Error{Kind: store.KindConnection, Err: errors.New("down")} }}
		b, told := newTestBacklog(k)
		var want []string
		for i := range 50 {
			id := fmt.Sprint(i)
			want = append(want, id)
			if !b.Add(&store.Settle{ID: id}) {
				t.Fatal("refused with room left")
			}
		}
		time.Sleep(10 * time.Second)
		if b.Len() != 50 || len(k.taken) != 0 {
			t.Fatalf("%d wait and %d are taken while the store is down", b.Len(), len(k.taken))
		}
		k.set(nil)
		if left := b.Close(t.Context()); left != 0 {
			t.Fatalf("%d left", left)
		}
		if !slices.Equal(k.taken, want) || *told != 50 {
			t.Fatalf("taken %v, told of %d", k.taken, *told)
		}
	})
}

func TestBacklogIsBoundedAndKeepsTheOldest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &taker{err: func(string) error { return errors.New("down") }}
		b, _ := newTestBacklog(k)
		for i := range maxBacklog + 7 {
			b.Add(&store.Settle{ID: fmt.Sprint(i)})
		}
		if b.Len() != maxBacklog || b.Lost() != 7 {
			t.Fatalf("%d wait, %d lost, want %d and 7", b.Len(), b.Lost(), maxBacklog)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if left := b.Close(ctx); left != maxBacklog {
			t.Fatalf("%d left", left)
		}
	})
}

func TestBacklogLeavesOutAnswersBeforeItRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var taken []*store.Settle
		var up atomic.Bool
		b := NewBacklog(func(_ context.Context, s *store.Settle) (store.Settled, error) {
			if !up.Load() {
				return store.Settled{}, errDown
			}
			taken = append(taken, s)
			return store.Settled{}, nil
		}, func(*store.Settle, store.Settled) {}, slog.New(slog.DiscardHandler))
		large := func() *store.Settle {
			return &store.Settle{ID: "large", Keep: true, Answer: make([]byte, maxAnswers/4)}
		}
		for range 4 {
			b.Add(large())
		}
		fifth := large()
		b.Add(fifth)
		b.Add(&store.Settle{ID: "long", Slot: string(make([]byte, maxWaiting/2-4*1024))})
		if b.Add(&store.Settle{ID: "late", Slot: string(make([]byte, 2048))}) || b.Len() != 6 || b.Lost() != 1 {
			t.Fatalf("%d wait, %d lost", b.Len(), b.Lost())
		}
		if fifth.Answer == nil {
			t.Fatal("the caller's own was changed")
		}
		up.Store(true)
		b.Retry()
		synctest.Wait()
		for i, s := range taken {
			if with := len(s.Answer) > 0; with != (i < 4) {
				t.Fatalf("settlement %d of %d has an answer: %v", i, len(taken), with)
			}
		}
		if !b.Add(large()) || !b.Add(&store.Settle{ID: "late", Slot: string(make([]byte, 2048))}) {
			t.Fatal("what was taken still counts")
		}
		synctest.Wait()
		if last := taken[len(taken)-2]; len(taken) != 8 || len(last.Answer) == 0 {
			t.Fatalf("%d taken, then an answer of %d bytes", len(taken), len(last.Answer))
		}
		b.Close(t.Context())
	})
}

func TestBacklogRetriesAtOnceWhenTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &taker{err: down}
		b, _ := newTestBacklog(k)
		b.Add(&store.Settle{ID: "one"})
		time.Sleep(time.Minute) // the pause has grown to its longest
		k.set(nil)
		began := time.Now()
		b.Retry()
		synctest.Wait()
		if b.Len() != 0 || time.Since(began) != 0 {
			t.Fatalf("%d wait", b.Len())
		}
		b.Close(t.Context())
	})
}

func TestBacklogLetsOthersPassWhatIsNeverUnderstood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &taker{err: func(id string) error {
			if id == "odd" {
				return &store.Error{Kind: store.KindReply, Err: errors.New("what?")}
			}
			return nil
		}}
		b, _ := newTestBacklog(k)
		b.Add(&store.Settle{ID: "odd"})
		b.Add(&store.Settle{ID: "good"})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if left := b.Close(ctx); left != 1 || !slices.Equal(k.taken, []string{"good"}) {
			t.Fatalf("%d left, taken %v", left, k.taken)
		}
	})
}
