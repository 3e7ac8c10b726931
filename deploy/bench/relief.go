package main

import (
	"context"
	"flag"
	"io"
	"time"

	"github.com/slotgate/slotgate/cmd/legacybooking/booking"
	"github.com/slotgate/slotgate/deploy/bench/relief"
	"github.com/slotgate/slotgate/deploy/bench/rig"
)

func reliefCommand(args []string, progress io.Writer) (job, error) {
	o := relief.Options{Progress: progress}
	flags := flag.NewFlagSet("bench relief", flag.ContinueOnError)
	flags.SetOutput(progress)
	out := flags.String("out", resultsFolder, "write relief.json and .md to this `folder`")
	flags.IntVar(&o.Clients, "clients", 5000, "clients of the hot lesson")
	flags.IntVar(&o.Rate, "rate", 100, "bookings of other lessons a second")
	flags.IntVar(&o.Rounds, "rounds", 3, "rounds of each")
	flags.DurationVar(&o.Calm, "calm", 3*time.Second, "`time` before the hot lesson opens")
	flags.DurationVar(&o.Whole, "whole", 12*time.Second, "`time` for which other lessons are booked, whole seconds")
	flags.DurationVar(&o.StoreTimeout, "store-timeout", 250*time.Millisecond, "the gate's store.timeout")
	styles := flags.String("styles", "rowlock,conditional", "how the API takes seats")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	for _, name := range split(*styles) {
		style, err := booking.ParseStyle(name)
		if err != nil {
			return nil, err
		}
		o.Styles = append(o.Styles, style)
	}
	return func(ctx context.Context, r *rig.Rig) error {
		rows, err := relief.Run(ctx, r, o)
		if err != nil {
			return err
		}
		return save(*out, "relief", map[string]func(io.Writer) error{
			".md":   func(w io.Writer) error { return relief.WriteMarkdown(w, rows) },
			".json": func(w io.Writer) error { return writeJSON(w, rows) },
		})
	}, nil
}
