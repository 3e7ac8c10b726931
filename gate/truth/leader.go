package truth

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/slotgate/slotgate/gate/store"
)

// leadership is one gate's part in the election of its pool's leader: a lock in the
// store that lives for three quarters of the lease and is renewed, or asked for,
// every quarter. So it is never without a holder for longer than a lease.
type leadership struct {
	store store.Truth
	pool  string
	who   string
	ttl   time.Duration
	every time.Duration
	log   *slog.Logger

	mu    sync.Mutex
	fence int64     // 0: not leading
	until time.Time // by this process's monotonic clock, counted from before the call
}

func newLeadership(s store.Truth, pool, who string, lease time.Duration, log *slog.Logger) *leadership {
	return &leadership{store: s, pool: pool, who: who, ttl: lease * 3 / 4, every: lease / 4, log: log}
}

// holds reports whether the lead is this gate's now, as far as it can know.
func (l *leadership) holds() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fence != 0 && time.Now().Before(l.until)
}

// campaign leads whenever it can until the context ends, then resigns. While it leads
// it runs lead, with a context that ends with the term.
func (l *leadership) campaign(ctx context.Context, lead func(ctx context.Context, fence int64)) {
	var term term
	defer func() {
		term.end()
		l.resign()
	}()
	for {
		fence := l.ask(ctx)
		if fence != term.fence {
			term.end()
			term.begin(ctx, fence, lead)
		}
		if sleep(ctx, l.every) != nil {
			return
		}
	}
}

// ask takes or renews the lead and returns the fence, 0 while another leads.
func (l *leadership) ask(ctx context.Context) (fence int64) {
	asked := time.Now()
	got, ok, err := l.store.Lead(ctx, l.pool, l.who, l.ttl)
	l.mu.Lock()
	defer l.mu.Unlock()
	was := l.fence
	switch {
	case err == nil && ok:
		l.fence, l.until = got, asked.Add(l.ttl)
	case err == nil || !time.Now().Before(l.until): // lost, or not known to be kept
		l.fence = 0
	}
	if was != l.fence {
		l.log.Info("the lead of the pool's looks at truth has changed", "leads", l.fence != 0, "fence", l.fence)
	}
	return l.fence
}

// resign lets another gate lead at once. Without an answer its lease ends by itself.
func (l *leadership) resign() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	l.mu.Lock()
	led := l.fence != 0
	l.fence = 0
	l.mu.Unlock()
	if led {
		_ = l.store.Resign(ctx, l.pool, l.who)
	}
}

// term is one time of leading. The zero term is none.
type term struct {
	fence int64
	stop  context.CancelFunc
	done  chan struct{}
}

func (t *term) begin(ctx context.Context, fence int64, lead func(context.Context, int64)) {
	if fence == 0 {
		return
	}
	t.fence, t.done = fence, make(chan struct{})
	ctx, t.stop = context.WithCancel(ctx)
	go func(done chan struct{}) {
		defer close(done)
		lead(ctx, fence)
	}(t.done)
}

// end returns when nothing of the term runs any more.
func (t *term) end() {
	if t.fence != 0 {
		t.stop()
		<-t.done
	}
	*t = term{}
}
