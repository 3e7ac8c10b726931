package redisstore

import "github.com/slotgate/slotgate/gate/store"

// WatchRun returns a watch on the store's run: on a cluster, on that of any shard.
// It hears of a change before a call is answered under the new run, because a
// connection asks for its server's run before anything else.
func (s *Store) WatchRun() store.Watch { return s.runWatches.add(anyRun) }

// runChanged wakes those who watch the run.
func (s *Store) runChanged() { s.runWatches.fire(anyRun) }

const anyRun = ""
