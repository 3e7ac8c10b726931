package redisstore

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
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

// asker is one connection: what it is asked is answered by one server.
type asker interface {
	Info(ctx context.Context, section ...string) *redis.StringCmd
	ClusterNodes(ctx context.Context) *redis.StringCmd
	Get(ctx context.Context, key string) *redis.StringCmd
	Eval(ctx context.Context, script string, keys []string, args ...any) *redis.Cmd
}

// askRun notes the run of the server behind a connection. Connections ask at the
// same time: who finds that another has noted something meanwhile asks again, for
// its own answer may be that of a server which has gone since.
func (s *Store) askRun(ctx context.Context, one *server, to asker) error {
	for {
		before := one.now.Load()
		state, known, err := s.lookAtRun(ctx, one, to, before)
		if err != nil {
			return err
		}
		if before != nil && *before == *state {
			state = before
		}
		changed := known != "" && known != state.id
		if !one.note(before, state, func() {
			if changed {
				s.runChanged()
			}
		}) {
			continue
		}
		if changed {
			s.log.Warn("the store is another one than before, was restarted or was emptied: slots count as learned until they are set or verified")
		}
		return nil
	}
}

// greetRun is askRun over a connection that is new.
func (s *Store) greetRun(ctx context.Context, one *server, to asker) error {
	if s.server == nil {
		end, err := one.firstLook(ctx)
		if err != nil {
			return err
		}
		defer end()
	}
	return s.askRun(ctx, one, to)
}

// lookAtRun also returns the run that the server was expected to be in; "" if any. Where that
// is the run it is in under another name, it is what the store calls it.
func (s *Store) lookAtRun(ctx context.Context, one *server, to asker, before *runState) (state *runState, known string, err error) {
	process, err := to.Info(ctx, "server").Result()
	if err != nil {
		return nil, "", err
	}
	replication, err := to.Info(ctx, "replication").Result()
	if err != nil {
		return nil, "", err
	}
	state = &runState{process: infoField(process, "run_id"), second: infoField(replication, "master_replid2"), epoch: s.keys.Epoch()}
	if state.process == "" || state.second == "" {
		return nil, "", errors.New("INFO names no run_id and master_replid2: slotgate needs Redis 7 or what says the same")
	}
	if before != nil {
		known = before.id
	}
	adopt, elsewhere, name := false, int64(0), rand.Text()[:16]
	if s.server == nil {
		if err := s.findShard(ctx, to, state); err != nil {
			return nil, "", err
		}
		if state.epoch == "" {
			state.id = known
			return state, known, nil
		}
		known, adopt = s.expect(ctx, one, before, state)
		if adopt && known != "" && !standsAt(ctx, to, before) {
			adopt = false
		}
		elsewhere = s.runs.changedAt()
	}
	raw, err := to.Eval(ctx, luascripts.Epoch.Source, []string{state.epoch},
		state.process, state.second, known, name, millis(epochLife), s.ahead.Load(),
		flag(adopt), elsewhere).Result()
	if err != nil {
		return nil, "", err
	}
	r := newReply("run", raw, 3)
	state.id, state.changed, state.since = r.text(), r.flag(), r.count()
	if before != nil && before.process == state.process && before.id == state.id {
		state.was = before.was
	} else if adopt && known != "" && state.id != name && state.since <= before.since {
		// What changed before that has been seen: it stays noted for as long as there are runs.
		state.was, known = strings.ReplaceAll(before.was+","+known, ","+state.id, ""), state.id
	}
	return state, known, r.end()
}

// standsAt reports whether what a server told of its run still stands where it stood, unless
// its hash slot is another server's by now: a server that was emptied since has lost it. One
// that served no keys had nothing to lose.
func standsAt(ctx context.Context, to asker, told *runState) bool {
	if told.epoch == "" {
		return true
	}
	epoch, err := to.Get(ctx, told.epoch).Result()
	if err != nil {
		return err != redis.Nil
	}
	fields := strings.Split(epoch, "|")
	return len(fields) > 2 && fields[0] == told.process && fields[2] == told.id
}

