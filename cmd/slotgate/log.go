package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/slotgate/slotgate/gate/accesslog"
	"github.com/slotgate/slotgate/gate/lograte"
	"github.com/slotgate/slotgate/gate/trace"
	"github.com/slotgate/slotgate/rules"
)

// Of warnings and errors with one message the log has so many in so long.
const (
	alikeLines = 10
	alikeFor   = 10 * time.Second
)

// logs are what a gate tells about itself, and where.
type logs struct {
	log    *slog.Logger
	level  *slog.LevelVar // a reload may change it
	stdout io.Writer      // of the access log "-"
}

// newLogs writes the process log to stderr until close, which is called when nobody
// writes to it any more.
func newLogs(config rules.LogConfig, stdout, stderr io.Writer) (l logs, close func()) {
	l = logs{level: new(slog.LevelVar), stdout: stdout}
	l.setLevel(config.Level)
	options := &slog.HandlerOptions{Level: l.level}
	var lines slog.Handler = slog.NewTextHandler(stderr, options)
	if config.Format == "json" {
		lines = slog.NewJSONHandler(stderr, options)
	}
	limited := lograte.NewHandler(lines, alikeLines, alikeFor)
	l.log = slog.New(limited)
	return l, limited.Close
}

func (l logs) setLevel(name string) {
	var read slog.Level
	if err := read.UnmarshalText([]byte(name)); err != nil {
		read = slog.LevelInfo // validation knows the four words
	}
	l.level.Set(read)
}

// openLogs opens the access log and tracing, as the configuration has them.
func (s *service) openLogs() error {
	format := accesslog.Combined
	if s.config.Log.Format == "json" {
		format = accesslog.JSON
	}
	s.access = accesslog.New(accesslog.Options{Format: format, Stdout: s.stdout, Logger: s.log})
	file, err := s.openAccess(s.config)
	if err != nil {
		return err
	}
	s.access.Use(file)
	if s.config.Tracing.OTLPEndpoint != "" {
		s.tracer, err = trace.Open(trace.Options{Config: s.config.Tracing, Version: readBuild().version, Logger: s.log})
	}
	return err
}

func (s *service) openAccess(config *rules.Config) (accesslog.File, error) {
	file, err := s.access.Open(config.Log.Access)
	if err != nil {
		return file, fmt.Errorf("log.access: %w", err)
	}
	return file, nil
}

// closeLogs writes what waits. A disk or a collector that does not answer is not waited
// for.
func (s *service) closeLogs() {
	ctx, cancel := context.WithTimeout(context.Background(), settleGrace)
	defer cancel()
	if s.tracer != nil {
		s.tracer.Close(ctx)
	}
	if s.access != nil {
		s.access.Close(ctx)
	}
}

// redisNotes takes what the Redis client says of single connections; what a store
// failure means for bookings the gate itself logs and counts.
type redisNotes struct{ log *slog.Logger }

func (n redisNotes) Printf(ctx context.Context, format string, args ...any) {
	n.log.DebugContext(ctx, fmt.Sprintf(format, args...))
}
