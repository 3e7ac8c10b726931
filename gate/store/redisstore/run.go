package redisstore

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
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
// then be other than it was (design H16). luascripts/epoch.lua tells. On a cluster
// each shard has a run of its own.
type runs struct {
	mu      sync.Mutex
	servers map[string]*server // by address; a store that is one server has the address ""
	byEpoch map[string]string  // the run that was last seen under each epoch key
}

// server is one server of the store: the only one, or a node of a cluster.
type server struct {
	runs  *runs
	now   atomic.Pointer[runState]
	word  atomic.Pointer[[]byte] // the last argument of scripts that are sent to it
	doubt atomic.Bool            // whether it must be asked before the next script
	turn  chan struct{}          // taken while it is asked for a script's sake
	away  bool                   // it did not answer lately; under runs.mu
}

// runState is what a server told of its run, and what it was when it did.
type runState struct {
	id      string
	changed bool  // a gate has seen the store change into this run
	since   int64 // when that was first seen, by the store's clock in µs

	process, second string // its run_id and master_replid2
	epoch           string // where its run stands; "" if it serves no keys
}

// nobody is the run of a server that serves no keys. It will refuse the script; should
// it serve some by then, no slot counts as verified under this.
const nobody = "nobody"

// at returns the server with an address.
func (r *runs) at(address string) *server {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.servers == nil {
		r.servers, r.byEpoch = make(map[string]*server), make(map[string]string)
	}
	one := r.servers[address]
	if one == nil {
		one = &server{runs: r, turn: make(chan struct{}, 1)}
		r.servers[address] = one
	}
	return one
}

// runWord is the last argument of a script; on a cluster, nodeHook fills it in. It is
// written as ID[,ID…]|CHANGED|SINCE: the run of the server that it is sent
// to, then those of the other shards; whether any gate has seen the store change, and
// when that was last seen.
type runWord struct{ server *server }

// MarshalBinary is called when a command is written to its connection, so after that
// connection, if it is new, has been asked: no script is told the run of a server that
// is gone.
func (w *runWord) MarshalBinary() ([]byte, error) {
	if w.server != nil {
		if word := w.server.word.Load(); word != nil {
			return *word, nil
		}
	}
	return nil, errors.New("the store's run is not known yet")
}

// note replaces what is known of a server, unless that is no longer before. It calls
// announce before any script is told.
func (one *server) note(before, state *runState, announce func()) bool {
	r := one.runs
	r.mu.Lock()
	defer r.mu.Unlock()
	if !one.now.CompareAndSwap(before, state) {
		return false
	}
	one.away = false
	one.doubt.Store(state.epoch == "")
	if before != nil && before.epoch != state.epoch && r.byEpoch[before.epoch] == before.id {
		delete(r.byEpoch, before.epoch)
	}
	if state.epoch != "" {
		r.byEpoch[state.epoch] = state.id
	}
	announce()
	r.tell()
	return true
}

// tell writes the words of all servers anew. A shard's run counts for slots that were
// moved to another shard, too, as long as it is the run under that shard's epoch: they
// were moved with their data.
func (r *runs) tell() {
	var current []string
	changed, since := r.lastChange()
	for _, one := range r.servers {
		if state := one.now.Load(); state != nil && !one.away && r.byEpoch[state.epoch] == state.id {
			current = append(current, state.id)
		}
	}
	for _, one := range r.servers {
		state := one.now.Load()
		if state == nil {
			continue
		}
		var word bytes.Buffer
		if state.epoch == "" {
			word.WriteString(nobody + "|1|")
		} else {
			word.WriteString(state.id)
			for _, id := range current {
				if id != state.id {
					word.WriteString("," + id)
				}
			}
			word.WriteString("|" + flag(changed) + "|")
		}
		word.WriteString(strconv.FormatInt(since, 10))
		text := word.Bytes()
		one.word.Store(&text)
	}
}

// lastChange is whether any server has changed, and when the last one was seen to.
func (r *runs) lastChange() (changed bool, since int64) {
	for _, one := range r.servers {
		if state := one.now.Load(); state != nil {
			changed, since = changed || state.changed, max(since, state.since)
		}
	}
	return changed, since
}

// asker is one connection: what it is asked is answered by one server.
type asker interface {
	Info(ctx context.Context, section ...string) *redis.StringCmd
	ClusterNodes(ctx context.Context) *redis.StringCmd
	Eval(ctx context.Context, script string, keys []string, args ...any) *redis.Cmd
}

// askRun notes the run of the server behind a connection. Connections ask at the
// same time: who finds that another has noted something meanwhile asks again, for
// its own answer may be that of a server which has gone since.
func (s *Store) askRun(ctx context.Context, one *server, to asker) error {
	for {
		before := one.now.Load()
		state, known, err := s.lookAtRun(ctx, to, before)
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

// lookAtRun also returns the run that the server was expected to be in; "" if any.
func (s *Store) lookAtRun(ctx context.Context, to asker, before *runState) (state *runState, known string, err error) {
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
	adopt, elsewhere := false, int64(0)
	if s.server == nil {
		if state.epoch, err = s.shardEpoch(ctx, to, replication); err != nil {
			return nil, "", err
		}
		if state.epoch == "" {
			state.id = known
			return state, known, nil
		}
		known, adopt, elsewhere = s.runs.expect(before, state)
	}
	raw, err := to.Eval(ctx, luascripts.Epoch.Source, []string{state.epoch},
		state.process, state.second, known, rand.Text()[:16], millis(epochLife), s.ahead.Load(),
		flag(adopt), elsewhere).Result()
	if err != nil {
		return nil, "", err
	}
	r := newReply("run", raw, 3)
	state.id, state.changed, state.since = r.text(), r.flag(), r.count()
	return state, known, r.end()
}

// shardEpoch is where the run of the shard stands whose master is behind a connection;
// "" if that is no master, or serves nothing.
func (s *Store) shardEpoch(ctx context.Context, to asker, replication string) (string, error) {
	if infoField(replication, "role") != "master" {
		return "", nil
	}
	nodes, err := to.ClusterNodes(ctx).Result()
	if err != nil {
		return "", err
	}
	lowest, err := lowestSlot(nodes)
	if err != nil || lowest < 0 {
		return "", err
	}
	return s.epochAt(lowest), nil
}

// expect is the run that a server should be in, "" if this gate cannot tell; whether
// that is known of the server itself while its epoch's key has changed; and when any
// shard was last seen to change.
func (r *runs) expect(before, state *runState) (known string, adopt bool, elsewhere int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, elsewhere = r.lastChange()
	if before != nil && before.id != "" && before.process == state.process && before.second == state.second {
		return before.id, before.epoch != state.epoch, elsewhere
	}
	return r.byEpoch[state.epoch], false, elsewhere
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

// gone says that a server did not answer: its run is nobody else's any more.
func (one *server) gone() {
	one.runs.mu.Lock()
	defer one.runs.mu.Unlock()
	if !one.away {
		one.away = true
		one.runs.tell()
	}
}

// askOn asks over a connection of a client of one server.
func (s *Store) askOn(ctx context.Context, one *server, client *redis.Client) error {
	connection := client.Conn()
	defer connection.Close()
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
