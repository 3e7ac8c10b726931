package redisstore

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// runCheck is how often the store is asked for its run between connections.
	runCheck = time.Second
	// epochLife is how long the store remembers that its run has changed.
	epochLife = 400 * 24 * time.Hour
)

// runs is which run of the store this gate is connected to. A run ends when the
// server restarts or another one takes its place: its data may then be other than
// it was (design H16).
type runs struct{ now atomic.Pointer[runState] }

type runState struct {
	id      string
	changed bool // a gate has seen the run change into this one
}

// MarshalBinary writes the last argument of every script. It is called when a
// command is written to its connection, so after that connection, if it is new, has
// been asked: no script is told the run of a server that is gone.
func (r *runs) MarshalBinary() ([]byte, error) {
	state := r.now.Load()
	if state == nil {
		return nil, errors.New("the store's run is not known yet")
	}
	return []byte(state.id + "|" + flag(state.changed)), nil
}

// greet asks a new connection for the server's run before anything else is sent.
func (s *Store) greet(ctx context.Context, cn *redis.Conn) error { return s.askRun(ctx, cn) }

type asker interface {
	Info(ctx context.Context, section ...string) *redis.StringCmd
	Get(ctx context.Context, key string) *redis.StringCmd
	Set(ctx context.Context, key string, value any, expiration time.Duration) *redis.StatusCmd
}

func (s *Store) askRun(ctx context.Context, to asker) error {
	text, err := to.Info(ctx, "server").Result()
	if err != nil {
		return err
	}
	replication, err := to.Info(ctx, "replication").Result()
	if err != nil {
		return err
	}
	process, data := infoField(text, "run_id"), infoField(replication, "master_replid")
	if process == "" || data == "" {
		return strange("run", "INFO without run_id and master_replid")
	}
	// The one changes with a restart, the other with a promotion. Short, because it
	// stands in every slot.
	sum := sha256.Sum256([]byte(process + data))
	id := hex.EncodeToString(sum[:8])
	marked, err := to.Get(ctx, s.keys.Epoch()).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return err
	}
	before := s.runs.now.Load()
	state := &runState{id: id, changed: marked == id}
	switch {
	case before == nil:
	case before.id == id:
		state.changed = state.changed || before.changed
	default:
		state.changed = true
		s.log.Warn("the store is another one than before, or was restarted: slots count as learned until they are set or verified")
	}
	if state.changed && marked != id {
		if err := to.Set(ctx, s.keys.Epoch(), id, epochLife).Err(); err != nil {
			return err
		}
	}
	if before == nil || *before != *state {
		s.runs.now.Store(state)
	}
	return nil
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
			asking, cancel := context.WithTimeout(ctx, s.timeout)
			_ = s.askRun(asking, s.client) // a store that is away has no run to tell
			cancel()
		}
	}
}
