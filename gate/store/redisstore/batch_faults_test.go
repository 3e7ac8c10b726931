package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/gate/testbed"
	"github.com/slotgate/slotgate/luascripts"
	"github.com/slotgate/slotgate/rules"
)

// crowd is how many call at the same time.
const crowd = 48

// patient is a store whose calls have time for whatever befalls them.
func patient(o *Options) { o.Timeout = time.Minute }

// together makes a call of each of a crowd and returns how they ended.
func together(call func(n int) error) (ended [crowd]error) {
	var all sync.WaitGroup
	for n := range crowd {
		all.Go(func() { ended[n] = call(n) })
	}
	all.Wait()
	return ended
}

// inOneBatch is together, but for the calls that go ahead of all others.
func (w *wire) inOneBatch(call func(n int) error) [crowd]error {
	w.Helper()
	ended := w.queueUp(call)
	w.proxy.Thaw()
	return ended()
}

// queueUp freezes the server and makes a call of each of a crowd: the first go ahead by
// themselves, and all others wait. It returns what waits for how they end.
func (w *wire) queueUp(call func(n int) error) (ended func() [crowd]error) {
	w.Helper()
	w.proxy.Freeze()
	var all sync.WaitGroup
	var errs [crowd]error
	for n := range crowd {
		if n == maxTrips {
			eventually(w.T, "calls that go ahead", func() bool { return alone() == maxTrips })
		}
		all.Go(func() { errs[n] = call(n) })
	}
	eventually(w.T, "a crowd that waits", func() bool { return waiting() == crowd-maxTrips })
	return func() [crowd]error {
		all.Wait()
		return errs
	}
}

// crowded is the n-th of a crowd, which books one slot.
func crowded(n int) *store.Decide {
	d := at("crowded", int64(n))
	d.Capacity = crowd
	return d
}

// eachHolds checks that each of the crowd has taken one unit, and no more.
func (w *wire) eachHolds() {
	w.Helper()
	slot, err := w.clear.Slot(context.Background(), query(crowded(0)))
	if err != nil || slot.Held+slot.Confirmed != crowd || len(slot.Holds) != crowd {
		w.Errorf("slot %+v, %v; want %d held", slot, err, crowd)
	}
}

