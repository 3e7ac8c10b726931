package upstream

import (
	"bufio"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slotgate/slotgate/gate"
)

// A time-out leaves nothing behind: no goroutine, no connection, no memory.
func TestTimeoutsLeaveNothing(t *testing.T) {
	const within = 20 * time.Millisecond
	b := startBackend(t, func(c net.Conn, _ *bufio.Reader, _ int) { wait(c) })
	c := newClient(t, b.addr, func(o *Options) { o.Timeout, o.IdleTimeout, o.ConnectTimeout = within, within, 10*time.Second })
	long := strings.Repeat("x", 2*joinBelow) // is listened to while it is written
	batch := func(rounds int) {
		var all sync.WaitGroup
		for range 12 {
			all.Go(func() {
				for n := range rounds {
					r := request("POST", "/", "x")
					if n%2 == 1 {
						r.Body = []byte(long)
					}
					var err error
					if n/2%2 == 0 {
						_, err = c.Forward(&gate.Forward{Request: r, SendBy: time.Now().Add(10 * time.Second), Timeout: within, Limit: 1 << 20})
					} else {
						_, _, err = askPass(c, r, within)
					}
					// On a busy machine the time may be over before the first byte.
					if failure := failureOf(err); failure != gate.TimedOut && failure != gate.NotConnected {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
	}
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC() // pools are emptied by the second
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	settled := func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return len(b.open) == 0
	}
	batch(4)
	until(t, "without a connection", settled)
	goroutines, before := runtime.NumGoroutine(), heap()
	batch(40)
	until(t, "without a connection", settled)
	if n := len(c.gated.inUse) + len(c.open.inUse) + len(c.gated.idle) + len(c.open.idle); n != 0 {
		t.Errorf("%d connections are left", n)
	}
	until(t, "back at the number of goroutines", func() bool { return runtime.NumGoroutine() <= goroutines })
	if after := heap(); after > before+256<<10 {
		t.Errorf("480 time-outs left %d KiB", (after-before)>>10)
	}
}
