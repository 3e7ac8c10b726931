package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/slotgate/slotgate/cmd/legacybooking/booking"
)

const usage = `legacybooking serves a small legacy booking API over PostgreSQL, MySQL, MariaDB
or SQLite.

  POST   /api/lessons/{lesson}/bookings   {"student_id": "s1", "seats": 1}
  POST   /api/bookings/{booking}/payment
  DELETE /api/bookings/{booking}
  DELETE /api/lessons/{lesson}/students/{student}
  GET    /api/lessons/{lesson}                       {"data": {"remain": 4, …}}
  GET    /api/lessons/{lesson}/bookings
  GET    /api/lessons/{lesson}/students/{student}    404 if there is no booking
  GET    /_stats                          what it has done
  POST   /_reset                          empty again

Example: 20 lessons of 5 seats that sell more than that, since nothing checks

  legacybooking --lessons 20 --seats 5 --style naive --no-constraints --delay 20ms

Flags:
`

// drain is how long requests may take to finish after a signal to stop.
const drain = 15 * time.Second

// settings is what the command line says.
type settings struct {
	listen  string
	options booking.Options
}

// run is the whole command. It serves until SIGINT or SIGTERM and returns the
// exit code: 0 after a clean stop, 1 if it could not serve, 2 for a command
// line it does not understand.
func run(args []string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()

	s, err := parse(args, stdout)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintf(stderr, "legacybooking: %v; see legacybooking --help\n", err)
		return 2
	}
	s.options.Log = slog.New(slog.NewTextHandler(stderr, nil))
	if err := serve(ctx, s, stdout); err != nil {
		fmt.Fprintf(stderr, "legacybooking: %s\n", oneLine(err))
		return 1
	}
	return 0
}

func parse(args []string, stdout io.Writer) (settings, error) {
	s := settings{options: booking.Options{Style: booking.Naive}}
	flags := flag.NewFlagSet("legacybooking", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the caller prints the error, on one line
	flags.StringVar(&s.listen, "listen", "127.0.0.1:9000", "serve at this `address` (default 127.0.0.1:9000)")
	flags.StringVar(&s.options.Database, "db", booking.InMemory, "`database`: a postgres:// or mysql:// URL, the path of a SQLite file, or :memory: (default)")
	flags.Func("style", "how a seat is taken, a `style`: naive (default), conditional, optimistic or rowlock", func(name string) (err error) {
		s.options.Style, err = booking.ParseStyle(name)
		return err
	})
	flags.BoolVar(&s.options.NoConstraints, "no-constraints", false, "create the tables without CHECK and UNIQUE")
	flags.BoolVar(&s.options.Envelope, "envelope", false, `answer HTTP 200 always, with {"code","msg","data"}`)
	flags.DurationVar(&s.options.Delay, "delay", 0, "work inside a booking, between read and write")
	flags.DurationVar(&s.options.CommitThenDelay, "commit-then-delay", 0, "wait between the commit of a booking and its answer")
	flags.IntVar(&s.options.Lessons, "lessons", 20, "create lessons 1 to `N` (default 20)")
	flags.IntVar(&s.options.Seats, "seats", 5, "with `M` seats each (default 5)")
	flags.Usage = func() {}
	err := flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(stdout, usage)
		flags.VisitAll(func(f *flag.Flag) {
			value, meaning := flag.UnquoteUsage(f)
			fmt.Fprintf(stdout, "  %-30s %s\n", strings.TrimSpace("--"+f.Name+" "+value), meaning)
		})
		return s, err
	}
	if err == nil && flags.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	return s, err
}

// serve answers requests until ctx ends, then lets those that run finish.
func serve(ctx context.Context, s settings, stdout io.Writer) error {
	api, err := booking.Open(ctx, s.options)
	if err != nil {
		return err
	}
	defer api.Close()
	listener, err := net.Listen("tcp", s.listen)
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "legacybooking: style %s at http://%s\n", s.options.Style, listener.Addr())

	server := &http.Server{Handler: api, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 60 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		return fmt.Errorf("requests still ran %s after the signal to stop: %w", drain, err)
	}
	return nil
}

// oneLine keeps an error of several lines, as drivers make them, on one.
func oneLine(err error) string {
	return strings.Join(strings.Fields(err.Error()), " ")
}
