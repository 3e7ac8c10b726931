package redisstore

import (
	"bytes"
	"context"
	"encoding/base64"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/gate/store/storetest"
	"github.com/slotgate/slotgate/gate/testbed"
	"github.com/slotgate/slotgate/rules"
)

// encryptKeys are keys as a configuration has them.
var encryptKeys = [3]string{
	base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{1}, 32)),
	base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{2}, 32)),
	base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{3}, 32)),
}

func withKeys(current string, old ...string) func(*Options) {
	return func(o *Options) { o.EncryptKey, o.EncryptOldKeys, o.Secret = current, old, "a secret that stays" }
}

func rawClient(t *testing.T, addr string) *redis.Client {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: addr})
	t.Cleanup(func() { client.Close() })
	return client
}

// What clients are called, what the backend calls their bookings and what it answered,
// as no other text of a test has it.
const (
	secretSubject   = "HanMeimei-13800138000"
	secretReference = "booking-ref-77-4711"
	secretAnswer    = "your seat is 12F"
)

// confidential leaves such texts in the store in all the ways there are: holds in every
// state, a reference, a stored answer, one left for twins, a forced hold, a booking that
// the store never saw.
func confidential(t *testing.T, s *Store) *store.Decide {
	t.Helper()
	ctx := context.Background()
	book := func(id string, wait bool) (*store.Decide, store.Decided) {
		d := ordinary(id)
		d.Subject, d.Key, d.Capacity, d.MaxPerSubject, d.OnePerSubject = secretSubject, "key-"+id, 50, 50, false
		d.SubjectLimit = store.Limit{}
		got, err := admitted(s, d)
		if err != nil {
			t.Fatal(err)
		}
		if wait {
			twin := *d
			twin.ID, twin.Wait = d.ID+"-twin", time.Minute
			if got, err := s.Decide(ctx, &twin); err != nil || got.Verdict != decision.Twin {
				t.Fatalf("twin: %s, %v", got.Verdict, err)
			}
		}
		return d, got
	}
	settle := func(d *store.Decide, got store.Decided, outcome rules.Outcome) {
		settlement := settling(d, got, outcome)
		settlement.Answer, settlement.Reference = []byte(secretAnswer), secretReference
		if _, err := s.Settle(ctx, settlement); err != nil {
			t.Fatal(err)
		}
	}
	booked, got := book("request-booked-0001", true)
	settle(booked, got, rules.Booked)
	unknown, got := book("request-unknown-001", true)
	settle(unknown, got, rules.Unknown)
	held, _ := book("request-held-000001", false)
	if err := touch(s, held, "gate-a", force(held, "-forced")); err != nil {
		t.Fatal(err)
	}
	unseen := *held
	unseen.ID, unseen.Key = "request-unseen-0001", "key-unseen"
	settle(&unseen, store.Decided{Hold: unseen.ID}, rules.Booked)
	return booked
}

// dump is all that a Redis has, as it writes it to disk.
func dump(t *testing.T, addr string) []byte {
	t.Helper()
	ctx, client := context.Background(), rawClient(t, addr)
	set(t, client, "rdbcompression", "no")
	if err := client.Save(ctx).Err(); err != nil {
		t.Fatal(err)
	}
	where, err := client.ConfigGet(ctx, "dir").Result()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(where["dir"], "dump.rdb"))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// readable are those of the confidential texts that can be read in the data.
func readable(data []byte) (texts []string) {
	for _, text := range []string{secretSubject, secretReference, secretAnswer} {
		if bytes.Contains(data, []byte(text)) || bytes.Contains(data, []byte(base64.RawStdEncoding.EncodeToString([]byte(text)))) {
			texts = append(texts, text)
		}
	}
	return texts
}

func TestNothingOfClientsCanBeReadInTheStore(t *testing.T) {
	open := testbed.Redis(t)
	confidential(t, openStore(t, open.Addr(), withKeys("")))
	if got := readable(dump(t, open.Addr())); len(got) != 3 {
		t.Fatalf("without a key only %q can be read: this test would see nothing", got)
	}
	sealed := testbed.Redis(t)
	confidential(t, openStore(t, sealed.Addr(), withKeys(encryptKeys[0])))
	if got := readable(dump(t, sealed.Addr())); got != nil {
		t.Errorf("%q can be read", got)
	}
}

