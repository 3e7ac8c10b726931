package gate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store/redisstore"
	"github.com/slotgate/slotgate/gate/testbed"
	"github.com/slotgate/slotgate/rules"
)

// overRedis is a gate whose store is a Redis, and whose backend answers as the student's
// name says: refused and unknown, or else with a booking, which those whose name begins
// with slow get when answer is closed.
func overRedis(t *testing.T, o redisstore.Options, pool string) (f *fixture, answer chan struct{}) {
	t.Helper()
	o.Timeout, o.Logger = time.Second, slog.New(slog.NewTextHandler(io.Discard, nil))
	s, err := redisstore.Open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	waitFor(t, func() bool { return s.Ping(t.Context()) == nil })
	yaml := "store: { breaker: { open_for: 200ms } }\n" + lessons
	rule := keyed + "\n    " + generous
	f = newFixtureOn(t, strings.NewReplacer("POOL", pool, "RULE", rule, "timeout: 2s", "timeout: 20s").Replace(yaml), nil, s)
	answer = make(chan struct{})
	f.backend.set(func(_, body string) (*BackendAnswer, error) {
		switch {
		case strings.Contains(body, "refused"):
			return answers(422, "no"), nil
		case strings.Contains(body, "unknown"):
			return nil, &BackendError{Failure: TimedOut, Err: errors.New("late")}
		case strings.Contains(body, "slow"):
			<-answer
		}
		return answers(201, "booked for "+body), nil
	})
	return f, answer
}

// key makes a request one that is deduped.
func key(k string) []string { return []string{"Idempotency-Key: " + k, "Cookie: a=1"} }

// counts waits for what a slot has come to hold.
func (f *fixture) counts(lesson string, confirmed, held int64) {
	f.t.Helper()
	q, _ := f.Query("lessons", lesson)
	var last string
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		s, err := f.Gate.store.Slot(f.t.Context(), q)
		if err == nil && s.Confirmed == confirmed && s.Held == held {
			return
		}
		last = fmt.Sprintf("confirmed %d, held %d, %v", s.Confirmed, s.Held, err)
	}
	f.t.Fatalf("lesson %s has %s; want %d and %d", lesson, last, confirmed, held)
}

// work leaves one of each outcome on lesson 1, and one that runs until answer is closed.
func (f *fixture) work() (running <-chan *Reply) {
	f.t.Helper()
	f.want(f.book(call{student: "ann", fields: key("ann")}), decision.DecisionAdmitted, 201)
	f.want(f.book(call{student: "refused", fields: key("refused")}), decision.DecisionAdmitted, 422)
	f.want(f.book(call{student: "unknown", fields: key("unknown")}), decision.DecisionUpstreamTimeout, 504)
	before, replies := f.backend.count(), make(chan *Reply, 1)
	go func() { replies <- f.book(call{student: "slow", fields: key("slow")}) }()
	waitFor(f.t, func() bool { return f.backend.count() > before })
	return replies
}

// wantAllKnown fails unless the store that lost it knows what work left.
func (f *fixture) wantAllKnown() {
	f.t.Helper()
	seen := f.backend.count()
	again := f.want(f.book(call{student: "ann", fields: key("ann")}), decision.DecisionReplayed, 201)
	if want := `booked for {"student":"ann"}`; string(again.Body) != want || again.Mode != ModeNormal {
		f.t.Errorf("replayed %q in mode %s", again.Body, again.Mode)
	}
	f.want(f.book(call{student: "ann"}), decision.DecisionDuplicate, 409)
	f.want(f.book(call{student: "unknown", fields: key("unknown")}), decision.DecisionOutcomeUnknown, 409)
	f.want(f.book(call{student: "unknown"}), decision.DecisionOutcomeUnknown, 409)
	if n := f.backend.count(); n != seen {
		f.t.Errorf("the backend was asked %d times for what it had answered", n-seen)
	}
	f.want(f.book(call{student: "refused", fields: key("refused")}), decision.DecisionAdmitted, 422)
	f.counts("1", 1, 2)
}

