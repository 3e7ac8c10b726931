package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/slotgate/slotgate/gate"
	"github.com/slotgate/slotgate/gate/accesslog"
	"github.com/slotgate/slotgate/gate/admin"
	"github.com/slotgate/slotgate/gate/edge"
	"github.com/slotgate/slotgate/gate/peers"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/gate/store/redisstore"
	"github.com/slotgate/slotgate/gate/trace"
	"github.com/slotgate/slotgate/gate/truth"
	"github.com/slotgate/slotgate/gate/truth/source"
	"github.com/slotgate/slotgate/gate/upstream"
	"github.com/slotgate/slotgate/rules"
)

// settleGrace is what settlements get beyond server.drain: a request that ended
// with the drain still has a store call to make.
const settleGrace = time.Second

// errSecondSignal ends a drain that somebody does not want to wait for.
var errSecondSignal = errors.New("stopped by a second signal; requests under way were dropped")

// service is a running gate: everything between the configuration and the
// listeners, wired once. A store and listeners that are there already are used,
// and closed at the end like its own.
type service struct {
	config  *rules.Config
	places  rules.Places // of the configuration
	log     *slog.Logger
	stdout  io.Writer // of the access log "-"
	access  *accesslog.Log
	tracer  *trace.Tracer // nil: off
	metrics *admin.Metrics
	store   store.Store
	servers *storeWatch // of the store, if it has any
	peers   *peers.Peers
	budget  *edge.Budget
	parts   current
	gate    *gate.Gate
	edge    *edge.Server
	admin   *admin.Server

	reloader *reloader

	clients   net.Listener // server.listen
	operators net.Listener // admin.listen
}

// serve runs a gate until a signal ends it, or a listener fails.
func serve(config *rules.Config, flags *configFlags, signals <-chan os.Signal, logs logs) error {
	s := &service{config: config, log: logs.log, stdout: logs.stdout}
	if flags != nil {
		s.places = flags.places()
	}
	s.reloader = &reloader{service: s, flags: flags, logs: logs, config: config}
	return s.serve(signals)
}

func (s *service) serve(signals <-chan os.Signal) error {
	defer s.close()
	if err := s.wire(); err != nil {
		return err
	}
	if err := s.listen(); err != nil {
		return err
	}
	forgetStart()
	counting, stopCounting := context.WithCancel(context.Background())
	var background sync.WaitGroup
	background.Go(func() { s.metrics.CountHolds(counting, s.gate, s.store) })
	if s.reloader != nil {
		background.Go(func() { s.reloader.watch(counting) })
	}
	if s.servers != nil {
		background.Go(func() { s.servers.run(counting) })
	}
	defer func() {
		stopCounting()
		background.Wait()
	}()

	s.parts.Load().truth.Start()
	failed := make(chan error, 2)
	background.Go(func() { failed <- s.edge.Serve(s.clients) })
	background.Go(func() { failed <- s.admin.Serve(s.operators) })
	s.log.Info("slotgate serves", "version", readBuild().version,
		"listen", s.clients.Addr().String(), "admin", s.operators.Addr().String(),
		"upstream", s.config.Upstream.URL, "store", s.config.Store.Kind, "rules", len(s.config.Rules))

	err := errors.Join(s.untilTold(signals, failed), s.drain(signals))
	if err == nil {
		s.log.Info("stopped")
	}
	return err
}

// wire makes the parts, from the store outwards. Nothing of it waits for another
// machine.
func (s *service) wire() (err error) {
	build := readBuild()
	if err := s.openLogs(); err != nil {
		return err
	}
	s.metrics = admin.NewMetrics(s.config, build.version, build.commit)
	s.metrics.WatchAccessLog(s.access)
	if s.store == nil {
		if s.store, err = openStore(s.config.Store, s.metrics, s.log); err != nil {
			return err
		}
	}
	s.budget = edge.NewBudget(int64(s.config.Server.MaxBuffered))
	now := &parts{upstream: s.config.Upstream}
	s.parts.Store(now)
	if now.backend, err = s.openBackend(s.config); err != nil {
		return err
	}
	if now.truth, err = s.openTruth(s.config); err != nil {
		return err
	}
	set, err := rules.NewSet(s.config)
	if err != nil {
		return err
	}
	parts := gate.Options{
		Config: s.config, Set: set, Store: s.store, Backend: now.backend, Truth: now.truth,
		Meter: s.metrics, Logger: s.log,
	}
	if s.tracer != nil {
		parts.Tracer = s.tracer
	}
	s.gate, err = gate.New(parts)
	if err != nil {
		return err
	}
	s.metrics.WatchGate(s.gate)
	s.meet()
	s.edge, err = edge.New(edge.Options{
		Config: s.config.Server, Gate: s.gate, Backend: &s.parts, Meter: s.metrics, Logger: s.log, AccessLog: s.access, Discretion: s.gate, Budget: s.budget,
	})
	if err != nil {
		return err
	}
	options := admin.Options{
		Gate: s.gate, Slots: s.store, Truth: &s.parts, Peers: s.peers, Metrics: s.metrics, Version: build.version,
		Listen: s.config.Admin.Listen, Token: s.config.Admin.Token, Logger: s.log,
	}
	if s.servers != nil {
		options.Servers = s.servers
	}
	if s.reloader != nil {
		options.Reload = func() (admin.Reloaded, error) { return s.reloader.reload("asked for by an operator") }
	}
	s.admin, err = admin.New(options)
	return err
}

