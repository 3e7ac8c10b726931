package redisstore

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/slotgate/slotgate/luascripts"
)

const (
	// runCheck is how often the store is asked for its run between connections.
	runCheck = time.Second
	// epochLife is how long the store remembers that its run has changed.
	epochLife = 400 * 24 * time.Hour
)

// runs is which run of the store this gate is connected to. A run ends when the
// server loses its data or restarts, or another one takes its place: the data may
// then be other than it was (design H16). luascripts/epoch.lua tells.
type runs struct{ now atomic.Pointer[runState] }

type runState struct {
	id      string
	changed bool  // a gate has seen the store change into this run
	since   int64 // when that was first seen, by the store's clock in µs
}

// MarshalBinary writes the last argument of every script. It is called when a
// command is written to its connection, so after that connection, if it is new, has
// been asked: no script is told the run of a server that is gone.
func (r *runs) MarshalBinary() ([]byte, error) {
	state := r.now.Load()
	if state == nil {
		return nil, errors.New("the store's run is not known yet")
	}
	return []byte(state.id + "|" + flag(state.changed) + "|" + strconv.FormatInt(state.since, 10)), nil
}

// greet asks a new connection for the server's run before anything else is sent.
func (s *Store) greet(ctx context.Context, cn *redis.Conn) error { return s.askRun(ctx, cn) }

// asker is one connection: what it is asked is answered by one server.
type asker interface {
	Info(ctx context.Context, section ...string) *redis.StringCmd
	Eval(ctx context.Context, script string, keys []string, args ...any) *redis.Cmd
}

// askRun notes the run of the server behind a connection. Connections ask at the
// same time: who finds that another has noted something meanwhile asks again, for
// its own answer may be that of a server which has gone since.
func (s *Store) askRun(ctx context.Context, to asker) error {
	for {
		before := s.runs.now.Load()
		state, err := s.lookAtRun(ctx, to, before)
		if err != nil {
			return err
		}
		if before != nil && *before == *state {
			state = before
		}
		if s.runs.now.CompareAndSwap(before, state) {
			if before != nil && before.id != state.id {
				s.runChanged()
				s.log.Warn("the store is another one than before, was restarted or was emptied: slots count as learned until they are set or verified")
			}
			return nil
		}
	}
}

func (s *Store) lookAtRun(ctx context.Context, to asker, before *runState) (*runState, error) {
	process, err := to.Info(ctx, "server").Result()
	if err != nil {
		return nil, err
	}
	replication, err := to.Info(ctx, "replication").Result()
	if err != nil {
		return nil, err
	}
	id, second := infoField(process, "run_id"), infoField(replication, "master_replid2")
	if id == "" || second == "" {
		return nil, errors.New("INFO names no run_id and master_replid2: slotgate needs Redis 7 or what says the same")
	}
	known := ""
	if before != nil {
		known = before.id
	}
	raw, err := to.Eval(ctx, luascripts.Epoch.Source, []string{s.keys.Epoch()},
		id, second, known, rand.Text()[:16], millis(epochLife), s.ahead.Load()).Result()
	if err != nil {
		return nil, err
	}
	r := newReply("run", raw, 3)
	state := &runState{id: r.text(), changed: r.flag(), since: r.count()}
	return state, r.end()
}

// infoField is one line of INFO.
func infoField(info, name string) string {
	for lines := bufio.NewScanner(strings.NewReader(info)); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), name+":"); ok {
			return value
		}
	}
	return ""
}

// watchRun asks for the run every so often: a server can be replaced behind a
// connection that stays.
func (s *Store) watchRun(ctx context.Context) {
	tick := time.NewTicker(runCheck)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.checkRun(ctx)
		}
	}
}

func (s *Store) checkRun(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	connection := s.client.Conn()
	defer connection.Close()
	_ = s.askRun(ctx, connection) // a store that is away has no run to tell
}