// findShard notes where the run of the shard stands whose master is behind a
// connection. What INFO says of its role may be older than its hash slots.
func (s *Store) findShard(ctx context.Context, to asker, state *runState) error {
	nodes, err := to.ClusterNodes(ctx).Result()
	if err != nil {
		return err
	}
	lowest, replica, err := lowestSlot(nodes)
	state.replica, state.epoch = replica, ""
	if err == nil && lowest >= 0 && !replica {
		state.epoch = s.epochAt(lowest)
	}
	return err
}

// expect is the run that a server of a cluster should be in, "" if this gate cannot
// tell, and whether what stands under its epoch is nothing of its own. Where another
// server had this epoch, this one has taken its place, unless that is alive, a master,
// and has it no more: then hash slots were moved to a server that is new to this gate, or lost.
func (s *Store) expect(ctx context.Context, one *server, before, state *runState) (known string, adopt bool) {
	known, adopt, holder := one.expected(before, state)
	if holder == nil {
		return known, adopt
	}
	had := holder.now.Load()
	ctx, cancel := context.WithTimeout(ctx, s.timeout/16)
	defer cancel()
	if s.askOn(ctx, holder, holder.client) != nil {
		return known, false
	}
	if has := holder.now.Load(); has.process == had.process && !has.replica && has.epoch != state.epoch {
		s.runs.mu.Lock()
		defer s.runs.mu.Unlock()
		known = s.runs.lost(before)
		return known, known == ""
	}
	return known, false
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

// checkRun asks every server that serves keys. One that is away has no run to tell.
func (s *Store) checkRun(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	if s.sentinels != nil {
		_, _ = s.sentinels.find(ctx) // it may be another server by now
	}
	cluster, ok := s.client.(*redis.ClusterClient)
	if !ok {
		_ = s.askOn(ctx, s.server, s.client.(*redis.Client))
		return
	}
	_ = cluster.ForEachMaster(ctx, func(ctx context.Context, client *redis.Client) error {
		one := s.runs.at(client.Options().Addr)
		err := s.askOn(ctx, one, client)
		if err != nil {
			one.gone()
		}
		return nil
	})
}

// confirmRun asks the server that serves a key for its run, on a cluster: its scripts
// cannot see themselves whether that has changed a moment ago (luascripts/run.lua).
func (s *Store) confirmRun(ctx context.Context, op, key string) error {
	if s.server != nil {
		return nil
	}
	return s.attempts(ctx, op, func(ctx context.Context, client redis.UniversalClient, _ bool) error {
		node, err := client.(*redis.ClusterClient).MasterForKey(ctx, key)
		if err != nil {
			return err
		}
		return s.askOn(ctx, s.runs.at(node.Options().Addr), node)
	})
}

// askOn asks over a connection of a client of one server.
func (s *Store) askOn(ctx context.Context, one *server, client *redis.Client) error {
	connection := client.Conn()
	defer connection.Close()
	if one.now.Load() == nil { // the first to look is who greets it
		if err := connection.Ping(ctx).Err(); err != nil {
			return err
		}
	}
	return s.askRun(ctx, one, connection)
}

// known returns when a server's run is known, asking for it if need be.
func (s *Store) known(ctx context.Context, one *server, client *redis.Client) error {
	if one.word.Load() != nil && !one.doubt.Load() {
		return nil
	}
	select {
	case one.turn <- struct{}{}:
		defer func() { <-one.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if one.word.Load() != nil && !one.doubt.Load() {
		return nil // others have asked meanwhile
	}
	if err := s.askOn(ctx, one, client); err != nil {
		return fmt.Errorf("the run of %s: %w", client.Options().Addr, err)
	}
	return nil
}
