package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/slotgate/slotgate/cmd/legacybooking/booking"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

//go:embed demo.yaml
var demoYAML []byte

// stage is the sample API on a loopback port, and a gate before it if wanted.
type stage struct {
	api  *booking.Server
	web  *http.Server
	url  string    // of the API
	gate *demoGate // nil for none
}

// openStage starts the API. Close ends it, and the gate if one was put before it.
func openStage(ctx context.Context, o booking.Options) (*stage, error) {
	api, err := booking.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(err, api.Close())
	}
	s := &stage{
		api: api,
		web: &http.Server{Handler: api, ReadHeaderTimeout: 10 * time.Second},
		url: "http://" + listener.Addr().String(),
	}
	go func() { _ = s.web.Serve(listener) }() // ends with web; a failure shows in every answer
	return s, nil
}

// finish ends gate and API once they have answered what they were asked. The
// database stays open to be read.
func (s *stage) finish() error {
	var err error
	if s.gate != nil {
		err = s.gate.stop()
		s.gate = nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return errors.Join(err, s.web.Shutdown(ctx))
}

func (s *stage) close() error { return errors.Join(s.finish(), s.api.Close()) }

// demoGate is a gate in this process, as `slotgate run` makes it.
type demoGate struct {
	url, admin string
	signals    chan os.Signal
	ended      chan error // gets what serve returned, once
}

// addGate puts a gate before the API. It opens a store of its own unless one is
// given.
func (s *stage) addGate(seats int, given store.Store) error {
	environment := map[string]string{
		"DEMO_LISTEN": "127.0.0.1:0", "DEMO_ADMIN": "127.0.0.1:0",
		"DEMO_BACKEND": s.url, "DEMO_SEATS": strconv.Itoa(seats),
	}
	config, faults := rules.Load("demo.yaml", demoYAML, rules.LoadOptions{Env: func(name string) (string, bool) {
		value, found := environment[name]
		return value, found
	}})
	if config == nil {
		return errors.New(faults.String())
	}
	gate := &service{config: config, log: slog.New(slog.DiscardHandler), store: given}
	if err := gate.listen(); err != nil {
		gate.close()
		return err
	}
	s.gate = &demoGate{
		url:     "http://" + gate.clients.Addr().String(),
		admin:   "http://" + gate.operators.Addr().String(),
		signals: make(chan os.Signal, 1),
		ended:   make(chan error, 1),
	}
	ended, signals := s.gate.ended, s.gate.signals
	go func() { ended <- gate.serve(signals) }()
	return nil
}

func (g *demoGate) stop() error {
	g.signals <- syscall.SIGTERM
	if err := <-g.ended; err != nil {
		return fmt.Errorf("the gate: %w", err)
	}
	return nil
}
