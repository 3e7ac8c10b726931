package redisstore

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/gate/testbed"
)

// returned is how long after there is a new master bookings may still fail.
const returned = 1500 * time.Millisecond

// hasty is a gate's timeout as in production, so that no time is lost at a server that
// hangs, with something added for a test machine under load.
func hasty(o *Options) { o.Timeout = 500 * time.Millisecond }

// outage asks for bookings like d until they are answered again after a failure. It
// fails the test if that is late; failed returns when there is a new master.
func outage(t *testing.T, s *Store, d *store.Decide, fail, failedOver func()) {
	t.Helper()
	if _, err := admitted(s, d); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	ended := make(chan time.Time, 1)
	go func() {
		var failed bool
		for n := int64(1); time.Since(began) < time.Minute; n++ {
			again := *d
			again.ID = booking(100_000 + n).ID
			start := time.Now()
			_, err := s.Decide(context.Background(), &again)
			if took := time.Since(start); took > s.timeout+grace {
				t.Errorf("a call took %v", took)
			}
			if failed && err == nil {
				break
			}
			failed = failed || err != nil
		}
		ended <- time.Now()
	}()
	fail()
	failedOver()
	standing := time.Now()
	end := <-ended
	t.Logf("an outage of %v, %v after the failover", end.Sub(began), end.Sub(standing))
	if end.Sub(standing) > returned {
		t.Errorf("bookings went on %v after the failover", end.Sub(standing))
	}
}

// replicated returns when the replicas of a master have all that was written there.
func replicated(t *testing.T, master *testbed.RedisServer, replicas int) {
	t.Helper()
	admin := redis.NewClient(&redis.Options{Addr: master.Addr(), PoolSize: 1})
	defer admin.Close()
	do(t, admin, "SET", "{"+tags()[0]+"}last", "x", "EX", 60)
	eventually(t, "the replicas", func() bool {
		got, err := admin.Do(context.Background(), "WAIT", replicas, 1000).Int()
		return err == nil && got >= replicas
	})
}