func TestARedisThatIsStartedEmptyIsToldWhatItLost(t *testing.T) {
	server := testbed.Redis(t)
	f, answer := overRedis(t, redisstore.Options{Addresses: []string{server.Addr()}}, "capacity: 20, one_per_subject: true")
	running := f.work()
	f.counts("1", 1, 2)

	server.Restart()
	f.counts("1", 1, 2) // the booking; what is unknown and what runs
	waitFor(t, func() bool { return f.Status().SettleBacklog == 0 && !f.Status().Degraded })
	f.wantAllKnown()
	if s := f.slot("1"); s.Verified {
		t.Error("the counters of a store that lost its data are believed")
	}

	close(answer)
	f.want(<-running, decision.DecisionAdmitted, 201)
	f.counts("1", 2, 1)
	f.want(f.book(call{student: "slow", fields: key("slow")}), decision.DecisionReplayed, 201)
}

// A replica that has not heard of the last bookings is promoted, because the master is
// frozen: nothing keeps a master from answering for what it has told nobody.
func TestASentinelFailoverLosesNoSettlement(t *testing.T) {
	deployment := testbed.Sentinel(t)
	f, answer := overRedis(t, redisstore.Options{
		Mode: redisstore.Sentinel, Addresses: deployment.Addrs(), MasterName: deployment.MasterName(),
	}, "capacity: 100, one_per_subject: true")
	f.want(f.book(call{student: "early", lesson: "2"}), decision.DecisionAdmitted, 201)
	old := deployment.Master()
	replicated(t, old)

	for _, server := range deployment.Servers() {
		if server != old {
			redisDo(t, server, "REPLICAOF", "127.0.0.1", "1")
		}
	}
	running := f.work()
	const students = 40
	var all sync.WaitGroup
	for i := range students {
		all.Go(func() {
			r := f.book(call{student: fmt.Sprint(i), lesson: fmt.Sprint(3 + i%8), fields: key(fmt.Sprint("key-", i))})
			if r.Outcome != rules.Booked {
				t.Errorf("student %d: %+v", i, r)
			}
		})
	}
	all.Wait()
	for _, server := range deployment.Servers() {
		if has := redisDo(t, server, "EXISTS", "slotgate:s:{lessons:1}").(int64) == 1; has != (server == old) {
			t.Fatalf("%s has the bookings: %t", server.Addr(), has)
		}
	}
	old.Freeze()
	deployment.AwaitFailover(old)

	f.counts("1", 1, 2)
	waitFor(t, func() bool { return f.Status().SettleBacklog == 0 && !f.Status().Degraded })
	for lesson := range 8 {
		f.counts(fmt.Sprint(3+lesson), students/8, 0)
	}
	f.counts("2", 1, 0)
	f.wantAllKnown()
	seen := f.backend.count()
	for i := range students {
		f.want(f.book(call{student: fmt.Sprint(i), lesson: fmt.Sprint(3 + i%8), fields: key(fmt.Sprint("key-", i))}), decision.DecisionReplayed, 201)
	}
	if n := f.backend.count(); n != seen {
		t.Errorf("%d bookings were made twice", n-seen)
	}
	close(answer)
	f.want(<-running, decision.DecisionAdmitted, 201)
	f.counts("1", 2, 1)
}

// redisDo asks one server.
func redisDo(t *testing.T, server *testbed.RedisServer, args ...any) any {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), MaxRetries: -1, PoolSize: 1})
	defer client.Close()
	got, err := client.Do(t.Context(), args...).Result()
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return got
}

// replicated returns when both replicas have what the master has been told.
func replicated(t *testing.T, master *testbed.RedisServer) {
	t.Helper()
	if n := redisDo(t, master, "WAIT", "2", "10000").(int64); n != 2 {
		t.Fatalf("%d replicas follow the master", n)
	}
}