func TestAScriptThatIsUnknownToABatch(t *testing.T) {
	w := newWire(t)
	if err := w.store.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := w.clear.client.ScriptFlush(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	for _, err := range together(func(n int) error {
		_, err := admitted(w.store, crowded(n))
		return err
	}) {
		if err != nil {
			t.Error(err)
		}
	}
	w.eachHolds()
	if calls := w.proxy.Requests("EVALSHA"); calls != crowd {
		t.Errorf("%d calls that only name the script, want each made so once", calls)
	}
}

// Whatever a connection had on its way when it broke is sent again, with the effect of
// once.
func TestACrowdOnAConnectionThatBreaks(t *testing.T) {
	for _, nth := range []int{1, 7, crowd - 1} {
		w := newWire(t, patient)
		cut := w.proxy.CutAfter("EVALSHA "+luascripts.Decide.SHA1, nth)
		ended := w.inOneBatch(func(n int) error {
			d := crowded(n)
			got, err := admitted(w.store, d)
			if err == nil && n%2 == 0 {
				_, err = w.store.Settle(context.Background(), settling(d, got, rules.Booked))
			}
			return err
		})
		<-cut
		for _, err := range ended {
			if err != nil {
				t.Error(err)
			}
		}
		w.eachHolds()
	}
}

// A call at which the connection breaks each time fails alone: those beside it are repeated
// without it.
func TestACallThatBreaksEveryConnection(t *testing.T) {
	w := newWire(t, patient)
	bad := at("bad", crowd)
	c := w.store.encodeDecide(w.store.secret.names.Load(), bad, slotPart{})
	theirs := fmt.Sprintf("EVALSHA %s %d %s", luascripts.Decide.SHA1, len(c.keys), c.keys[0])
	first, second := w.proxy.CutBefore(theirs, 1), w.proxy.CutBefore(theirs, 2)
	ended := w.inOneBatch(func(n int) error {
		d := crowded(n)
		if n == 0 {
			d = bad
		}
		_, err := admitted(w.store, d)
		return err
	})
	<-first
	<-second
	var failure *store.Error
	if !errors.As(ended[0], &failure) || failure.Kind != store.KindConnection || !failure.Maybe {
		t.Errorf("the bad call: %v", ended[0])
	}
	for n, err := range ended[1:] {
		if err != nil {
			t.Errorf("call %d: %v", n+1, err)
		}
	}
}

// One reply among many that is not what it should be is its own call's only.
func TestAStrangeReplyInABatch(t *testing.T) {
	for reply, want := range map[string]store.ErrorKind{
		"-LOADING Redis is loading the dataset in memory":           store.KindServer,
		"-OOM command not allowed when used memory > 'maxmemory'.":  store.KindFull,
		"-CROSSSLOT Keys in request don't hash to the same slot":    store.KindServer,
		"-NOPERM User gate has no permissions to run the 'evalsha'": store.KindServer,
		"-ERR what nobody knows":                                    store.KindReply,
		":7":                                                        store.KindReply,
		"*1\r\n*0":                                                  store.KindReply,
	} {
		w := newWire(t, patient)
		told := w.proxy.Corrupt("EVALSHA "+luascripts.Decide.SHA1, crowd/2, func([]byte) []byte { return []byte(reply + "\r\n") })
		failed := 0
		for _, err := range w.inOneBatch(func(n int) error { _, err := admitted(w.store, crowded(n)); return err }) {
			var failure *store.Error
			if errors.As(err, &failure) && failure.Kind == want {
				failed++
			} else if err != nil {
				t.Errorf("%s: %v", reply, err)
			}
		}
		<-told
		if failed != 1 {
			t.Errorf("%s: %d calls failed", reply, failed)
		}
		w.eachHolds()
	}
}

// What leads elsewhere, or cannot be read, is repeated with the effect of once, whoever it
// takes along.
func TestAReplyInABatchThatIsNotBelieved(t *testing.T) {
	for _, reply := range []string{
		"-READONLY You can't write against a read only replica.", "-MOVED 7 127.0.0.1:1", "-ASK 7 127.0.0.1:1",
		"-NOSCRIPT No matching script.", "!3", "$3\r\nabcd", "*-7", "$99999999999999999999", strings.Repeat("*1\r\n", 20),
	} {
		w := newWire(t, patient)
		told := w.proxy.Corrupt("EVALSHA "+luascripts.Decide.SHA1, crowd/2, func([]byte) []byte { return []byte(reply + "\r\n") })
		for _, err := range w.inOneBatch(func(n int) error { _, err := admitted(w.store, crowded(n)); return err }) {
			if err != nil {
				t.Errorf("%.40q: %v", reply, err)
			}
		}
		<-told
		w.eachHolds()
	}
}

// All of a crowd are told in time when the store hangs, and are served again after.
func TestACrowdAtAStoreThatHangs(t *testing.T) {
	w := newWire(t, func(o *Options) { o.Timeout = 2 * time.Second })
	if _, err := admitted(w.store, crowded(0)); err != nil {
		t.Fatal(err)
	}
	w.proxy.Freeze()
	start := time.Now()
	for _, err := range together(func(n int) error {
		_, err := w.store.Decide(context.Background(), crowded(n))
		return err
	}) {
		var failure *store.Error
		if !errors.As(err, &failure) || failure.Kind != store.KindTimeout {
			t.Errorf("a call ended with %v", err)
		}
	}
	if took := time.Since(start); took > w.store.timeout+4*grace {
		t.Errorf("it took %v", took)
	}
	w.proxy.Thaw()
	connected(t, w.store)
	for n := range crowd {
		eventually(t, "a booking", func() bool {
			_, err := admitted(w.store, crowded(n))
			return err == nil
		})
	}
	w.eachHolds()
}

// Calls that Redis refuses or fails leave those beside them alone.
func TestACrowdOfGoodAndBadCalls(t *testing.T) {
	w := newWire(t)
	torn := at("torn", 1000)
	if err := w.clear.client.HSet(t.Context(), w.store.keys.Slot(torn.Pool, torn.Slot).State, "s", "1|2|3").Err(); err != nil {
		t.Fatal(err)
	}
	ended := together(func(n int) error {
		switch n % 3 {
		case 0:
			d := *torn
			d.ID = crowded(n).ID
			_, err := w.store.Decide(context.Background(), &d)
			return err
		case 1:
			if _, err := w.store.Slot(context.Background(), store.SlotQuery{Pool: "lessons", Slot: fmt.Sprint("unseen-", n)}); err != store.ErrNoSlot {
				return fmt.Errorf("an unseen slot: %v", err)
			}
			return nil
		}
		_, err := admitted(w.store, crowded(n))
		return err
	})
	for n, err := range ended {
		var failure *store.Error
		if bad := n%3 == 0; bad != (errors.As(err, &failure) && failure.Kind == store.KindReply) || !bad && err != nil {
			t.Errorf("call %d: %v", n, err)
		}
	}
}

// A call whose caller gave up while it waited never reaches Redis.
func TestACrowdThatGivesUp(t *testing.T) {
	w := newWire(t, patient)
	ctx, cancel := context.WithCancel(t.Context())
	ended := w.queueUp(func(n int) error {
		_, err := w.store.Decide(ctx, crowded(n))
		return err
	})
	cancel()
	eventually(t, "that nobody waits", func() bool { return waiting() == 0 })
	w.proxy.Thaw()
	gone := 0
	for _, err := range ended() {
		var failure *store.Error
		if errors.As(err, &failure) && failure.Kind == store.KindTimeout && !failure.Maybe && errors.Is(err, context.Canceled) {
			gone++
		} else if err != nil {
			t.Errorf("a call ended with %v", err)
		}
	}
	if gone != crowd-maxTrips {
		t.Errorf("%d of %d calls were never sent, want all but %d", gone, crowd, maxTrips)
	}
	if slot, err := w.clear.Slot(context.Background(), query(crowded(0))); err != nil || slot.Held != maxTrips {
		t.Errorf("slot %+v, %v; want %d held", slot, err, maxTrips)
	}
}

// What is settled and decided at the same time ends as one after the other would.
func TestACrowdOfDecidesAndSettles(t *testing.T) {
	w := newWire(t)
	granted := make([]store.Decided, crowd)
	for n := range crowd {
		granted[n] = w.decide(crowded(n), decision.Admitted)
	}
	for _, err := range together(func(n int) error {
		outcome, want := rules.Booked, decision.Confirmed
		if n%2 == 0 {
			outcome, want = rules.Refused, decision.Released
		}
		settled, err := w.store.Settle(context.Background(), settling(crowded(n), granted[n], outcome))
		if err == nil && (!settled.Applied || settled.Hold != want) {
			err = fmt.Errorf("settled %+v, want %s", settled, want)
		}
		return err
	}) {
		if err != nil {
			t.Error(err)
		}
	}
	if slot, err := w.clear.Slot(context.Background(), query(crowded(0))); err != nil || slot.Confirmed != crowd/2 || slot.Held != 0 {
		t.Errorf("slot %+v, %v", slot, err)
	}
}

// Calls under way end with the store, and leave nothing behind.
func TestCloseAmongManyCalls(t *testing.T) {
	for range 5 {
		w := newWire(t)
		s := openStore(t, w.proxy.Addr())
		connected(t, s)
		started := make(chan struct{}, crowd)
		ended := make(chan [crowd]error, 1)
		go func() {
			ended <- together(func(n int) error {
				for round := 0; ; round++ {
					got, err := s.Decide(context.Background(), crowded(round*crowd+n))
					if err != nil {
						return err
					}
					if got.Verdict != decision.Admitted && got.Verdict != decision.SoldOut {
						return fmt.Errorf("verdict %s", got.Verdict)
					}
					if round == 0 {
						started <- struct{}{}
					}
				}
			})
		}()
		for range crowd {
			<-started
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		for _, err := range <-ended {
			var failure *store.Error
			if !errors.As(err, &failure) || failure.Kind != store.KindClosed {
				t.Errorf("a call ended with %v", err)
			}
		}
	}
}

// On a cluster a batch goes to one node; what that refuses because a hash slot moves, or has
// moved, is followed for each call by itself.
func TestClusterACrowdWhileItsSlotMoves(t *testing.T) {
	cluster := testbed.Cluster(t)
	s := openStore(t, "", onCluster(cluster), patient)
	moving := s.keys.Slot(crowded(0).Pool, crowded(0).Slot).State
	from, to := cluster.MasterOf(moving), cluster.Masters()[0]
	if to == from {
		to = cluster.Masters()[1]
	}
	move := cluster.StartMove(to, cluster.Slot(moving))
	ended := make(chan [crowd]error, 1)
	go func() {
		ended <- together(func(n int) error {
			d := crowded(n)
			got, err := admitted(s, d)
			if err == nil {
				_, err = s.Settle(context.Background(), settling(d, got, rules.Booked))
			}
			return err
		})
	}()
	move.Finish()
	for n, err := range <-ended {
		if err != nil {
			t.Errorf("call %d: %v", n, err)
		}
	}
	if cluster.MasterOf(moving) != to {
		t.Error("the slot has not moved")
	}
	if slot, err := s.Slot(t.Context(), query(crowded(0))); err != nil || slot.Confirmed != crowd || slot.Held != 0 {
		t.Errorf("slot %+v, %v; want %d confirmed", slot, err, crowd)
	}
}
