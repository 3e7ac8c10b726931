package redisstore

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/gate/testbed"
	"github.com/slotgate/slotgate/luascripts"
	"github.com/slotgate/slotgate/rules"
)

// fails makes a decide and returns how it failed.
func fails(t *testing.T, s *Store) *store.Error {
	t.Helper()
	got, err := s.Decide(context.Background(), booking(1))
	var failure *store.Error
	if !errors.As(err, &failure) {
		t.Fatalf("decided %+v, %v; want a failure of the store", got, err)
	}
	if got.Verdict != 0 {
		t.Errorf("a failure came with verdict %s", got.Verdict)
	}
	return failure
}

func expectFailure(t *testing.T, got *store.Error, kind store.ErrorKind, maybe bool) {
	t.Helper()
	if got.Kind != kind || got.Maybe != maybe {
		t.Errorf("failure %q, maybe %t; want %s, %t", got, got.Maybe, kind, maybe)
	}
}

// Options of a store that must answer or fail soon.
func quick(o *Options) { o.Timeout = 250 * time.Millisecond }

// grace is what a loaded machine may take beyond the timeout.
const grace = 750 * time.Millisecond

func TestOpenWhileRedisIsAwayAndUseItWhenItIsThere(t *testing.T) {
	server := testbed.Redis(t)
	server.Kill()
	s := openStore(t, server.Addr(), quick, func(o *Options) { o.PoolSize = 8 })
	start := time.Now()
	expectFailure(t, fails(t, s), store.KindConnection, false)
	if took := time.Since(start); took > 250*time.Millisecond+grace {
		t.Errorf("a refused connection took %v", took)
	}
	server.Restart()
	deadline := time.Now().Add(20 * time.Second)
	for {
		_, err := s.Decide(context.Background(), booking(1))
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

func TestAFrozenRedisFailsInTime(t *testing.T) {
	server := testbed.Redis(t)
	s := openStore(t, server.Addr(), quick)
	if _, err := admitted(s, booking(0)); err != nil {
		t.Fatal(err)
	}
	server.Freeze()
	defer server.Resume()
	start := time.Now()
	expectFailure(t, fails(t, s), store.KindTimeout, true)
	if took := time.Since(start); took > 250*time.Millisecond+grace {
		t.Errorf("a frozen Redis took %v", took)
	}
}

func TestACallersDeadlineIsKept(t *testing.T) {
	server := testbed.Redis(t)
	s := openStore(t, server.Addr())
	if _, err := admitted(s, booking(0)); err != nil {
		t.Fatal(err)
	}
	server.Freeze()
	defer server.Resume()
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	_, err := s.Decide(ctx, booking(1))
	var failure *store.Error
	if !errors.As(err, &failure) || failure.Kind != store.KindTimeout {
		t.Fatalf("decide: %v", err)
	}
	if took := time.Since(start); took > 50*time.Millisecond+grace {
		t.Errorf("it took %v", took)
	}
}

func do(t *testing.T, admin redis.UniversalClient, words ...any) {
	t.Helper()
	if err := admin.Do(context.Background(), words...).Err(); err != nil {
		t.Fatal(err)
	}
}

func set(t *testing.T, admin *redis.Client, name, value string) {
	t.Helper()
	do(t, admin, "CONFIG", "SET", name, value)
}

// What our scripts never wrote or say is no verdict.
func TestStrangeData(t *testing.T) {
	for _, tt := range []struct {
		name string
		put  func(s *Store, d *store.Decide) error
	}{
		{"the slot is a string", func(s *Store, d *store.Decide) error {
			return s.client.Set(context.Background(), s.keys.Slot(d.Pool, d.Slot).State, "x", time.Hour).Err()
		}},
		{"the slot is of a newer version", func(s *Store, d *store.Decide) error {
			return s.client.HSet(context.Background(), s.keys.Slot(d.Pool, d.Slot).State, "s", "2|what|may|come").Err()
		}},
		{"the slot's state is torn", func(s *Store, d *store.Decide) error {
			return s.client.HSet(context.Background(), s.keys.Slot(d.Pool, d.Slot).State, "s", "1|2|3").Err()
		}},
		{"the slot's mark is torn", func(s *Store, d *store.Decide) error {
			if _, err := admitted(s, d); err != nil {
				return err
			}
			return s.client.HSet(context.Background(), s.keys.Slot(d.Pool, d.Slot).State, "m", "1|2").Err()
		}},
		{"the key record is of a newer version", func(s *Store, d *store.Decide) error {
			record := s.keys.KeyRecord(s.secret.names.Load().key(d.Group, d.Partition, d.Key))
			return s.client.Set(context.Background(), record, "2|what|may|come", time.Hour).Err()
		}},
		{"the key record is torn", func(s *Store, d *store.Decide) error {
			record := s.keys.KeyRecord(s.secret.names.Load().key(d.Group, d.Partition, d.Key))
			return s.client.Set(context.Background(), record, "1|done|x", time.Hour).Err()
		}},
		{"the hold is torn", func(s *Store, d *store.Decide) error {
			_, err := admitted(s, d)
			if err != nil {
				return err
			}
			return s.client.HSet(context.Background(), s.keys.Slot(d.Pool, d.Slot).State, "h:"+d.ID, "held|1").Err()
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := openStore(t, testbed.Redis(t).Addr(), func(o *Options) { o.Secret = "configured" })
			if err := tt.put(s, booking(1)); err != nil {
				t.Fatal(err)
			}
			expectFailure(t, fails(t, s), store.KindReply, true)
		})
	}
}

// The next version's gate may run beside this one during a rollout: its data is
// refused by name.
func TestANewerVersionIsNamed(t *testing.T) {
	s := openStore(t, testbed.Redis(t).Addr(), func(o *Options) { o.Secret = "configured" })
	d := booking(1)
	key := s.keys.Slot(d.Pool, d.Slot).State
	if err := s.client.HSet(context.Background(), key, "s", "2|x").Err(); err != nil {
		t.Fatal(err)
	}
	failure := fails(t, s)
	if code(failure.Err) != "SCHEMA" {
		t.Errorf("failure %v", failure)
	}
}

// A script of another text under our digest cannot be; a reply of another shape can
// come from whatever else answers at the address.
func TestRepliesOfAnotherShape(t *testing.T) {
	list := func(values ...any) any { return values }
	good := "admitted|request-000000000001|0|0|0||0|0|0|-1|||"
	if _, err := decodeDecided(newNames("s"), good, booking(1)); err != nil {
		t.Fatal(err)
	}
	for _, raw := range []any{
		nil, "OK", int64(1), list(), list("admitted"), list(good), "admitted", strings.TrimSuffix(good, "|"),
		"maybe||0|0|0||0|0|0|-1|||",
		"invalid||0|0|0||0|0|0|-1|||",
		"admitted||0|0|0||0|0|0|-1|||", // without a hold
		"sold_out||2|0|0||0|0|0|-1|||",
		"sold_out||0|0|-1||0|0|0|-1|||",
		"sold_out||0|0|0||0|soon|0|-1|||",
		"sold_out||0|0|0||0|9223372036854775807|0|-1|||",
		"sold_out||0|0|0||0|0||-1|||",
		"sold_out||0|0|0||0|0|0|0|1abc||", // a hash is longer
		"sold_out||0|0|0||0|0|0|0|?||",
		"sold_out||0|0|0||0|0|0|-1||slot|",
		"sold_out||0|0|0||0|0|0|-1||slot:1|",
		"sold_out||0|0|0||0|0|0|-1||slot:1:1:1|",
		"sold_out||0|0|0||0|0|0|-1||slot:1:x|",
		"sold_out||0|0|0||0|0|0|-1||weather:1:1|",
	} {
		got, err := decodeDecided(newNames("s"), raw, booking(1))
		var failure *store.Error
		if !errors.As(err, &failure) || failure.Kind != store.KindReply || !failure.Maybe {
			t.Errorf("%v: decided %+v, %v", raw, got, err)
		}
	}
	for _, raw := range []any{nil, "OK", list("1", "confirmed", "0", "0", "0"), "1|confirmed|0|0", "1|booked|0|0|0", "1|confirmed|0|0|0|0", "yes|held|0|0|0"} {
		got, err := decodeSettled(raw)
		var failure *store.Error
		if !errors.As(err, &failure) || failure.Kind != store.KindReply {
			t.Errorf("%v: settled %+v, %v", raw, got, err)
		}
	}
	for _, raw := range []any{
		nil, "OK", list("", "0", "0", "0", "", "0", "1"), list("x", "0", "0", "0", "", "0", "1", "0"), list("", "0", "0", "0", "noon", "0", "1", "0"),
		list("", "0", "0", "0", "", "0", "1", "0", "id"), list("", "0", "0", "0", "", "0", "1", "0", "id", "held|1|x"),
	} {
		got, err := new(Store).decodeSlot("slot", raw, store.SlotQuery{})
		var failure *store.Error
		if !errors.As(err, &failure) || failure.Kind != store.KindReply {
			t.Errorf("%v: slot %+v, %v", raw, got, err)
		}
	}
}

// Redis answers, but is something else: a script that is not ours runs in its place.
func TestAnotherProgramAnswers(t *testing.T) {
	s := openStore(t, testbed.Redis(t).Addr())
	if _, err := s.current(t.Context()); err != nil {
		t.Fatal(err)
	}
	c := &call{op: "decide", script: &luascripts.Script{Source: "return 'OK'", SHA1: "0000000000000000000000000000000000000000"}}
	raw, err := s.run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := decodeDecided(newNames("s"), raw, booking(1)); err == nil {
		t.Error("OK was taken for a verdict")
	}
}

// answered is an error reply.
type answered string

func (a answered) Error() string { return string(a) }
func (answered) RedisError()     {}

func TestClassesOfErrors(t *testing.T) {
	s := openStore(t, "127.0.0.1:1")
	for _, tt := range []struct {
		err   error
		kind  store.ErrorKind
		maybe bool
	}{
		{&net.OpError{Op: "dial", Err: errors.New("connection refused")}, store.KindConnection, false},
		{&net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}, store.KindTimeout, true},
		{&net.OpError{Op: "write", Err: errors.New("broken pipe")}, store.KindConnection, true},
		{io.EOF, store.KindConnection, true},
		{context.DeadlineExceeded, store.KindTimeout, true},
		{context.Canceled, store.KindTimeout, true},
		{redis.ErrPoolTimeout, store.KindTimeout, false},
		{redis.ErrPoolExhausted, store.KindTimeout, false},
		{redis.ErrClosed, store.KindConnection, false},
		{answered("OOM command not allowed"), store.KindFull, false},
		{answered("LOADING Redis is loading the dataset in memory"), store.KindServer, false},
		{answered("CLUSTERDOWN The cluster is down"), store.KindServer, false},
		{answered("MISCONF Redis is configured to save"), store.KindServer, false},
		{answered("BUSY Redis is busy running a script"), store.KindServer, false},
		{answered("ERR max number of clients reached"), store.KindServer, false},
		{answered("ERR Error running script"), store.KindReply, true},
		{answered("WRONGTYPE Operation against a key"), store.KindReply, true},
		{answered("SCHEMA newer"), store.KindReply, true},
		{answered(""), store.KindReply, true},
	} {
		expectFailure(t, s.failure("decide", tt.err, mayHaveRun(tt.err)), tt.kind, tt.maybe)
	}
}

func TestOpenRefusesOptionsThatCannotWork(t *testing.T) {
	for _, o := range []Options{{Prefix: "a{b}"}, {Prefix: "a b"}, {Prefix: "é"}, {Timeout: time.Millisecond}, {PoolSize: -1}, {DB: -1}} {
		if s, err := Open(context.Background(), o); err == nil {
			s.Close()
			t.Errorf("%+v was taken", o)
		}
	}
}

// What would tear a packed hold never reaches Redis.
func TestCallsThatCannotBePacked(t *testing.T) {
	s := openStore(t, "127.0.0.1:1")
	for _, change := range []func(*store.Decide){
		func(d *store.Decide) { d.Units = 0 },
		func(d *store.Decide) { d.Units = -1 },
		func(d *store.Decide) { d.ID = "request|000000000001" },
		func(d *store.Decide) { d.ID = "request:000000000001" },
		func(d *store.Decide) { d.ID = "request,000000000001" },
	} {
		d := booking(1)
		change(d)
		var failure *store.Error
		if got, err := s.Decide(context.Background(), d); err == nil || errors.As(err, &failure) {
			t.Errorf("%d units, id %q: %+v, %v", d.Units, d.ID, got, err)
		}
		if got, err := s.Settle(context.Background(), settling(d, store.Decided{Hold: d.ID}, rules.Booked)); err == nil || errors.As(err, &failure) {
			t.Errorf("%d units, id %q: %+v, %v", d.Units, d.ID, got, err)
		}
	}
	d := booking(1)
	d.Units = maxUnits + 1
	if got, err := s.Decide(context.Background(), d); err != nil || got.Verdict != decision.OverCapacity {
		t.Errorf("%d units: %s, %v", d.Units, got.Verdict, err)
	}
}

// Every call is reported with what became of it.
func TestObserve(t *testing.T) {
	type seen struct {
		op  string
		err error
	}
	calls := make(chan seen, 100)
	server := testbed.Redis(t)
	s := openStore(t, server.Addr(), func(o *Options) {
		o.Secret = "configured"
		o.Observe = func(op string, took time.Duration, err error) {
			if took > 0 {
				calls <- seen{op, err}
			}
		}
	})
	if _, err := admitted(s, booking(1)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Slot(context.Background(), store.SlotQuery{Pool: "lessons", Slot: "never seen"}); err != store.ErrNoSlot {
		t.Fatal(err)
	}
	server.Kill()
	failure := fails(t, s)
	for _, want := range []seen{{"decide", nil}, {"slot", nil}, {"decide", failure}} {
		got := <-calls
		if got.op != want.op || got.err != nil && want.err == nil || want.err != nil && !errors.Is(got.err, want.err) {
			t.Errorf("observed %+v, want %+v", got, want)
		}
	}
}
