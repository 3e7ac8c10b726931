package admin

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/slotgate/slotgate/gate/peers"
	"github.com/slotgate/slotgate/gate/store"
)

// Servers is what is known of the store's servers.
type Servers interface {
	// Inspected is what the last look at them showed, and when; the zero time: none yet.
	Inspected() (store.Inspection, time.Time)
	// RunIDs are the runs that their data is in, shortened.
	RunIDs() []string
}

// Peers is what was heard of the other gates of the store.
type Peers interface{ Seen() peers.Seen }

// WatchPeers adds the gauge of gates that decide by other rules or pools. It is called
// once, before the first scrape.
func (m *Metrics) WatchPeers(p Peers) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "slotgate_config_differs",
		Help: "Running gates of the same store that decide by other rules or pools than this one.",
	}, func() float64 { return float64(p.Seen().Differing) }))
}

// gatesView counts the gates of the store, this one included; null where not known.
type gatesView struct {
	Running   *int `json:"running"`
	Differing *int `json:"differing"` // of them, with another config_hash
}

func (s *Server) viewGates() gatesView {
	if s.peers == nil {
		return gatesView{}
	}
	seen := s.peers.Seen()
	if !seen.Known {
		return gatesView{}
	}
	return gatesView{&seen.Running, &seen.Differing}
}

type storeView struct {
	Kind     string       `json:"kind"`   // memory | redis
	Mode     string       `json:"mode"`   // standalone | sentinel | cluster; "" for memory
	Schema   int          `json:"schema"` // of the stored form, 0 for memory
	Runs     []string     `json:"runs"`   // changes when the data may be other than it was
	LookedAt *time.Time   `json:"looked_at"`
	Servers  []serverView `json:"servers"` // those that take writes
}

type serverView struct {
	Address     string `json:"address"`
	Version     string `json:"version"`
	Role        string `json:"role"`
	Replicas    int    `json:"replicas"`
	MaxMemory   int64  `json:"maxmemory"` // bytes, 0: no limit
	Eviction    string `json:"maxmemory_policy"`
	Evicts      bool   `json:"evicts"`
	Persistence string `json:"persistence"` // aof | rdb | none
	MinReplicas int    `json:"min_replicas_to_write"`
	// MinReplicasLag is how many seconds of settlements a master that is cut off from its
	// replicas may acknowledge and lose; null without min_replicas_to_write.
	MinReplicasLag *float64 `json:"min_replicas_max_lag"`
	// Hidden: CONFIG GET is refused. The lag and snapshots (rdb) are then not known.
	Hidden bool `json:"config_hidden"`
}

func (s *Server) viewStore() storeView {
	if s.servers == nil {
		return storeView{Kind: "memory", Runs: []string{}, Servers: []serverView{}}
	}
	seen, at := s.servers.Inspected()
	view := storeView{Kind: "redis", Mode: seen.Mode, Schema: seen.Schema, Runs: s.servers.RunIDs(),
		LookedAt: orNull(at), Servers: make([]serverView, len(seen.Servers))}
	for i := range seen.Servers {
		view.Servers[i] = viewServer(&seen.Servers[i])
	}
	return view
}

func viewServer(s *store.Server) serverView {
	view := serverView{
		Address: s.Address, Version: s.Version, Role: s.Role, Replicas: s.Replicas,
		MaxMemory: s.MaxMemory, Eviction: s.Eviction, Evicts: s.Evicts(),
		Persistence: s.Persistence, MinReplicas: s.MinReplicas, Hidden: s.Hidden,
	}
	if s.MinReplicas > 0 && !s.Hidden {
		seconds := s.MinReplicasLag.Seconds()
		view.MinReplicasLag = &seconds
	}
	return view
}
