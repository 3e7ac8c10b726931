package edge

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"

	"github.com/valyala/fasthttp"

	"github.com/slotgate/slotgate/gate"
	"github.com/slotgate/slotgate/gate/upstream"
	"github.com/slotgate/slotgate/rules"
)

// Gate decides about requests. Both calls may block; the client going away does
// not end them.
type Gate interface {
	// Route finds the rule of a request from its head: no rule and no reply
	// means that the request is passed on.
	Route(*gate.Request) (match rules.Match, off bool, reply *gate.Reply)
	Serve(*gate.Request, rules.Match) *gate.Reply
}

// Backend streams requests that are not gated; see upstream.Client.
type Backend interface {
	Upgrade(r *gate.Request, protocol string) (*upstream.Tunnel, *upstream.Stream, error)
	Pass(r *gate.Request, body io.Reader, length int64) (*upstream.Stream, error)
}

// Meter is told what no rule sees. It is safe for concurrent use, and does not
// block.
type Meter interface {
	// EdgeRefusal counts what the edge refuses; kind is one of a few fixed words.
	EdgeRefusal(kind string)
	// Tunnels is how many tunnels there are from now on.
	Tunnels(open int)
}

// Options are the parts of a server. All are required but AccessLog, Discretion
// and Budget; an AccessLog needs Discretion.
type Options struct {
	Config  rules.ServerConfig
	Gate    Gate
	Backend Backend
	Meter   Meter
	Logger  *slog.Logger
	// AccessLog may be nil: there is none.
	AccessLog  AccessLog
	Discretion Discretion
	// Budget bounds the bodies of gated requests in memory; nil makes one of
	// Config.MaxBuffered. Share it to count the backend's answers too.
	Budget *Budget
}

// Server serves clients on one or more listeners.
type Server struct {
	config     rules.ServerConfig
	gate       Gate
	backend    Backend
	meter      Meter
	log        *slog.Logger
	access     AccessLog // nil: none
	discretion Discretion
	budget     *Budget
	texts      rules.Texts // of requests
	tls        *tls.Config // nil: plain
	cors       map[string]bool
	conns      tracker
	tunnels    tunnels
	http       *fasthttp.Server
}

// New checks the options and reads the certificate, if there is one.
func New(o Options) (*Server, error) {
	if o.Gate == nil || o.Backend == nil || o.Meter == nil || o.Logger == nil {
		return nil, errors.New("edge: Gate, Backend, Meter and Logger are required")
	}
	if o.AccessLog != nil && o.Discretion == nil {
		return nil, errors.New("edge: an AccessLog needs Discretion")
	}
	s := &Server{
		config:     o.Config,
		gate:       o.Gate,
		backend:    o.Backend,
		meter:      o.Meter,
		log:        o.Logger,
		access:     o.AccessLog,
		discretion: o.Discretion,
		budget:     o.Budget,
		cors:       make(map[string]bool, len(o.Config.CORS.Origins)),
	}
	if s.budget == nil {
		s.budget = NewBudget(int64(o.Config.MaxBuffered))
	}
	for _, origin := range o.Config.CORS.Origins {
		s.cors[origin] = true
	}
	if o.Config.TLS.CertFile != "" {
		cert, err := newCertificate(o.Config.TLS, o.Logger)
		if err != nil {
			return nil, err
		}
		s.tls = &tls.Config{GetCertificate: cert.get, NextProtos: []string{"http/1.1"}}
	}
	s.tunnels.note = o.Meter.Tunnels
	s.http = &fasthttp.Server{
		Handler:       s.handle,
		ErrorHandler:  s.handleUnreadable,
		ExpectHandler: s.handleExpect,
		Logger:        debugLog{o.Logger},

		ReadBufferSize: int(o.Config.MaxHeader),
		ReadTimeout:    o.Config.ReadTimeout,
		IdleTimeout:    o.Config.IdleTimeout,
		// The edge counts connections itself; fasthttp must never be the one to
		// refuse, because it does so without Retry-After.
		Concurrency: o.Config.MaxConnections + 1024,

		// Bodies are read by the handler. The size here is only how much of one
		// must have come before the handler runs.
		StreamRequestBody:            true,
		MaxRequestBodySize:           1,
		DisablePreParseMultipartForm: true,

		NoDefaultServerHeader: true,
		NoDefaultDate:         true,
		NoDefaultContentType:  true,
		SecureErrorLogMessage: true,
		LazyRequestTime:       true, // nobody asks for it
		CloseOnShutdown:       true,
	}
	return s, nil
}

// Serve answers requests on ln until Shutdown, and closes ln. It may be called
// for several listeners at once.
func (s *Server) Serve(ln net.Listener) error {
	ln = &listener{Listener: ln, server: s}
	if s.tls != nil {
		ln = tls.NewListener(ln, s.tls)
	}
	return s.http.Serve(ln)
}

// Shutdown stops accepting, lets running requests end and closes idle
// connections and tunnels, which have no end to wait for. When ctx ends first, it closes what is left and returns ctx's
// error; a request that is being served still ends as if its client had gone.
func (s *Server) Shutdown(ctx context.Context) error {
	s.conns.closeSilent()
	s.tunnels.close()
	err := s.http.ShutdownWithContext(ctx)
	// Connections that fasthttp has handed over are known only here.
	if drained := s.conns.drained(); err == nil {
		select {
		case <-drained:
			return nil
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	s.conns.closeAll()
	return err
}

// Connections is the number of open client connections.
func (s *Server) Connections() int { return s.conns.count() }

// Tunnels is the number of connections on which another protocol is spoken, and
// of those that there have been.
func (s *Server) Tunnels() (open int, total uint64) { return s.tunnels.count() }

// debugLog takes fasthttp's notes about single connections. They quote what could not
// be read, which may be anything, a cookie for one; only a network's errors are shown.
type debugLog struct{ log *slog.Logger }

func (l debugLog) Printf(format string, args ...any) {
	for i, arg := range args {
		if err, ok := arg.(error); ok {
			if network := net.Error(nil); !errors.As(err, &network) {
				args[i] = "no readable request"
			}
		}
	}
	l.log.Debug(fmt.Sprintf(format, args...))
}
