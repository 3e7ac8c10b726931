package redisstore

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/gate/store/storetest"
	"github.com/slotgate/slotgate/gate/testbed"
	"github.com/slotgate/slotgate/luascripts"
)

// Over random histories the usual case answers and leaves what the general steps do, where
// calls of both kinds meet each other's data.
func TestTheUsualCaseIsTheGeneralOne(t *testing.T) {
	server := testbed.Redis(t)
	for name, run := range map[string]func(*testing.T, func(*testing.T) *storetest.Harness){
		"bookings": storetest.RunModel, "cancels": storetest.RunTruthModel,
	} {
		t.Run(name, func(t *testing.T) {
			usual := 0
			run(t, func(t *testing.T) *storetest.Harness {
				secret := func(o *Options) { o.Secret = "configured" }
				both := &bothWays{
					Store:   openStore(t, server.Addr(), secret, withPrefix("usual-"+name)),
					general: openStore(t, server.Addr(), secret, withPrefix("general-"+name)),
					t:       t,
				}
				both.Store.client.AddHook(&otherScripts{answered: &usual, scripts: edited(t, usualIsCounted)})
				both.general.client.AddHook(&otherScripts{scripts: edited(t, usualIsOff)})
				return &storetest.Harness{Store: both, Other: both, Histories: 100, Advance: func(d time.Duration) { advance(d, both.Store, both.general) }}
			})
			if usual < 20 { // most of what the model draws is not usual
				t.Errorf("only %d calls were of the usual kind", usual)
			}
		})
	}
}

// bothWays makes each call of a slot whose pool has no source of truth on two stores: one
// with the usual case, and one that goes through the general steps.
type bothWays struct {
	*Store
	general *Store
	t       *testing.T
	calls   int
}

// keyed names a key of a request.
type keyed struct{ group, partition, key string }

// same compares answers, and what the stores have of a slot and a key.
func (b *bothWays) same(op, pool, slot string, key keyed, usual, general any) {
	b.t.Helper()
	b.calls++
	if was, want := stable(fmt.Sprintf("%+v", usual)), stable(fmt.Sprintf("%+v", general)); was != want {
		b.t.Fatalf("call %d, %s: the usual way answers\n%s\nthe general one\n%s", b.calls, op, was, want)
	}
	was, want := b.left(b.Store, pool, slot, key), b.left(b.general, pool, slot, key)
	if !slices.EqualFunc(was, want, alike) {
		b.t.Fatalf("call %d, %s, answered %s: the usual way leaves\n%s\nthe general one\n%s", b.calls, op, stable(fmt.Sprintf("%+v", usual)),
			strings.Join(was, "\n"), strings.Join(want, "\n"))
	}
}

func (b *bothWays) left(s *Store, pool, slot string, key keyed) (lines []string) {
	ctx := context.Background()
	keys := s.keys.Slot(pool, slot)
	state, err := s.client.HGetAll(ctx, keys.State).Result()
	if err != nil {
		b.t.Fatal(err)
	}
	for _, field := range slices.Sorted(maps.Keys(state)) {
		switch field {
		case "r": // the run, which each prefix has of its own
		case "s":
			lines = append(lines, "s "+strings.Join(slotFields(state[field]), "|"))
		default:
			lines = append(lines, field+" "+state[field])
		}
	}
	due, err := s.client.ZRangeWithScores(ctx, keys.Due, 0, -1).Result()
	if err != nil {
		b.t.Fatal(err)
	}
	slices.SortFunc(due, func(a, b redis.Z) int { return strings.Compare(a.Member.(string), b.Member.(string)) })
	for _, z := range due {
		lines = append(lines, fmt.Sprintf("due %s %.0f", z.Member, z.Score))
	}
	entries, err := s.client.XRevRangeN(ctx, keys.Ledger, "+", "-", 3).Result()
	if err != nil {
		b.t.Fatal(err)
	}
	for _, e := range entries {
		lines = append(lines, fmt.Sprint("ledger ", e.Values))
	}
	record := s.keys.KeyRecord(s.secret.names.Load().key(key.group, key.partition, key.key))
	for _, name := range []string{keys.State, keys.Due, keys.Ledger, record} {
		ttl, err := s.client.PTTL(ctx, name).Result()
		if err != nil {
			b.t.Fatal(err)
		}
		lines = append(lines, fmt.Sprintf("ttl %d", time.Now().Add(ttl).UnixMilli()))
	}
	packed, err := s.client.Get(ctx, record).Result()
	if err != nil && err != redis.Nil {
		b.t.Fatal(err)
	}
	return append(lines, "key "+packed)
}

var moment = regexp.MustCompile(`\d{13,}`)

// alike compares two texts but for times, which are seconds apart at most: the model keeps
// all that depends on them further off.
func alike(a, b string) bool {
	if moment.ReplaceAllString(a, "T") != moment.ReplaceAllString(b, "T") {
		return false
	}
	others := moment.FindAllString(b, -1)
	for i, text := range moment.FindAllString(a, -1) {
		one, _ := strconv.ParseInt(text, 10, 64)
		other, _ := strconv.ParseInt(others[i], 10, 64)
		if max(one-other, other-one) > 3000 {
			return false
		}
	}
	return true
}

// tick waits for the next millisecond: what changes only as time goes on has changed in both
// stores then.
func tick() {
	for last := time.Now().UnixMilli(); time.Now().UnixMilli() == last; {
		time.Sleep(100 * time.Microsecond)
	}
}

