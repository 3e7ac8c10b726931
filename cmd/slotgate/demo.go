package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/slotgate/slotgate/gate/storm"
)

const demoHelp = `Usage: slotgate demo [flags]

Shows what the gate is for, with nothing installed: a sample booking API with
its own database (SQLite in memory), the gate in front of it, and a storm of
students who want more seats than there are. Five acts, about 20 seconds:

  1, 2   an API that reads, decides and writes, over tables without constraints:
         without the gate, with the gate
  3, 4   the same over tables with constraints
  5      as 4 with fewer students, and the gate loses its store in mid-storm

All of it runs in this process, on loopback ports. The figures are counted in
the API's own database, not by what clients were told.

  --serve      then serves the gate and the API, to try with curl, until Ctrl-C
  --seed N     the same seed sends the same storms (1)
  --json FILE  writes the figures as JSON too

Exit status: 0 if behind the gate exactly the seats were sold, none twice, and no
student has a lesson twice; else 1.

Example:
  slotgate demo --serve
`

func demoCommand(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	d := &demo{size: fullDemo, stdout: stdout, stderr: stderr}
	set := newFlags("demo")
	set.BoolVar(&d.serves, "serve", false, "")
	set.Uint64Var(&d.seed, "seed", 1, "")
	set.StringVar(&d.jsonFile, "json", "", "")
	operands, err := parse(set, args)
	if err == nil && len(operands) > 0 {
		err = fmt.Errorf("unexpected argument %q", operands[0])
	}
	if err != nil {
		return usageFault("demo", demoHelp, err, 1, stdout, stderr)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends at once
	return d.run(ctx, d.play)
}

// demo is one performance.
type demo struct {
	size           demoSize
	seed           uint64
	serves         bool
	jsonFile       string
	stdout, stderr io.Writer
}

// demoSize is how much is sold to how many. Every student asks once for one
// lesson, and their app sends the request twice at the same instant.
type demoSize struct {
	lessons, seats int           // seats of each lesson
	work           time.Duration // what the API does between its read and its write
	clients        int           // requests under way at once

	students int     // acts 1 to 4
	rate     float64 // requests a second

	// In act 5 fewer students come more slowly: seats must be left when the store
	// comes back.
	outageStudents int
	outageRate     float64
	outageAfter    int64 // bookings made before the store goes away
	outageLasts    time.Duration
}

// fullDemo lasts about 20 seconds. In acts 1 and 2 some 200 requests, 10 of each
// lesson, are past their read at any time, so the last seats are sold many times.
var fullDemo = demoSize{
	lessons: 20, seats: 25, work: 100 * time.Millisecond, clients: 256,
	students: 3000, rate: 2000,
	outageStudents: 1000, outageRate: 400, outageAfter: 150, outageLasts: time.Second,
}

// demoAct is one storm on one arrangement.
type demoAct struct {
	constraints, gate, outage bool
}

var demoActs = []demoAct{
	{},
	{gate: true},
	{constraints: true},
	{constraints: true, gate: true},
	{constraints: true, gate: true, outage: true},
}

func (a demoAct) String() string {
	text := withOrWithout(a.constraints) + " constraints, " + withOrWithout(a.gate) + " gate"
	if a.outage {
		text += ", store lost"
	}
	return text
}

// run performs all acts, judges them and returns the exit status.
func (d *demo) run(ctx context.Context, play demoPlayer) int {
	err := d.perform(ctx, play)
	if err == nil && d.serves {
		err = d.serve(ctx)
	}
	if err != nil {
		fmt.Fprintf(d.stderr, "slotgate demo: %v\n", err)
		return 1
	}
	return 0
}

// demoPlayer plays one act.
type demoPlayer func(context.Context, demoAct, func(storm.Progress)) (*demoRow, error)

func (d *demo) perform(ctx context.Context, play demoPlayer) error {
	// Opened first: figures that cannot be kept need not be made.
	var file *os.File
	if d.jsonFile != "" {
		var err error
		if file, err = os.Create(d.jsonFile); err != nil {
			return err
		}
		defer file.Close()
	}
	writeDemoIntroduction(d.stdout, d.size)
	var rows []*demoRow
	for i, act := range demoActs {
		screen := newDemoScreen(d.stderr, fmt.Sprintf("%d/%d  %s", i+1, len(demoActs), act))
		row, err := play(ctx, act, screen.draw)
		if err != nil {
			screen.clear()
			return fmt.Errorf("act %d (%s): %w", i+1, act, err)
		}
		screen.finish(fmt.Sprintf("%d bookings of %d seats", row.Bookings, row.Seats))
		rows = append(rows, row)
	}
	writeDemoTable(d.stdout, rows)
	if file != nil {
		if err := errors.Join(writeDemoJSON(file, d.seed, rows), file.Close()); err != nil {
			return err
		}
	}
	if err := demoFault(rows); err != nil {
		return err
	}
	writeDemoConclusion(d.stdout, rows)
	return nil
}
