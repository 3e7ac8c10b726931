// Package growth measures what a decision and a settlement take inside Redis while
// what the store knows grows, and how much memory each thing it knows takes.
//
// A row fills a fresh Redis, then makes Options.Calls decisions and as many
// settlements, of bookings with everything on: subject, key, one booking a subject,
// a stored answer. Times are those of INFO commandstats: of the scripts alone,
// without network and parsing.
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
	Slots    []int // known slots
	Units    []int // units taken in one slot
	Keys     []int // stored keys
	Calls    int   // measured decisions of each row, and settlements
	Progress io.Writer
}

// Row is one size.
type Row struct {
	Of     string         `json:"of"` // slots, units or keys
	Size   int            `json:"size"`
	Decide rig.ScriptTime `json:"decide"`
	Settle rig.ScriptTime `json:"settle"`
	// Bytes is the memory that one of them takes: used_memory after less that before,
	// divided by Size; 0 where there are too few to tell.
	Bytes float64 `json:"bytes,omitempty"`
}

// leastForBytes is from how many things on the memory of other things (buffers of
// connections, an index's first page) does not count.
const leastForBytes = 1000

// Run measures all sizes.
func Run(ctx context.Context, r *rig.Rig, o Options) ([]Row, error) {
	var rows []Row
	for _, kind := range []struct {
		of    string
		sizes []int
		fill  func(*filler, context.Context, int) error
	}{
		{"slots", o.Slots, (*filler).slots},
		{"units", o.Units, (*filler).units},
		{"keys", o.Keys, (*filler).keys},
	} {
		for _, size := range kind.sizes {
			row, err := measure(ctx, r, kind.of, size, o.Calls, kind.fill)
			if err != nil {
				return rows, fmt.Errorf("%d %s: %w", size, kind.of, err)
			}
			fmt.Fprintf(o.Progress, "%9d %-6s decide %5.1f µs  settle %5.1f µs  %s\n",
				row.Size, row.Of, row.Decide.PerCall, row.Settle.PerCall, row.bytes())
			rows = append(rows, row)
		}
	}
	return rows, nil
}

func (row Row) bytes() string {
	if row.Bytes == 0 {
		return ""
	}
	return fmt.Sprintf("%.0f bytes each", row.Bytes)
}

// measure fills one Redis and measures calls on it.
func measure(ctx context.Context, r *rig.Rig, of string, size, calls int, fill func(*filler, context.Context, int) error) (Row, error) {
	row := Row{Of: of, Size: size}
	server, err := r.Redis(ctx)
	if err != nil {
		return row, err
	}
	defer server.Stop()
	s, err := redisstore.Open(ctx, redisstore.Options{
		Addresses: []string{server.Addr}, Prefix: "growth", Timeout: 5 * time.Second, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return row, err
	}
	defer s.Close()
	f := &filler{store: s, slotCount: 1}
	if err := f.prime(ctx); err != nil {
		return row, err
	}
	before, err := server.UsedMemory(ctx)
	if err != nil {
		return row, err
	}
	if err := fill(f, ctx, size); err != nil {
		return row, fmt.Errorf("fill: %w", err)
	}
	after, err := server.UsedMemory(ctx)
	if err != nil {
		return row, err
	}
	if size >= leastForBytes {
		row.Bytes = float64(after-before) / float64(size)
	}

	orders := f.orders(calls)
	if row.Decide, err = scriptTime(ctx, server, func() error { return f.decide(ctx, orders) }); err != nil {
		return row, fmt.Errorf("decide: %w", err)
	}
	if row.Settle, err = scriptTime(ctx, server, func() error { return f.settle(ctx, orders) }); err != nil {
		return row, fmt.Errorf("settle: %w", err)
	}
	return row, nil
}

// scriptTime is what scripts take in Redis while calls runs.
func scriptTime(ctx context.Context, server *rig.Redis, calls func() error) (rig.ScriptTime, error) {
	if err := server.Client.ConfigResetStat(ctx).Err(); err != nil {
		return rig.ScriptTime{}, err
	}
	if err := calls(); err != nil {
		return rig.ScriptTime{}, err
	}
	return server.ScriptTime(ctx)
}
