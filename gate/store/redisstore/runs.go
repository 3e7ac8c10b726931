package redisstore

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
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
	first chan struct{}          // taken while it is asked for the first time, on a cluster

	client *redis.Client // of this server, on a cluster; under runs.mu
	away   bool          // it did not answer lately; under runs.mu
}

// runState is what a server told of its run, and what it was when it did.
type runState struct {
	id      string
	changed bool  // a gate has seen the store change into this run
	since   int64 // when that was first seen, by the store's clock in µs

	process, second string // its run_id and master_replid2
	replica         bool
	epoch           string // where its run stands; "" if it serves no keys
	// was are other names of this very run, each with a comma before it: another gate named
	// it, which could not know of this one's, when the run came to stand elsewhere.
	was string
}

// nobody is the run of a server that serves no keys. It will refuse the script; should
// it serve some by then, no slot counts as verified under this.
const nobody = "nobody"

// RunIDs are the first characters of the runs that the store's servers are in, sorted;
// none while none has been asked.
func (s *Store) RunIDs() []string {
	s.runs.mu.Lock()
	defer s.runs.mu.Unlock()
	ids := []string{}
	for _, one := range s.runs.servers {
		if state := one.now.Load(); state != nil && state.epoch != "" {
			ids = append(ids, state.id[:min(8, len(state.id))])
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// at returns the server with an address.
func (r *runs) at(address string) *server {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.servers == nil {
		r.servers, r.byEpoch = make(map[string]*server), make(map[string]string)
	}
	one := r.servers[address]
	if one == nil {
		one = &server{runs: r, turn: make(chan struct{}, 1), first: make(chan struct{}, 1)}
		r.servers[address] = one
	}
	return one
}

// reachedBy notes a client of a server, for questions of this gate's own.
func (one *server) reachedBy(client *redis.Client) {
	one.runs.mu.Lock()
	defer one.runs.mu.Unlock()
	one.client = client
}

// firstLook lets one look at a server at a time, until one has told its run. Two that know
// nothing would name the run twice if hash slots are moved between them, and scripts with
// either name could be on their way. It returns what ends the caller's turn.
func (one *server) firstLook(ctx context.Context) (end func(), err error) {
	end = func() {}
	if one.now.Load() != nil {
		return end, nil
	}
	select {
	case one.first <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if one.now.Load() != nil {
		<-one.first
		return end, nil
	}
	return func() { <-one.first }, nil
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
	if moved := before != nil && before.process == state.process && !state.replica && before.epoch != state.epoch; moved && r.byEpoch[before.epoch] == before.id {
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
// were moved with their data. A run's other names are told like those of other shards.
func (r *runs) tell() {
	var current []string
	changed, since := r.lastChange()
	for _, one := range r.servers {
		if state := one.now.Load(); state != nil && state.epoch != "" && !one.away && r.byEpoch[state.epoch] == state.id {
			current = append(current, state.id+state.was)
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
			for _, ids := range current {
				if others, own := strings.CutPrefix(ids, state.id); own {
					word.WriteString(others)
				} else {
					word.WriteString("," + ids)
				}
			}
			word.WriteString("|" + flag(changed) + "|")
		}
		word.WriteString(strconv.FormatInt(since, 10))
		text := word.Bytes()
		one.word.Store(&text)
	}
}

// changedAt is when a server was last seen to change; 0 never.
func (r *runs) changedAt() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, since := r.lastChange()
	return since
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

// expected is the run that a server should be in, "" if this gate cannot tell. adopt
// says that it is known of the server itself, and only the key of its epoch has
// changed; else it is that of holder, the server which had this epoch.
func (one *server) expected(before, state *runState) (known string, adopt bool, holder *server) {
	r := one.runs
	r.mu.Lock()
	defer r.mu.Unlock()
	if before != nil && before.id != "" && before.process == state.process && before.second == state.second {
		return before.id, before.epoch != state.epoch, nil
	}
	known = r.byEpoch[state.epoch]
	for _, other := range r.servers {
		if had := other.now.Load(); other != one && known != "" && had != nil && had.epoch == state.epoch && had.id == known {
			return known, false, other
		}
	}
	if known == "" {
		known = r.lost(before)
	}
	return known, false, nil
}

// lost is the run that a server should be in whose epoch says nothing of it, because hash
// slots were moved just before: that of its own before it was restarted, or that of one which
// is away, for it may have taken over. "" if it is new.
func (r *runs) lost(before *runState) string {
	if before != nil && before.id != "" {
		return before.id
	}
	for _, other := range r.servers {
		if had := other.now.Load(); other.away && had != nil && had.epoch != "" {
			return had.id
		}
	}
	return ""
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
