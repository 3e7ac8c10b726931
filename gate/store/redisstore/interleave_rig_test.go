package redisstore

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/gate/store/storetest/interleave"
	"github.com/slotgate/slotgate/gate/testbed"
	"github.com/slotgate/slotgate/luascripts"
)

// interleaveRig is two gates on a Redis database of their own, whose worlds are put
// back by writing their keys anew.
type interleaveRig struct {
	t       testing.TB
	gates   [2]*Store
	losers  [2]*attemptLoser
	admin   *redis.Client
	prefix  string
	servers [2]*server   // as each gate knows it
	looked  store.Looked // where the last look stood
}

// attemptLoser stands between a gate and its store, and loses what it is told to, or
// lets a call of several steps make only the next of them.
type attemptLoser struct {
	server    *server // of a gate that takes its store for sharded
	skipFirst bool

	stepping bool
	feed     []any // what the steps before were told
	live     bool  // whether one more may be made
	told     []any // by that one; none where it was not made
	err      error // of that one
	halted   bool  // whether there is another
}

var errSkipped = errors.New("this attempt was lost on its way")

func (w *attemptLoser) DialHook(next redis.DialHook) redis.DialHook { return next }

func (w *attemptLoser) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		args := cmd.Args()
		if word, ok := args[len(args)-1].(*runWord); ok && w.server != nil {
			word.server = w.server
		}
		switch script, ok := cmd.(once); {
		case w.skipFirst:
			cmd.SetErr(errSkipped)
			return errSkipped
		case !w.stepping || !ok:
			return next(ctx, cmd)
		case len(w.feed) > 0:
			script.SetVal(w.feed[0])
			w.feed = w.feed[1:]
			return nil
		case !w.live:
			w.halted = true
			cmd.SetErr(errSkipped)
			return errSkipped
		default:
			w.live = false
			w.err = next(ctx, cmd)
			w.told = []any{script.Val()}
			return w.err
		}
	}
}

func (w *attemptLoser) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// Step is part of interleave.Stepped.
func (r *interleaveRig) Step(gate, number int, replies []any, call func(store.Store) (any, error)) (reply any, told []any, done bool, err error) {
	s, w := r.gates[gate], r.losers[gate]
	s.unfinished.found = nil // of other worlds
	before := s.calls.Load()
	s.instance = fmt.Sprintf("gate%d", gate)
	s.calls.Store(uint64(1000 * number))
	w.stepping, w.feed, w.live, w.told, w.err, w.halted = true, replies, true, nil, nil, false
	reply, err = call(s)
	w.stepping = false
	s.calls.Store(before)
	s.instance = freshCalls
	if w.halted {
		err = w.err
	}
	return reply, w.told, !w.halted, err
}

// shardedRigs is interleaveRigs for gates that take the steps of a cluster.
func shardedRigs(server *testbed.RedisServer) interleave.Open {
	open := interleaveRigs(server)
	return func(t testing.TB) interleave.Rig {
		r := open(t).(*interleaveRig)
		for i, s := range r.gates {
			s.server, r.losers[i].server = nil, r.servers[i]
			s.fresh.AddHook(r.losers[i])
			if err := s.enlist(context.Background(), place{pool: "lessons", slot: "lesson-1", retain: "1000"}); err != nil {
				t.Fatal(err)
			}
		}
		for _, script := range luascripts.All() {
			if err := r.admin.ScriptLoad(context.Background(), script.Source).Err(); err != nil {
				t.Fatal(err)
			}
		}
		return r
	}
}

