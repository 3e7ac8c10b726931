package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/luascripts"
)

// call is one script with its KEYS and ARGV, ready to be sent.
type call struct {
	op     string
	script *luascripts.Script
	keys   []string
	// args are ARGV from the fourth to the last but one: the first three are the
	// same in every script (clock ahead, resent, channel of notices), and so is the
	// last, the store's run. command adds them.
	args []any
	// told stands in the place of the first three in a call that tells its values packed,
	// these among them: resent is the second value.
	told packed
	// resent is set once the call was sent a second time: a copy of it may come late.
	resent bool

	// What its first command is made of.
	words []any
	word  runWord
	cmd   redis.Cmd
}

// calls are those that nobody uses any more: each request makes two, whose memory is kept.
var calls = sync.Pool{New: func() any { return new(call) }}

// newCall returns an empty one. It need not be freed.
func newCall(op string, script *luascripts.Script) *call {
	c := calls.Get().(*call)
	c.op, c.script = op, script
	if c.told == nil {
		c.told = make(packed, 0, 512)
	}
	return c
}

// free gives back a call that has been answered; it must not be used after that. One that was
// sent again is left alone: its first copy may still be written.
func (c *call) free() {
	if c.resent || cap(c.told) > maxToldKept {
		return
	}
	clear(c.keys)
	clear(c.args)
	clear(c.words)
	*c = call{keys: c.keys[:0], args: c.args[:0], told: c.told[:0], words: c.words[:0]}
	calls.Put(c)
}

// maxToldKept is the most of a call's values in bytes that are kept for others: long ones
// are rare.
const maxToldKept = 4 << 10

// shared says that the call is on a request's way, and short: it may be sent with others.
func (c *call) shared() bool { return c.op == "decide" || c.op == "settle" }

// command is EVALSHA, or EVAL where Redis does not know the script. It is told most texts by
// their address: in an interface, a text itself would be copied to a place of its own.
func (s *Store) command(ctx context.Context, c *call, resent, whole bool) *redis.Cmd {
	first := !resent && !whole
	words, word := c.words[:0], &c.word
	if !first { // whose memory the first copy may still be written from
		words, word = nil, new(runWord)
	}
	words = slices.Grow(words, 7+len(c.keys)+len(c.args))
	if whole {
		words = append(words, "EVAL", c.script.Source)
	} else {
		words = append(words, "EVALSHA", c.script.SHA1)
	}
	words = append(words, len(c.keys))
	keys := s.oneShard(c.keys)
	for i := range keys {
		words = append(words, &keys[i])
	}
	switch {
	case c.told == nil && resent:
		words = append(words, s.ahead.Load(), "1", &s.channel)
	case c.told == nil:
		words = append(words, s.ahead.Load(), "0", &s.channel)
	case resent: // the first copy may still be written
		told := slices.Replace(slices.Clone(c.told), 1, 2, packed(nil).flag(true)...)
		words = append(words, &told)
	default:
		words = append(words, &c.told)
	}
	word.server = s.server
	words = append(append(words, c.args...), word)
	if !first {
		return redis.NewCmd(ctx, words...)
	}
	c.words, c.cmd = words, *redis.NewCmd(ctx, words...)
	return &c.cmd
}

// run sends a call and returns its raw reply; redis.Nil where the script said nil.
func (s *Store) run(ctx context.Context, c *call) (reply any, err error) {
	err = s.try(ctx, c.op, func(ctx context.Context, client redis.UniversalClient, resent bool) error {
		c.resent = resent
		cmd := s.command(ctx, c, resent, false)
		err := client.Process(ctx, once{cmd, c.shared()})
		if isUnknownScript(err) {
			cmd = s.command(ctx, c, resent, true)
			err = client.Process(ctx, once{Cmd: cmd}) // too long to hold others up
		}
		reply = cmd.Val()
		return err
	})
	return reply, err
}

// loadScript makes a script known to every server that a client may send it to.
func loadScript(ctx context.Context, client redis.UniversalClient, script *luascripts.Script) error {
	if cluster, ok := client.(*redis.ClusterClient); ok {
		return cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
			return node.ScriptLoad(ctx, script.Source).Err()
		})
	}
	return client.ScriptLoad(ctx, script.Source).Err()
}