func (s *service) openBackend(config *rules.Config) (*upstream.Client, error) {
	return upstream.New(upstream.Options{
		URL:            config.Upstream.URL,
		ConnectTimeout: config.Upstream.ConnectTimeout,
		Timeout:        config.Upstream.Timeout,
		IdleTimeout:    config.Server.IdleTimeout,
		MaxConnections: config.Upstream.MaxConnections,
		KeepAlive:      config.Upstream.KeepAlive,
		Breaker:        config.Upstream.Breaker,
		Budget:         s.budget,
	})
}

func (s *service) openTruth(config *rules.Config) (*truth.Engine, error) {
	return truth.Open(config, truth.EngineOptions{
		Store: s.store, Meter: s.metrics, Logger: s.log,
		Source: source.Options{URL: config.Upstream.URL, Log: s.log},
	})
}

// meet has the gate notice what it shares with others: a store's servers, and the gates
// that use them. A store in memory is its own.
func (s *service) meet() {
	if redis, ok := s.store.(*redisstore.Store); ok {
		s.servers = newStoreWatch(redis, s.config, s.places, s.log)
		s.peers = peers.Start(redis, s.gate.Policy, s.log)
	}
	s.metrics.WatchPeers(s.peers)
}

// listen opens both listeners before either is served, so that a gate whose admin
// port is taken does not take bookings for a moment.
func (s *service) listen() (err error) {
	if s.clients == nil {
		if s.clients, err = edge.Listen(s.config.Server.Listen); err != nil {
			return fmt.Errorf("server.listen: %w", err)
		}
	}
	if s.operators == nil {
		if s.operators, err = net.Listen("tcp", s.config.Admin.Listen); err != nil {
			return fmt.Errorf("admin.listen: %w", err)
		}
	}
	return nil
}

// untilTold returns nil at the first signal to end, or the failure of a listener.
func (s *service) untilTold(signals <-chan os.Signal, failed <-chan error) error {
	for {
		select {
		case err := <-failed:
			return fmt.Errorf("a listener failed: %w", err)
		case sig := <-signals:
			if sig != syscall.SIGHUP {
				s.log.Info("draining", "signal", sig.String(), "drain", s.config.Server.Drain.String())
				return nil
			}
			if s.reloader != nil {
				_, _ = s.reloader.reload("SIGHUP") // it logs what came of it
			}
		}
	}
}

// drain ends the service in the order in which its parts need each other: told to
// balancers, then clients, settlements, operators.
func (s *service) drain(signals <-chan os.Signal) error {
	ctx, cancel := context.WithTimeout(context.Background(), s.config.Server.Drain)
	defer cancel()
	defer s.admin.Close()

	s.admin.Drain()
	drained := make(chan error, 1)
	go func() { drained <- s.edge.Shutdown(ctx) }()
	for {
		select {
		case err := <-drained:
			if err != nil {
				err = fmt.Errorf("requests were still running when server.drain (%v) ended: %w", s.config.Server.Drain, err)
			}
			return errors.Join(err, s.settle())
		case sig := <-signals:
			if sig != syscall.SIGHUP {
				cancel()
				<-drained
				return errSecondSignal
			}
		}
	}
}

// settle waits for the last settlements and admin calls.
func (s *service) settle() error {
	ctx, cancel := context.WithTimeout(context.Background(), settleGrace)
	defer cancel()
	s.gate.Close(ctx)
	return s.admin.Shutdown(ctx)
}

// close gives back what wire and listen made; parts they did not come to are nil.
// Listeners that were served are closed already.
func (s *service) close() {
	now, cancel := context.WithCancel(context.Background())
	cancel()
	for _, listener := range []net.Listener{s.clients, s.operators} {
		if listener != nil {
			_ = listener.Close()
		}
	}
	s.peers.Close()
	if s.gate != nil {
		s.gate.Close(now) // again, or without a drain
	}
	if now := s.parts.Load(); now != nil && now.truth != nil {
		now.truth.Close()
	}
	if now := s.parts.Load(); now != nil && now.backend != nil {
		now.backend.Close()
	}
	if s.store != nil {
		_ = s.store.Close()
	}
	s.closeLogs()
}
