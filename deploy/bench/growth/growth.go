// Package growth measures what a decision and a settlement take inside Redis while
// what the store knows grows, and how much memory each thing it knows takes.
//
// A row fills a fresh Redis, then makes Options.Calls decisions and as many
// settlements, of bookings with everything on: subject, key, one booking a subject,
// a stored answer. Times are those of INFO commandstats: of the scripts alone,
// without network and parsing. Beside each stands what a script of two plain commands
// takes in a Redis with as many strings: what more memory costs anybody.
//
// The sizes of a kind take turns, so that what slows the machine for a while slows them
// all. Of each size the quickest round counts: others only ever add time.
package growth

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/slotgate/slotgate/deploy/bench/rig"
	"github.com/slotgate/slotgate/gate/store/redisstore"
)

// Options say how far things grow.
type Options struct {
	Slots    []int // known slots, with nothing booked
	Booked   []int // known slots, with one booking each
	Units    []int // units taken in one slot
	Keys     []int // stored keys
	Calls    int   // measured decisions of each row, and settlements, in twenty rounds
	Progress io.Writer
}

// Row is one size.
type Row struct {
	Of     string         `json:"of"` // slots, booked slots, units or keys
	Size   int            `json:"size"`
	Decide rig.ScriptTime `json:"decide"`
	Settle rig.ScriptTime `json:"settle"`
	// Plain is a GET and a SET of one of Size strings.
	Plain rig.ScriptTime `json:"plain"`
	// Bytes is the memory that one of them takes: used_memory after less that before,
	// divided by Size; 0 where there are too few to tell.
	Bytes float64 `json:"bytes,omitempty"`
}

// many is from how many things on the memory of other things (buffers of connections, an
// index's first page) does not count.
const many = 1000

// rounds make up the calls of a row.
const rounds = 20

// Run measures all sizes.
func Run(ctx context.Context, r *rig.Rig, o Options) ([]Row, error) {
	var rows []Row
	for _, k := range []kind{
		{"slots", o.Slots, (*filler).slots},
		{"booked slots", o.Booked, (*filler).booked},
		{"units", o.Units, (*filler).units},
		{"keys", o.Keys, (*filler).keys},
	} {
		more, err := k.measure(ctx, r, o.Calls)
		if err != nil {
			return rows, fmt.Errorf("%s: %w", k.of, err)
		}
		for _, row := range more {
			fmt.Fprintf(o.Progress, "%9d %-12s decide %5.1f µs  settle %5.1f µs  plain %4.1f µs  %s\n",
				row.Size, row.Of, row.Decide.PerCall, row.Settle.PerCall, row.Plain.PerCall, memory(row.Bytes))
		}
		rows = append(rows, more...)
	}
	return rows, nil
}

// memory is "" where there were too few things to tell.
func memory(each float64) string {
	if each == 0 {
		return ""
	}
	return fmt.Sprintf("%.0f bytes each", each)
}

// kind is something of which there may be many.
type kind struct {
	of    string
	sizes []int
	fill  func(*filler, context.Context, int) error
}

func (k kind) measure(ctx context.Context, r *rig.Rig, calls int) ([]Row, error) {
	var sizes []*size
	defer func() {
		for _, s := range sizes {
			s.close()
		}
	}()
	for _, n := range k.sizes {
		s := &size{row: Row{Of: k.of, Size: n}}
		sizes = append(sizes, s)
		if err := s.fill(ctx, r, k.fill); err != nil {
			return nil, fmt.Errorf("fill %d: %w", n, err)
		}
	}
	for range rounds {
		for _, s := range sizes {
			if err := s.round(ctx, calls/rounds); err != nil {
				return nil, fmt.Errorf("with %d: %w", s.row.Size, err)
			}
		}
	}
	var rows []Row
	for _, s := range sizes {
		rows = append(rows, s.row)
	}
	return rows, nil
}

// size is a Redis that is filled, and one with as many strings.
type size struct {
	row    Row
	server *rig.Redis
	store  *redisstore.Store
	filler *filler
	plain  *plain
}

func (s *size) close() {
	if s.store != nil {
		s.store.Close()
	}
	if s.server != nil {
		s.server.Stop()
	}
	if s.plain != nil {
		s.plain.server.Stop()
	}
}

func (s *size) fill(ctx context.Context, r *rig.Rig, fill func(*filler, context.Context, int) error) (err error) {
	if s.plain, err = newPlain(ctx, r, s.row.Size); err != nil {
		return err
	}
	if s.server, err = r.Redis(ctx); err != nil {
		return err
	}
	s.store, err = redisstore.Open(ctx, redisstore.Options{
		Addresses: []string{s.server.Addr}, Prefix: names.Prefix, Timeout: 5 * time.Second, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	s.filler = &filler{store: s.store, redis: s.server.Client, slotCount: 1}
	if err := s.filler.prime(ctx); err != nil {
		return err
	}
	before, err := s.server.UsedMemory(ctx)
	if err != nil {
		return err
	}
	if err := fill(s.filler, ctx, s.row.Size); err != nil {
		return err
	}
	after, err := s.server.UsedMemory(ctx)
	if s.row.Size >= many {
		s.row.Bytes = float64(after-before) / float64(s.row.Size)
	}
	return err
}

// round makes n decisions, as many settlements, and as many calls beside them.
func (s *size) round(ctx context.Context, n int) error {
	orders := s.filler.orders(n)
	if err := quickest(ctx, s.server, &s.row.Decide, func() error { return s.filler.decide(ctx, orders) }); err != nil {
		return fmt.Errorf("decide: %w", err)
	}
	if err := quickest(ctx, s.server, &s.row.Settle, func() error { return s.filler.settle(ctx, orders) }); err != nil {
		return fmt.Errorf("settle: %w", err)
	}
	if err := quickest(ctx, s.plain.server, &s.row.Plain, func() error { return s.plain.calls(ctx, n) }); err != nil {
		return fmt.Errorf("plain commands: %w", err)
	}
	return nil
}

// quickest measures what scripts take in Redis while calls runs, and keeps it in best if
// that is less.
func quickest(ctx context.Context, server *rig.Redis, best *rig.ScriptTime, calls func() error) error {
	if err := server.Client.ConfigResetStat(ctx).Err(); err != nil {
		return err
	}
	if err := calls(); err != nil {
		return err
	}
	took, err := server.ScriptTime(ctx)
	if err == nil && (best.Calls == 0 || took.PerCall < best.PerCall) {
		*best = took
	}
	return err
}