// try makes one attempt and, if that was sent and ends without a reply, one more over a new
// connection, all within the store's timeout. redis.Nil is a reply.
func (s *Store) try(ctx context.Context, op string, attempt func(ctx context.Context, client redis.UniversalClient, resent bool) error) error {
	start := time.Now()
	err := s.attempts(ctx, op, attempt)
	if err == redis.Nil {
		s.observe(op, time.Since(start), nil)
	} else {
		s.observe(op, time.Since(start), err)
	}
	return err
}

func (s *Store) attempts(ctx context.Context, op string, attempt func(ctx context.Context, client redis.UniversalClient, resent bool) error) error {
	if s.closed.Load() {
		return &store.Error{Op: op, Kind: store.KindClosed, Err: redis.ErrClosed}
	}
	if _, limited := ctx.(*timed); !limited {
		var timer *timed
		ctx, timer = within(ctx, s.timeout)
		defer timer.stop()
	}
	if err := ctx.Err(); err != nil {
		return &store.Error{Op: op, Kind: store.KindTimeout, Err: err}
	}

	err := patiently(ctx, func() error {
		ctx, timer := within(ctx, firstShare(s.timeout))
		defer timer.stop()
		return attempt(ctx, s.client, false)
	})
	if err == nil || err == redis.Nil {
		return err
	}
	maybe := mayHaveRun(err)
	if errors.Is(err, errUnsent) || isReply(err) && !elsewhere[code(err)] || ctx.Err() != nil || s.closed.Load() {
		return s.failure(op, err, maybe)
	}
	s.lookAround(ctx)

	err = patiently(ctx, func() error { return attempt(ctx, s.fresh, true) })
	if err == nil || err == redis.Nil {
		return err
	}
	return s.failure(op, err, maybe || mayHaveRun(err))
}

// movePause is how long a call waits for the rest of its keys.
const movePause = 5 * time.Millisecond

// patiently repeats an attempt that Redis refuses because some of the keys have been
// moved to another shard and some have not, for as long as there is time for another.
func patiently(ctx context.Context, attempt func() error) error {
	for {
		start := time.Now()
		err := attempt()
		if code(err) != "TRYAGAIN" {
			return err
		}
		// One that was cut off might have run.
		if end, bounded := ctx.Deadline(); bounded && time.Until(end) < 2*movePause+4*time.Since(start) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(movePause):
		}
	}
}

// checkCall keeps out of the store what a packed hold could not carry. It is the
// caller's mistake, no failure of the store.
func checkCall(pool string, units int64, ids ...string) error {
	if pool != "" && units < 1 {
		return fmt.Errorf("%d units of pool %q: a hold takes 1 or more", units, pool)
	}
	for _, id := range ids {
		for i := range len(id) {
			if c := id[i]; !(c == '-' || c == '_' || '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z') {
				return fmt.Errorf("id %q: use 16 to 64 of 0-9A-Za-z_-", id)
			}
		}
	}
	return nil
}

func flag(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

// millis rounds up, so that what is short does not become nothing.
func millis(d time.Duration) string { return strconv.FormatInt(inMillis(d), 10) }

func inMillis(d time.Duration) int64 { return int64((d + time.Millisecond - 1) / time.Millisecond) }

// unixMillis is 0 for the zero time.
func unixMillis(t time.Time) string {
	if t.IsZero() {
		return "0"
	}
	return strconv.FormatInt(t.UnixMilli(), 10)
}

// life is how long a slot's keys stay: Retain, but never less than what stands in
// them needs.
func life(retain, holdTTL, lease time.Duration) string {
	return millis(lifetime(retain, holdTTL, lease))
}

func lifetime(retain, holdTTL, lease time.Duration) time.Duration {
	return max(retain, holdTTL+store.CopyWindow, lease+store.CopyWindow)
}

// unitsOf are the units of a call that takes any: a cancel or confirm takes none.
func unitsOf(action store.Action, units int64) int64 {
	if action == store.Book {
		return units
	}
	return 1
}
