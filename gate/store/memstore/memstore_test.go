package memstore

import (
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/slotgate/slotgate/gate/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clock is a store's time that tests move.
type clock struct{ ns atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.ns.Store(time.Date(2030, 1, 1, 9, 0, 0, 0, time.UTC).UnixNano())
	return c
}

func (c *clock) now() time.Time          { return time.Unix(0, c.ns.Load()) }
func (c *clock) advance(d time.Duration) { c.ns.Add(int64(d)) }

func open(t testing.TB, o Options) (*Store, *clock) {
	c := newClock()
	o.Clock = c.now
	s := New(o)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, c
}

func harness(t *testing.T) *storetest.Harness {
	s, c := open(t, Options{})
	return &storetest.Harness{Store: s, Other: s, Advance: c.advance}
}

func TestContract(t *testing.T) { storetest.Run(t, harness) }

func TestModel(t *testing.T) { storetest.RunModel(t, harness) }

func TestTruth(t *testing.T) { storetest.RunTruth(t, harness) }

func TestTruthModel(t *testing.T) { storetest.RunTruthModel(t, harness) }

func TestBackend(t *testing.T) { storetest.RunBackend(t, harness) }
