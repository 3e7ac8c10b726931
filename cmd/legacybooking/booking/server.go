package booking

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// Server is the API as an http.Handler. Safe for concurrent use.
type Server struct {
	options  Options
	stats    *recorder
	database *database
	routes   *http.ServeMux
	closing  chan struct{}
	once     sync.Once
}

// Open connects to the database, creates the tables that are missing and the
// lessons asked for. ctx bounds the opening only.
func Open(ctx context.Context, options Options) (*Server, error) {
	options, err := options.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("booking: %w", err)
	}
	engine, err := options.engine()
	if err != nil {
		return nil, fmt.Errorf("booking: %w", err)
	}
	s := &Server{options: options, stats: newRecorder(), closing: make(chan struct{})}
	if s.database, err = openDatabase(ctx, engine, s.stats); err != nil {
		return nil, fmt.Errorf("booking: %w", err)
	}
	if err := s.prepare(ctx); err != nil {
		s.Close()
		return nil, fmt.Errorf("booking: %w", err)
	}
	s.routes = s.newRoutes()
	return s, nil
}

func (s *Server) prepare(ctx context.Context) error {
	if err := s.database.createTables(ctx, !s.options.NoConstraints); err != nil {
		return err
	}
	if err := s.database.transact(ctx, func(tx *transaction) error { return s.seed(ctx, tx) }); err != nil {
		return fmt.Errorf("create lessons: %w", err)
	}
	s.stats.reset() // nothing of this was asked by a client
	return nil
}

func (s *Server) seed(ctx context.Context, tx *transaction) error {
	for lesson := 1; lesson <= s.options.Lessons; lesson++ {
		if _, err := tx.exec(ctx, tx.engine.addLesson(), lesson, s.options.Seats); err != nil {
			return err
		}
	}
	return nil
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.routes.ServeHTTP(w, r) }

// Stats returns the counters at this moment.
func (s *Server) Stats() Stats { return s.stats.snapshot() }

// Reset removes all bookings and lessons, creates the lessons of the options
// anew and sets the counters to zero.
func (s *Server) Reset(ctx context.Context) error {
	err := s.database.transact(ctx, func(tx *transaction) error {
		for _, table := range []string{"lesson_booking", "lesson_slot"} {
			if _, err := tx.exec(ctx, "DELETE FROM "+table); err != nil {
				return err
			}
		}
		return s.seed(ctx, tx)
	})
	if err != nil {
		return fmt.Errorf("booking: reset: %w", err)
	}
	s.stats.reset()
	return nil
}

// Close ends all delays and closes the database once the statements that run
// are done. Shut the HTTP server down first, so that no request is lost.
func (s *Server) Close() error {
	s.once.Do(func() { close(s.closing) })
	if err := s.database.pool.Close(); err != nil {
		return fmt.Errorf("booking: close: %w", err)
	}
	return nil
}

// work is what a booking does between deciding and writing.
func (s *Server) work() {
	if s.options.BeforeWrite != nil {
		s.options.BeforeWrite()
	}
	s.pause(s.options.Delay)
}

// linger is what happens between a commit and its answer.
func (s *Server) linger() {
	if s.options.AfterCommit != nil {
		s.options.AfterCommit()
	}
	s.pause(s.options.CommitThenDelay)
}

// pause lasts d, or until Close.
func (s *Server) pause(d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.closing:
	}
}
