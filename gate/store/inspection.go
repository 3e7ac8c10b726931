package store

import "time"

// Inspection is what the servers of a store are set up like, and whose slots they
// hold, as far as it could be seen.
type Inspection struct {
	Mode    string // standalone | sentinel | cluster
	Schema  int    // of the stored form that this gate writes
	Servers []Server
	// Started are the pools asked about that have slots in the store, Others those under
	// the same prefix that were not asked about.
	Started, Others []string
	// Elsewhere are prefixes under which the store has slots of a pool asked about.
	Elsewhere map[string][]string
	// Partly: the store has more keys than were looked at: Others and Elsewhere may
	// not be all.
	Partly bool
}

// Server is one server that takes writes: the only one, or the master of a shard.
type Server struct {
	Address   string
	Version   string // such as "redis 7.0.15"
	Role      string // master | slave
	Replicas  int    // connected ones
	MaxMemory int64  // bytes, 0 no limit
	Eviction  string // maxmemory-policy
	// MinReplicas is min-replicas-to-write, 0 off; MinReplicasLag is how long a replica
	// may be silent and counts.
	MinReplicas    int
	MinReplicasLag time.Duration
	// CutOff is how long a master of a cluster that is cut off from the others still takes
	// writes; 0 not known, or for as long as it is reached.
	CutOff      time.Duration
	Persistence string // aof | rdb | none
	// Hidden: it does not show its configuration, so that what only that tells is not
	// known: MinReplicas may be more than 1, the durations are 0, and a Persistence of
	// "none" may be "rdb".
	Hidden bool
}

// Evicts reports whether the server drops keys when its memory is full.
func (s *Server) Evicts() bool { return s.MaxMemory > 0 && s.Eviction != "noeviction" }
