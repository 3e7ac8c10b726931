package redisstore

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/slotgate/slotgate/gate/store/storetest"
	"github.com/slotgate/slotgate/gate/testbed"
)

func TestMain(m *testing.M) {
	if arg := os.Getenv(consumerEnv); arg != "" {
		fmt.Fprintln(os.Stderr, consume(arg))
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// openStore opens a store on a Redis or a proxy and closes it with the test.
func openStore(t testing.TB, addr string, change ...func(*Options)) *Store {
	t.Helper()
	o := Options{
		Addresses: []string{addr},
		// A loaded test machine is slow now and then; tests of the timeout set their own.
		Timeout: 5 * time.Second,
		Logger:  slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
	for _, c := range change {
		c(&o)
	}
	s, err := Open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// withPrefix gives a test a name space of its own in a shared Redis.
func withPrefix(prefix string) func(*Options) { return func(o *Options) { o.Prefix = prefix } }

// keyRecord is a key record as luascripts/key.lua packs it; without fields where there is
// none.
type keyRecord struct{ state, owner, hold, answer string }

func readKeyRecord(t testing.TB, client redis.Cmdable, name string) (r keyRecord) {
	t.Helper()
	packed, err := client.Get(context.Background(), name).Result()
	if err == redis.Nil {
		return r
	}
	fields := strings.SplitN(packed, "|", 11)
	if err != nil || len(fields) != 11 {
		t.Fatalf("%s is %q, %v", name, packed, err)
	}
	return keyRecord{state: fields[1], owner: fields[7], hold: fields[8], answer: fields[10]}
}

// slotFields is a slot's own state, the field s, as luascripts/slot.lua packs it, with text
// for its numbers: the version of the form, exp, conf, held and so on.
func slotFields(packed string) []string {
	version, numbers, _ := strings.Cut(packed, "|")
	fields := []string{version}
	for len(numbers) >= 8 {
		number := math.Float64frombits(binary.LittleEndian.Uint64([]byte(numbers)))
		fields, numbers = append(fields, strconv.FormatFloat(number, 'f', -1, 64)), numbers[8:]
	}
	return fields
}

// packSlot is the way back.
func packSlot(fields ...string) string {
	packed := []byte(fields[0] + "|")
	for _, field := range fields[1:] {
		number, err := strconv.ParseFloat(field, 64)
		if err != nil {
			panic(err)
		}
		packed = binary.LittleEndian.AppendUint64(packed, math.Float64bits(number))
	}
	return string(packed)
}

// advance moves the clock of all given stores.
func advance(d time.Duration, stores ...*Store) {
	for _, s := range stores {
		s.ahead.Add(d.Milliseconds())
	}
}

func TestConformance(t *testing.T) {
	server := testbed.Redis(t)
	storetest.Run(t, harness(server.Addr()))
}

func TestTruth(t *testing.T) {
	server := testbed.Redis(t)
	storetest.RunTruth(t, harness(server.Addr()))
}

func TestBackend(t *testing.T) {
	server := testbed.Redis(t)
	storetest.RunBackend(t, harness(server.Addr()))
}

func TestModel(t *testing.T) {
	server := testbed.Redis(t)
	storetest.RunModel(t, harness(server.Addr()))
}

func TestTruthModel(t *testing.T) {
	server := testbed.Redis(t)
	storetest.RunTruthModel(t, harness(server.Addr()))
}

// harness opens two gates on an empty corner of one Redis.
func harness(addr string, change ...func(*Options)) func(t *testing.T) *storetest.Harness {
	corner := 0
	return func(t *testing.T) *storetest.Harness {
		corner++
		options := append(slices.Clip(change), withPrefix(fmt.Sprintf("corner-%d", corner)))
		one, other := openStore(t, addr, options...), openStore(t, addr, options...)
		return &storetest.Harness{Store: one, Other: other, Advance: func(d time.Duration) { advance(d, one, other) }}
	}
}