// shown is what a store makes of what confidential left.
type shown struct {
	verdict             decision.Verdict
	answer              string
	subjects, reference string // of all holds together, of the booked one
	found               bool   // by its reference
}

func show(t *testing.T, s *Store, booked *store.Decide) shown {
	t.Helper()
	ctx := context.Background()
	again := *booked
	again.ID = "request-again-00001"
	got, err := s.Decide(ctx, &again)
	if err != nil {
		t.Fatal(err)
	}
	slot, err := s.Slot(ctx, query(booked))
	if err != nil {
		t.Fatal(err)
	}
	see := shown{verdict: got.Verdict, answer: string(got.Answer)}
	var subjects []string
	for _, h := range slot.Holds {
		subjects = append(subjects, h.Subject)
		if h.ID == booked.ID {
			see.reference = h.Reference
		}
	}
	slices.Sort(subjects)
	see.subjects = strings.Join(slices.Compact(subjects), " ")
	if len(slot.Holds) != 5 {
		t.Fatalf("%d holds, want 5", len(slot.Holds))
	}
	where, _, err := s.Find(ctx, booked.Pool, secretReference)
	if see.found = err == nil; see.found && where != booked.Slot || err != nil && err != store.ErrNoHold {
		t.Fatalf("found in %q, %v", where, err)
	}
	return see
}

