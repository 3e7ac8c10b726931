package main

import (
	"context"
	"flag"
	"io"

	"github.com/slotgate/slotgate/deploy/bench/growth"
	"github.com/slotgate/slotgate/deploy/bench/rig"
)

func growthCommand(args []string, progress io.Writer) (job, error) {
	flags := flag.NewFlagSet("bench growth", flag.ContinueOnError)
	flags.SetOutput(progress)
	out := flags.String("out", resultsFolder, "write growth.json and .md to this `folder`")
	most := flags.Int("most", 1_000_000, "leave out sizes above this")
	calls := flags.Int("calls", 1000, "measured decisions of each size, and settlements, in twenty rounds")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	upTo := func(sizes ...int) []int {
		var kept []int
		for _, size := range sizes {
			if size <= *most {
				kept = append(kept, size)
			}
		}
		return kept
	}
	o := growth.Options{
		Slots:    upTo(1, 10, 1000, 100_000, 1_000_000),
		Booked:   upTo(1000, 100_000),
		Units:    upTo(10, 1000, 50_000),
		Keys:     upTo(1000, 100_000, 1_000_000),
		Calls:    *calls,
		Progress: progress,
	}
	return func(ctx context.Context, r *rig.Rig) error {
		rows, err := growth.Run(ctx, r, o)
		if err != nil {
			return err
		}
		return save(*out, "growth", map[string]func(io.Writer) error{
			".md":   func(w io.Writer) error { return growth.WriteMarkdown(w, rows) },
			".json": func(w io.Writer) error { return writeJSON(w, rows) },
		})
	}, nil
}