// interleaveRigs returns what opens a rig on a database of its own.
func interleaveRigs(server *testbed.RedisServer) interleave.Open {
	var opened atomic.Int64
	return func(t testing.TB) interleave.Rig {
		db := int(opened.Add(1))
		r := &interleaveRig{t: t, prefix: "model", admin: redis.NewClient(&redis.Options{Addr: server.Addr(), DB: db})}
		t.Cleanup(func() { r.admin.Close() })
		for i := range r.gates {
			s := openStore(t, server.Addr(), withPrefix(r.prefix), func(o *Options) {
				o.DB, o.PoolSize, o.Secret = db, 1, "configured"
			})
			s.stop() // nothing happens that no step says
			<-s.stopped
			s.instance = freshCalls
			r.gates[i], r.losers[i], r.servers[i] = s, &attemptLoser{}, s.server
			s.client.AddHook(r.losers[i])
			if err := s.Ping(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
		return r
	}
}

// freshCalls is the name of a gate while it makes calls that have no copies.
const freshCalls = "fresh"

func (r *interleaveRig) Wire() bool { return true }

func (r *interleaveRig) Gate(i int) store.Store { return r.gates[i] }

func (r *interleaveRig) Decide(gate int, d *store.Decide, number int, copy interleave.Copy) (store.Decided, error) {
	s := r.gates[gate]
	before := s.calls.Load()
	s.instance = fmt.Sprintf("gate%d", gate)
	s.calls.Store(uint64(1000 * number)) // so that a copy is told from another call
	r.losers[gate].skipFirst = copy == interleave.Second
	got, err := s.Decide(context.Background(), d)
	r.losers[gate].skipFirst = false
	s.calls.Store(before)
	s.instance = freshCalls
	return got, err
}

func (r *interleaveRig) Advance(d time.Duration) { advance(d, r.gates[:]...) }

func (r *interleaveRig) Look(gate int, l *store.Look) (looked store.Looked, err error) {
	r.looked, err = r.gates[gate].Look(context.Background(), l)
	return r.looked, err
}

func (r *interleaveRig) Apply(gate int, t *store.Reading) (store.Applied, error) {
	t.Looked, r.looked = r.looked, store.Looked{}
	return r.gates[gate].Apply(context.Background(), t)
}

// database is all of a world that is in Redis.
type database struct {
	packed string // as restoreScript takes it
	now    int64  // by the gates' clock, ms
	runs   [2]*runState
	looked store.Looked
}

// What scripts only write, and what no world of a case changes, is left out.
const dumpText = `#!lua
local all, contents = {}, {}
for _, key in ipairs(redis.call('KEYS', '*')) do
  if not string.find(key, ':log$') and not string.find(key, ':[oid]:') then
    local kind = redis.call('TYPE', key).ok
    local read = { hash = 'HGETALL', string = 'GET', zset = 'ZRANGE' }
    local got
    if kind == 'zset' then
      got = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
    else
      got = redis.call(read[kind], key)
    end
    contents[#contents + 1] = { key, kind, got }
  end
end
return { cmsgpack.pack(contents), contents }`

const refillText = `#!lua
local all = redis.call('KEYS', '*')
if #all > 0 then redis.call('DEL', unpack(all)) end
for _, entry in ipairs(cmsgpack.unpack(ARGV[1])) do
  local key, kind, got = entry[1], entry[2], entry[3]
  if kind == 'string' then
    redis.call('SET', key, got)
  elseif kind == 'hash' then
    redis.call('HSET', key, unpack(got))
  else
    for i = 1, #got, 2 do redis.call('ZADD', key, got[i + 1], got[i]) end
  end
end`

var dumpScript, refillScript = redis.NewScript(dumpText), redis.NewScript(refillText)

func (r *interleaveRig) Save(keys []*store.Decide) interleave.Saved {
	raw, err := dumpScript.Run(context.Background(), r.admin, nil).Slice()
	if err != nil {
		r.t.Errorf("dump: %v", err)
		return interleave.Saved{}
	}
	data := &database{packed: raw[0].(string), now: time.Now().UnixMilli() + r.gates[0].ahead.Load(), looked: r.looked}
	for i := range r.gates {
		data.runs[i] = r.servers[i].now.Load()
	}
	contents := map[string]any{}
	for _, entry := range raw[1].([]any) {
		fields := entry.([]any)
		contents[fields[0].(string)] = fields[2]
	}
	saved := interleave.Saved{Data: data, Digest: r.digest(contents, data)}
	for _, d := range keys {
		record, _ := contents[r.record(d)].(string)
		if fields := strings.SplitN(record, "|", 11); len(fields) == 11 {
			saved.Keys = append(saved.Keys, interleave.KeyState{Done: fields[1] == "done", Hold: fields[8]})
		} else {
			saved.Keys = append(saved.Keys, interleave.KeyState{})
		}
	}
	return saved
}

// record is the name of a call's key record.
func (r *interleaveRig) record(d *store.Decide) string {
	names, err := r.gates[0].current(context.Background())
	if err != nil {
		r.t.Fatal(err)
	}
	return r.gates[0].keys.KeyRecord(names.key(d.Group, d.Partition, d.Key))
}

func pairs(raw any) map[string]string {
	m := map[string]string{}
	list, _ := raw.([]any)
	for i := 0; i+1 < len(list); i += 2 {
		m[list[i].(string)] = list[i+1].(string)
	}
	return m
}

func (r *interleaveRig) Restore(saved interleave.Saved) {
	data := saved.Data.(*database)
	if err := refillScript.Run(context.Background(), r.admin, nil, data.packed).Err(); err != nil && err != redis.Nil {
		r.t.Errorf("refill: %v", err)
	}
	r.looked = data.looked
	for i, s := range r.gates {
		// The clock must not go back by what a millisecond hides.
		s.ahead.Store(data.now + 2 - time.Now().UnixMilli())
		r.knows(i, data.runs[i])
	}
}

// knows makes a gate know a run of the store.
func (r *interleaveRig) knows(gate int, state *runState) {
	one := r.servers[gate]
	if one.now.Load() == state {
		return
	}
	one.runs.mu.Lock()
	defer one.runs.mu.Unlock()
	one.now.Store(state)
	one.runs.byEpoch = map[string]string{state.epoch: state.id}
	one.runs.tell()
}

// digest is all contents, without what tells only how they came to be, with times as
// ticks from now.
func (r *interleaveRig) digest(contents map[string]any, data *database) string {
	var text strings.Builder
	for i := range r.gates {
		fmt.Fprintf(&text, "gate knows %t %d\n", data.runs[i].changed, ticksFrom(data.now, data.runs[i].since/1000))
	}
	r.digestLook(&text, contents, data)
	names := make([]string, 0, len(contents))
	for name := range contents {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if strings.HasSuffix(name, ":epoch") || strings.Contains(name, ":x:"+freshCalls) {
			continue // the gates know what epochs are called; and nobody asks for these
		}
		text.WriteString(name)
		text.WriteByte('\n')
		switch value := contents[name].(type) {
		case string:
			text.WriteString(relative(value, data.now))
		case []any:
			fields := pairs(value)
			keys := make([]string, 0, len(fields))
			for key := range fields {
				keys = append(keys, key)
			}
			slices.Sort(keys)
			for _, key := range keys {
				fmt.Fprintf(&text, " %s=%s\n", key, relative(digestField(key, fields[key], data), data.now))
			}
		}
		text.WriteByte('\n')
	}
	return text.String()
}

// digestLook is a look that is under way, and how it stands to what the slot knows.
func (r *interleaveRig) digestLook(text *strings.Builder, contents map[string]any, data *database) {
	look := data.looked
	if look.At == 0 {
		return
	}
	applied, born := int64(0), int64(0)
	if v := strings.Split(pairs(contents[r.gates[0].keys.Slot("lessons", "lesson-1").State])["v"], "|"); len(v) > 6 {
		applied, _ = strconv.ParseInt(v[2], 10, 64)
		born, _ = strconv.ParseInt(v[6], 10, 64)
	}
	fmt.Fprintf(text, "look: known %t, %d open, %d admitted, %d refunded, newer %t, of this life %t, of this run %t\n",
		look.Known, look.Open, look.Admitted, look.Refunded, look.At > applied, look.Born == born, look.At >= data.runs[0].since)
}

// digestField leaves out of a slot's field what only counts or dates: the version and
// life of the slot, and when a hold was taken.
func digestField(key, value string, data *database) string {
	parts := strings.Split(value, "|")
	switch {
	case key == "s":
		fields := slotFields(value)
		return strings.Join(slices.Concat(fields[2:5], fields[9:11], fields[15:]), "|")
	case strings.HasPrefix(key, "h:") && len(parts) > 9:
		parts[7] = ""
		return strings.Join(parts, "|")
	case key == "v" && len(parts) > 4: // what is left plans looks, which cases make as they like
		return strings.Join([]string{parts[0], parts[1], strconv.FormatBool(parts[4] != "")}, "|")
	case key == "r":
		return strconv.FormatBool(value == data.runs[0].id)
	}
	return value
}

var long = regexp.MustCompile(`\d{13,16}`)

// relative writes times as ticks from now.
func relative(text string, now int64) string {
	return long.ReplaceAllStringFunc(text, func(number string) string {
		n, _ := strconv.ParseInt(number, 10, 64)
		switch {
		case n >= attemptZone:
			return "a" + strconv.Itoa(ticksFrom(now, n-attemptZone))
		case n >= confirmedZone:
			return "c"
		case n >= keptZone:
			return "k"
		}
		return strconv.Itoa(ticksFrom(now, n))
	})
}

// Where the holds that never lapse stand among those that do, and attempts; luascripts/slot.lua.
const keptZone, confirmedZone, attemptZone = 3_000_000_000_000_000, 4_000_000_000_000_000, 7_000_000_000_000_000

func ticksFrom(now, at int64) int { return interleave.Ticks(time.Duration(at-now) * time.Millisecond) }

// Replace is what a failover does: the gates' connections end, and whoever asks first
// finds the data at another process.
func (r *interleaveRig) Replace(saved *interleave.Saved) {
	ctx := context.Background()
	ahead, before := r.gates[0].ahead.Load(), [2]*runState{}
	for i := range r.gates {
		before[i] = r.servers[i].now.Load()
	}
	if saved != nil {
		r.Restore(*saved)
		for i, s := range r.gates {
			s.ahead.Store(ahead)
			r.knows(i, before[i])
		}
		epoch := r.gates[0].keys.Epoch()
		was, err := r.admin.Get(ctx, epoch).Result()
		if err != nil {
			r.t.Errorf("epoch: %v", err)
		}
		_, rest, _ := strings.Cut(was, "|")
		if err := r.admin.Set(ctx, epoch, "0123456789abcdef|"+rest, 0).Err(); err != nil {
			r.t.Errorf("epoch: %v", err)
		}
	} else if err := r.admin.FlushDB(ctx).Err(); err != nil {
		r.t.Errorf("flush: %v", err)
	}
	for _, s := range r.gates {
		s.checkRun(ctx)
	}
}
