package storm

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Run sends a storm and returns when every request has ended, the time is up
// or ctx has ended; the report is then of what was sent until that moment, and
// requests under way are cut off. All clients connect to all targets before the
// first request. An error means that nothing was sent: the options are wrong,
// or nothing could connect.
func Run(ctx context.Context, o Options) (*Report, error) {
	o.setDefaults()
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("storm: %w", err)
	}
	targets, err := compile(o)
	if err != nil {
		return nil, fmt.Errorf("storm: %w", err)
	}
	limited, cancel := context.WithTimeout(ctx, o.MaxTime)
	defer cancel()

	s := &storm{options: o, targets: targets, plan: newPlan(o)}
	s.tally.success = o.Success
	s.tally.report = &Report{
		Method: o.Method, Targets: o.Targets, Clients: min(o.Clients, o.Requests+o.repeats()),
		Requests: o.Requests, Repeats: o.repeats(), Subjects: o.Subjects, Seed: o.Seed,
		Rate: o.Rate, Timeout: o.Timeout, MaxTime: o.MaxTime, Success: o.Success.String(), Capacity: o.Capacity,
		Statuses: map[int]int{}, Decisions: map[string]int{}, Modes: map[string]int{}, Errors: map[ErrorKind]int{},
		Successes: []Booking{},
	}
	if err := s.run(limited); err != nil {
		return nil, fmt.Errorf("storm: %w", err)
	}
	report := s.tally.report
	report.Connections = int(s.opened.Load())
	if report.Sent < report.Requests+report.Repeats || report.Errors[Stopped] > 0 {
		report.StoppedBy = OutOfTime
		if ctx.Err() != nil {
			report.StoppedBy = Interrupted
		}
	}
	return report, nil
}

// storm is one run: its clients share it.
type storm struct {
	options Options
	targets []target
	plan    *plan
	tally   tally
	opened  atomic.Int64 // connections
}

// run connects all clients, then lets them send together.
func (s *storm) run(ctx context.Context) error {
	clients := make([]*client, s.tally.report.Clients)
	for i := range clients {
		clients[i] = newClient(s)
	}
	defer each(clients, (*client).close)
	each(clients, func(c *client) { c.connectAll(ctx) })
	if s.opened.Load() == 0 {
		return s.noConnection(ctx, clients)
	}
	report := s.tally.report
	s.tally.started = time.Now()
	report.Started = s.tally.started
	finished := make(chan struct{})
	reported := make(chan struct{})
	go func() {
		defer close(reported)
		s.reportProgress(finished)
	}()
	each(clients, func(c *client) { c.run(ctx) })
	report.Elapsed = time.Since(s.tally.started)
	report.Timeline.close(report.Elapsed)
	close(finished)
	<-reported
	return nil
}

// each calls do for all clients at once and waits for them.
func each(clients []*client, do func(*client)) {
	var wg sync.WaitGroup
	for _, c := range clients {
		wg.Go(func() { do(c) })
	}
	wg.Wait()
}

func (s *storm) noConnection(ctx context.Context, clients []*client) error {
	if ctx.Err() != nil {
		return errors.New("stopped before it could connect")
	}
	return fmt.Errorf("nothing could connect to %s: %w; is it running?", s.targets[0].base, clients[0].refused)
}

// reportProgress calls the caller's hook until the storm has finished.
func (s *storm) reportProgress(finished <-chan struct{}) {
	if s.options.Progress == nil {
		return
	}
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			s.options.Progress(s.tally.progress())
		case <-finished:
			last := s.tally.progress()
			last.Final = true
			s.options.Progress(last)
			return
		}
	}
}