func (b *bothWays) Decide(ctx context.Context, d *store.Decide) (store.Decided, error) {
	tick()
	got, err := b.Store.Decide(ctx, d)
	if d.Truth != store.NoTruth || err != nil {
		return got, err
	}
	want, err := b.general.Decide(ctx, d)
	if err == nil {
		b.same("decide "+d.ID, d.Pool, d.Slot, keyed{d.Group, d.Partition, d.Key}, listed(got), listed(want))
	}
	return got, err
}

// listed is an answer with its holders as a list.
func listed(d store.Decided) any {
	var known []uint64
	if h, ok := d.Holders.(*holders); ok {
		known = slices.Sorted(maps.Keys(h.known))
	}
	d.Holders = nil
	return struct {
		store.Decided
		known []uint64
	}{d, known}
}

func (b *bothWays) Settle(ctx context.Context, s *store.Settle) (store.Settled, error) {
	tick()
	got, err := b.Store.Settle(ctx, s)
	if s.Truth != store.NoTruth || err != nil {
		return got, err
	}
	want, err := b.general.Settle(ctx, s)
	if err == nil {
		b.same("settle "+s.ID+" "+s.Outcome.String(), s.Pool, s.Slot, keyed{s.Group, s.Partition, s.Key}, got, want)
	}
	return got, err
}

func (b *bothWays) Touch(ctx context.Context, t *store.Touch) error {
	err := b.Store.Touch(ctx, t)
	if t.Query.Truth == store.NoTruth && err == nil {
		err = b.general.Touch(ctx, t)
	}
	return err
}

func (b *bothWays) Resume(ctx context.Context, q store.SlotQuery, gate string) error {
	err := b.Store.Resume(ctx, q, gate)
	if q.Truth == store.NoTruth && err == nil {
		err = b.general.Resume(ctx, q, gate)
	}
	return err
}

func (b *bothWays) Slot(ctx context.Context, q store.SlotQuery) (store.Slot, error) {
	got, err := b.Store.Slot(ctx, q)
	if q.Truth == store.NoTruth {
		want, wantErr := b.general.Slot(ctx, q)
		if (err == nil) != (wantErr == nil) || err == nil && (got.Confirmed != want.Confirmed || got.Held != want.Held || got.Inflight != want.Inflight) {
			b.t.Fatalf("slot: the usual way has\n%+v, %v\nthe general one\n%+v, %v", got, err, want, wantErr)
		}
	}
	return got, err
}

func (b *bothWays) Change(ctx context.Context, q store.SlotQuery, c store.SlotChange) (store.Slot, error) {
	got, err := b.Store.Change(ctx, q, c)
	if q.Truth == store.NoTruth && err == nil {
		_, err = b.general.Change(ctx, q, c)
	}
	return got, err
}

func (b *bothWays) Release(ctx context.Context, q store.SlotQuery, hold string) (decision.HoldState, error) {
	got, err := b.Store.Release(ctx, q, hold)
	if q.Truth == store.NoTruth {
		if want, wantErr := b.general.Release(ctx, q, hold); got != want || fmt.Sprint(err) != fmt.Sprint(wantErr) {
			b.t.Fatalf("release: %s, %v; the general way %s, %v", got, err, want, wantErr)
		}
	}
	return got, err
}

// otherScripts has a store send others than today's scripts.
type otherScripts struct {
	scripts  map[string]*luascripts.Script // by the digest of today's
	answered *int                          // how many replies were marked as the usual case's
}

// The scripts of which a part is the usual case, and where it begins and ends there.
var (
	withTheUsual = []*luascripts.Script{luascripts.Decide, luascripts.Settle}
	usualBegin   = regexp.MustCompile(`local (decided, has_limits|settled) = (?:decide|settle)_usual\(\)`)
	usualEnd     = regexp.MustCompile(`if (decided|settled) then return (decided|settled) end`)
)

func usualIsOff(source string) string { return usualBegin.ReplaceAllString(source, "local $1") }

// usualIsCounted marks the replies of the usual case.
func usualIsCounted(source string) string {
	return usualEnd.ReplaceAllString(source, "if $1 then return 'usual ' .. $1 end")
}

// edited is the scripts with a change to those that have the usual case.
func edited(t *testing.T, edit func(source string) string) map[string]*luascripts.Script {
	scripts := map[string]*luascripts.Script{}
	for _, script := range luascripts.All() {
		source := script.Source
		if slices.Contains(withTheUsual, script) {
			changed := edit(source)
			if changed == source {
				t.Fatalf("%s has no usual case", script.Name)
			}
			source = changed
		}
		sum := sha1.Sum([]byte(source))
		scripts[script.SHA1] = &luascripts.Script{Name: script.Name, Source: source, SHA1: hex.EncodeToString(sum[:])}
	}
	return scripts
}

func (o *otherScripts) DialHook(next redis.DialHook) redis.DialHook { return next }

func (o *otherScripts) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (o *otherScripts) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		args := cmd.Args()
		switch strings.ToUpper(cmd.Name()) {
		case "EVALSHA":
			if script := o.scripts[args[1].(string)]; script != nil {
				args[1] = script.SHA1
			}
		case "EVAL":
			for _, script := range luascripts.All() {
				if other := o.scripts[script.SHA1]; other != nil && args[1] == script.Source {
					args[1] = other.Source
				}
			}
		}
		err := next(ctx, cmd)
		if reply, ok := cmd.(once); ok && o.answered != nil && err == nil {
			text, _ := reply.Val().(string)
			if answer, ok := strings.CutPrefix(text, "usual "); ok {
				*o.answered++
				reply.SetVal(answer)
			}
		}
		return err
	}
}
