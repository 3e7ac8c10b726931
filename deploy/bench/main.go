// Bench measures the gate where it is used: in front of a backend, beside the
// proxies that one would use instead, on one machine.
//
//	bench compare   against nginx, HAProxy, nginx with Lua and Redis, bare fasthttp
//	bench growth    what a decision costs with 1 to 1,000,000 slots, units and keys
//	bench relief    what a hot slot does to PostgreSQL, with and without the gate
//
// See README.md beside this file. `make compare` runs all three.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/slotgate/slotgate/deploy/bench/rig"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// job measures something and saves its results.
type job func(ctx context.Context, r *rig.Rig) error

// commands read their flags; what they say goes to progress.
var commands = map[string]func(args []string, progress io.Writer) (job, error){
	"compare": compareCommand,
	"growth":  growthCommand,
	"relief":  reliefCommand,
}

func run(ctx context.Context, args []string, progress io.Writer) error {
	measure, err := parse(args, progress)
	if err != nil {
		return err
	}
	r, err := rig.New(ctx)
	if err != nil {
		return err
	}
	defer r.Close()
	return measure(ctx, r)
}

func parse(args []string, progress io.Writer) (job, error) {
	if len(args) == 0 {
		return nil, errors.New("say compare, growth or relief, and -h for what each takes")
	}
	command, ok := commands[args[0]]
	if !ok {
		return nil, fmt.Errorf("%q is none of compare, growth, relief", args[0])
	}
	return command(args[1:], progress)
}
