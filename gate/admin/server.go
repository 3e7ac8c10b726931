package admin

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/slotgate/slotgate/gate"
	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
)

const (
	maxHeader   = 64 << 10 // a slot of 1 KiB is 3 KiB in a URL
	maxBody     = 64 << 10
	maxSlotName = 1 << 10 // as everywhere in the gate (contract: `unidentified`)
)

// Gate is what operators see of, and change in, the running gate. It is safe
// for concurrent use.
type Gate interface {
	Rules() []gate.RuleStatus
	// SetMode and SetModeAll take effect for requests that arrive afterwards.
	SetMode(rule, mode string) error
	SetModeAll(mode string) error
	Status() gate.Status
	// Query is how the pool's slot is asked for in the store; false when there
	// is no such pool.
	Query(pool, slot string) (store.SlotQuery, bool)
	Pools() []string
	// Demand is what this gate has seen of a slot's bookings.
	Demand(pool, slot string) gate.Demand
}

// Slots is the part of store.Store that operators use.
type Slots interface {
	Slot(ctx context.Context, q store.SlotQuery) (store.Slot, error)
	Slots(ctx context.Context, q store.SlotQuery, cursor string, limit int) ([]store.Slot, string, error)
	Change(ctx context.Context, q store.SlotQuery, c store.SlotChange) (store.Slot, error)
	Release(ctx context.Context, q store.SlotQuery, hold string) (decision.HoldState, error)
	Ledger(ctx context.Context, pool, slot string, limit int) ([]store.Entry, error)
}

// Truth looks at a slot's truth because an operator asks, now and whoever else is
// looking. An error says what kept it from knowing.
type Truth interface {
	Resync(ctx context.Context, pool, slot string) error
}

// Options of a Server; all but Truth, Servers, Peers and Token are required.
type Options struct {
	Gate    Gate
	Slots   Slots
	Truth   Truth   // nil: no pool has a source
	Servers Servers // nil: the store has none
	Peers   Peers   // nil: the store has this gate alone
	Metrics *Metrics
	Version string
	// Reload reads the configuration anew and puts it in effect; nil: it cannot.
	Reload func() (Reloaded, error)
	// Listen is the configured address. Without a Token it must be loopback.
	Listen string
	Token  string
	Logger *slog.Logger
}

// Server serves the admin API on a listener of its own.
type Server struct {
	gate     Gate
	slots    Slots
	truth    Truth
	servers  Servers
	peers    Peers
	metrics  *Metrics
	version  string
	reload   func() (Reloaded, error)
	access   access
	log      *slog.Logger
	http     *http.Server
	draining atomic.Bool
}

// New returns a server that is not serving yet. It refuses an address that
// others can reach when there is no token.
func New(o Options) (*Server, error) {
	access, err := newAccess(o.Listen, o.Token)
	if err != nil {
		return nil, err
	}
	s := &Server{gate: o.Gate, slots: o.Slots, truth: o.Truth, servers: o.Servers, peers: o.Peers, metrics: o.Metrics, version: o.Version, reload: o.Reload, access: access, log: o.Logger}
	s.http = &http.Server{
		Handler:           s.routes(),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      60 * time.Second, // 10,000 slots to a slow reader
		IdleTimeout:       60 * time.Second,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(o.Logger.Handler(), slog.LevelWarn),
	}
	return s, nil
}

// Serve answers until Shutdown or Close, then returns nil. It closes ln.
func (s *Server) Serve(ln net.Listener) error {
	if err := s.http.Serve(newBoundedListener(ln, maxConnections)); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Drain makes /readyz answer 503, so that balancers send no more, before the gate
// stops accepting.
func (s *Server) Drain() { s.draining.Store(true) }

// Shutdown stops listening and waits for running calls until ctx ends.
func (s *Server) Shutdown(ctx context.Context) error { return s.http.Shutdown(ctx) }

// Close drops the listener and all connections.
func (s *Server) Close() error { return s.http.Close() }
