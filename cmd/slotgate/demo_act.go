package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/slotgate/slotgate/cmd/legacybooking/booking"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/gate/storm"
)

// demoMaxTime ends one act, on a machine that is far too busy.
const demoMaxTime = 2 * time.Minute

var errDemoStopped = errors.New("stopped before its end")

// demoRow is what came of one act. Bookings to Reached are the API's own figures.
type demoRow struct {
	act        demoAct
	Seats      int64
	Bookings   int64
	Oversold   int64 // seats sold beyond those of their lesson
	Duplicates int64 // bookings beyond the first of a student in a lesson
	Reached    int64 // requests that reached the API
	Requests   int   // sent
	Failures   int   // answers 5xx, and requests without an answer
	Torn       int   // students told both that they have the seat and that they have not
	P50, P99   time.Duration
	Outage     *outageCounts // nil where the store stays
}

// play sets the stage, lets the storm rage and counts.
func (d *demo) play(ctx context.Context, act demoAct, progress func(storm.Progress)) (row *demoRow, err error) {
	options := booking.Options{
		Style: booking.Naive, NoConstraints: !act.constraints, Delay: d.size.work,
		Lessons: d.size.lessons, Seats: d.size.seats,
		Log: slog.New(slog.NewTextHandler(d.stderr, nil)),
	}
	load := storm.Options{
		Header:         []string{"Idempotency-Key: {key}", "Content-Type: application/json"},
		Body:           `{"student_id":"student-{subject}"}`,
		Clients:        d.size.clients,
		Requests:       d.size.students,
		Rate:           d.size.rate,
		RetriesSameKey: 1,
		MaxTime:        demoMaxTime,
		Seed:           d.seed,
		Progress:       progress,
	}
	var given store.Store
	var out *outage
	if act.outage {
		switched := newSwitchedStore()
		out = newOutage(switched, d.size.outageAfter, d.size.outageLasts)
		given = switched
		options.AfterCommit = out.booked
		load.OnResponse = out.answered
		load.Requests, load.Rate = d.size.outageStudents, d.size.outageRate
	}
	s, err := openStage(ctx, options)
	if err != nil {
		return nil, demoError(ctx, err)
	}
	defer func() { err = errors.Join(err, s.close()) }()
	target := s.url
	if act.gate {
		if err := s.addGate(d.size.seats, given); err != nil {
			return nil, err
		}
		target = s.gate.url
	}
	load.Targets = []string{fmt.Sprintf("%s/api/lessons/{n%%%d+1}/bookings", target, d.size.lessons)}
	report, err := storm.Run(ctx, load)
	if err := errors.Join(err, s.finish()); err != nil {
		return nil, demoError(ctx, err)
	}
	if report.StoppedBy != "" {
		return nil, demoError(ctx, fmt.Errorf("not over after %v", demoMaxTime))
	}
	row = &demoRow{
		act:      act,
		Requests: report.Sent,
		Failures: report.Status5xx() + report.TransportErrors(),
		Torn:     torn(report),
		P50:      report.Latency.Quantile(0.5),
		P99:      report.Latency.Quantile(0.99),
	}
	if out != nil {
		row.Outage = out.result()
	}
	return row, row.count(s.api, d.size.seats)
}

// torn counts the pairs of equal requests of which one succeeded and one did not.
// Every request of a demo is one of a pair.
func torn(report *storm.Report) int {
	succeeded := map[int]bool{}
	for _, booking := range report.Successes {
		succeeded[booking.N] = true
	}
	return 2*len(succeeded) - report.SuccessfulAnswers
}

// demoError is err, unless the user has ended the demo and err only follows.
func demoError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errDemoStopped
	}
	return err
}

// count asks the API's database.
func (r *demoRow) count(api *booking.Server, seats int) error {
	// Not the demo's context: the storm is over, its result is wanted.
	sales, err := api.Sales(context.Background())
	if err != nil {
		return err
	}
	r.Reached = api.Stats().Requests.Book
	for _, lesson := range sales {
		r.Seats += int64(seats)
		r.Bookings += lesson.Bookings
		r.Oversold += max(0, lesson.Seats-int64(seats))
		r.Duplicates += lesson.Bookings - lesson.Students
	}
	return nil
}