func TestKeysAreRotated(t *testing.T) {
	whole := shown{decision.Replay, secretAnswer, secretSubject, secretReference, true}
	lost := shown{decision.KeyDone, "", "", "", false}
	one, two, three := encryptKeys[0], encryptKeys[1], encryptKeys[2]
	for _, c := range []struct {
		name   string
		wrote  func(*Options)
		reads  func(*Options)
		want   shown
		warned bool
	}{
		{"same key", withKeys(one), withKeys(one), whole, false},
		{"new key, old one still read", withKeys(one), withKeys(two, one), whole, false},
		{"third key, two old ones", withKeys(one), withKeys(three, two, one), whole, false},
		{"encryption ended", withKeys(one), withKeys("", one), whole, false},
		{"key set later", withKeys(""), withKeys(one), whole, false},
		{"key replaced", withKeys(one), withKeys(two), lost, true},
		{"key taken away", withKeys(one), withKeys(""), lost, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			addr := testbed.Redis(t).Addr()
			booked := confidential(t, openStore(t, addr, c.wrote))
			var log bytes.Buffer
			s := openStore(t, addr, c.reads, func(o *Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
			for range 2 {
				if got := show(t, s, booked); got != c.want {
					t.Errorf("got %+v\nwant %+v", got, c.want)
				}
			}
			if said := strings.Count(log.String(), "encrypt_old_keys"); said != 0 && !c.warned || said != 1 && c.warned {
				t.Errorf("warned %d times: %s", said, &log)
			}
		})
	}
}

func TestAClusterIsSealed(t *testing.T) {
	cluster := testbed.Cluster(t)
	onCluster := func(o *Options) { o.Mode, o.Addresses = Cluster, cluster.Addrs() }
	booked := confidential(t, openStore(t, "", onCluster, withKeys(encryptKeys[0])))
	whole := shown{decision.Replay, secretAnswer, secretSubject, secretReference, true}
	if got := show(t, openStore(t, "", onCluster, withKeys(encryptKeys[1], encryptKeys[0])), booked); got != whole {
		t.Errorf("after a rotation: %+v", got)
	}
	if got := show(t, openStore(t, "", onCluster, withKeys(encryptKeys[1])), booked); got != (shown{verdict: decision.KeyDone}) {
		t.Errorf("without the key: %+v", got)
	}
	for _, node := range cluster.Masters() {
		if got := readable(dump(t, node.Addr())); got != nil {
			t.Errorf("%q can be read", got)
		}
	}
}

// A twin is told by the owner's key that its request is done, not that it was booked.
func TestAnAnswerLeftUnderAnotherKeyIsNotMadeUp(t *testing.T) {
	addr := testbed.Redis(t).Addr()
	owner, other := openStore(t, addr, withKeys(encryptKeys[0])), openStore(t, addr, withKeys(encryptKeys[1]))
	d := ordinary("request-owner-00001")
	got, err := admitted(owner, d)
	if err != nil {
		t.Fatal(err)
	}
	twin := *d
	twin.ID, twin.Wait = "request-twin-000001", time.Minute
	if got, err := other.Decide(t.Context(), &twin); err != nil || got.Verdict != decision.Twin {
		t.Fatalf("%s, %v", got.Verdict, err)
	}
	settlement := settling(d, got, rules.Refused)
	if _, err := owner.Settle(t.Context(), settlement); err != nil {
		t.Fatal(err)
	}
	twin.Await = d.ID
	if got, err := other.Decide(t.Context(), &twin); err != nil || got.Verdict != decision.KeyDone || got.MayReplay || got.Answer != nil {
		t.Errorf("%+v, %v", got, err)
	}
}

// Who can write to the store cannot give one client's answer to another, nor have one
// subject shown for another.
func TestAValueThatWasMovedDoesNotOpen(t *testing.T) {
	ctx, addr := t.Context(), testbed.Redis(t).Addr()
	s, client := openStore(t, addr, withKeys(encryptKeys[0])), rawClient(t, addr)
	var holds [2]*store.Decide
	for i := range holds {
		d := booking(int64(i))
		d.Slot = "one"
		got, err := admitted(s, d)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Settle(ctx, settling(d, got, rules.Booked)); err != nil {
			t.Fatal(err)
		}
		holds[i] = d
	}
	names := s.secret.names.Load()
	record := func(d *store.Decide) string { return s.keys.KeyRecord(names.key(d.Group, d.Partition, d.Key)) }
	field := func(key, name string) string {
		t.Helper()
		value, err := client.HGet(ctx, key, name).Result()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
	state := s.keys.Slot("lessons", "one").State
	first, second := strings.Split(field(state, "h:"+holds[0].ID), "|"), strings.Split(field(state, "h:"+holds[1].ID), "|")
	second[10] = first[10]
	do(t, client, "HSET", state, "h:"+holds[1].ID, strings.Join(second, "|"))
	own, err := client.Get(ctx, record(holds[1])).Result()
	if err != nil {
		t.Fatal(err)
	}
	stolen := strings.Replace(own, readKeyRecord(t, client, record(holds[1])).answer, readKeyRecord(t, client, record(holds[0])).answer, 1)
	do(t, client, "SET", record(holds[1]), stolen, "KEEPTTL")

	again := *holds[1]
	again.ID = "request-again-00001"
	if got, err := s.Decide(ctx, &again); err != nil || got.Verdict != decision.KeyDone || got.Answer != nil {
		t.Errorf("%s %q, %v: another client's answer was given", got.Verdict, got.Answer, err)
	}
	slot, err := s.Slot(ctx, query(holds[0]))
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range slot.Holds {
		if want := map[string]string{holds[0].ID: holds[0].Subject, holds[1].ID: ""}[h.ID]; h.Subject != want {
			t.Errorf("hold %s shows %q, want %q", h.ID, h.Subject, want)
		}
	}
}

// What stands in the store decides alike whether or not it is sealed.
func TestConformanceSealed(t *testing.T) {
	addr, corner := testbed.Redis(t).Addr(), 0
	storetest.Run(t, func(t *testing.T) *storetest.Harness {
		corner++
		prefix := withPrefix("corner-" + string(rune('a'+corner/26)) + string(rune('a'+corner%26)))
		one := openStore(t, addr, prefix, withKeys(encryptKeys[0], encryptKeys[1]))
		other := openStore(t, addr, prefix, withKeys(encryptKeys[1], encryptKeys[0]))
		return &storetest.Harness{Store: one, Other: other, Advance: func(d time.Duration) { advance(d, one, other) }}
	})
}
