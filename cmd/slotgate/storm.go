package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/slotgate/slotgate/gate/storm"
)

const stormHelp = `Usage: slotgate storm --url URL [flags]

Tests an HTTP API with many bookings at once, with or without Slotgate in front.
Every request is written once: nothing is retried behind your back, redirects
are not followed and proxies from the environment are not used.

Requests
  --url URL             http or https; repeatable: request after request takes
                        the next URL in turn
  -X METHOD             method (POST)
  -H "NAME: VALUE"      header field; repeatable
  -d BODY | @FILE       body; labelled as JSON if it begins with { or [, else as
                        a form, unless -H gives a Content-Type

  --url, -H and -d are templates:
    {n}                 number of the request, from 0: each is sent once, in an
                        order drawn from the seed
    {n%20} {n%20+1}     spreads the requests over 20 lessons, from 0 or from 1
    {subject}           number of the subject (student), from 1; {subject%5} too
    {key}               idempotency key of the request, 32 hexadecimal digits
    {{                  a plain brace, needed only before what looks like these

Load
  --requests N          distinct requests (1000)
  --clients N           requests under way at once (32)
  --subjects N          distinct subjects (one for each request)
  --retries-same-key S  share of requests, 0.2 or 20%, sent a second time with
                        the same key at the same instant to the next URL, on top
                        of --requests; adds "Idempotency-Key: {key}" when no
                        template names {key}
  --rate R              most requests a second: 50, 50/s or 5/10s (no limit)
  --timeout D           for one answer, and for one connect (10s)
  --max-time D          for the whole storm (5m)
  --seed N              the same seed sends the same storm, keys too (random)

Judgement
  --success COND        which answers are bookings: 201 or 2xx or 200-204, with
                        commas a list of these; at its end, or alone, one
                        json:/pointer=value; repeatable: any of the statuses
                        and all of the values (2xx)
  --expect N            exactly N successes; twins that got the same answer, or
                        one marked Idempotent-Replayed, count once
  --capacity N          seats of each slot, where a template names slots by
                        {n%20}: none may have more successes
  --expect-no-5xx       no answer of 500 to 599
  --expect-equal-twins  no twins with different answers (5xx are not compared)

Reports, beside the one on the standard output
  --json FILE           for programs
  --html FILE           for people: one page with plots that needs nothing else;
                        a file that exists is not replaced. Header fields and
                        bodies are not in it

Exit status: 0 every assertion held, 3 one was broken, 1 could not run or was
stopped early (Ctrl-C, --max-time); the report is printed then too.

Example: 20 lessons of 5 seats through two gates, every fifth request sent twice
  slotgate storm --url http://127.0.0.1:8081/api/book \
    --url http://127.0.0.1:8082/api/book \
    -d '{"lesson":{n%20+1},"student":"s{subject}"}' \
    --requests 4000 --clients 128 --retries-same-key 20% \
    --expect 100 --capacity 5 --expect-no-5xx --html storm.html
`

// Exit statuses of storm.
const (
	stormHeld   = 0
	stormFailed = 1
	stormBroken = 3
)

// stormCommand runs `slotgate storm` until it ends or is interrupted and
// returns the exit status.
func stormCommand(args []string, stdout, stderr io.Writer) int {
	flags, err := parseStorm(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(stdout, stormHelp)
		return stormHeld
	}
	status := stormFailed
	if err == nil {
		status, err = flags.run(stdout, stderr)
	}
	if err != nil {
		fmt.Fprintf(stderr, "slotgate storm: %s\n", strings.TrimPrefix(err.Error(), "storm: "))
	}
	return status
}

func (f *stormFlags) run(stdout, stderr io.Writer) (status int, err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// Opened first: a storm whose result cannot be kept need not be sent.
	var json *os.File
	if f.jsonFile != "" {
		if json, err = os.Create(f.jsonFile); err != nil {
			return stormFailed, err
		}
		defer json.Close()
	}
	var html *newFile
	if f.htmlFile != "" {
		if html, err = createNew(f.htmlFile); err != nil {
			return stormFailed, fmt.Errorf("--html %w", err)
		}
		defer html.discard()
	}
	f.options.Progress = storm.ShowProgress(stderr)
	report, err := storm.Run(ctx, f.options)
	if err != nil {
		return stormFailed, err
	}
	verdicts := f.judge(report)
	if err := report.WriteText(stdout, verdicts); err != nil {
		return stormFailed, err
	}
	if json != nil {
		if err := errors.Join(report.WriteJSON(json, verdicts), json.Close()); err != nil {
			return stormFailed, err
		}
	}
	if html != nil {
		program := "slotgate " + readBuild().version
		if err := html.finish(func(w io.Writer) error { return report.WriteHTML(w, verdicts, program) }); err != nil {
			return stormFailed, err
		}
	}
	return stormStatus(report, verdicts), nil
}

func stormStatus(report *storm.Report, verdicts []storm.Verdict) int {
	if report.StoppedBy != "" {
		return stormFailed
	}
	for _, v := range verdicts {
		if v.State != storm.Held {
			return stormBroken
		}
	}
	return stormHeld
}

// stormFlags is a parsed command line.
type stormFlags struct {
	options    storm.Options
	success    []string
	expect     int // -1 asserts nothing
	no5xx      bool
	equalTwins bool
	jsonFile   string
	htmlFile   string
}

func (f *stormFlags) judge(report *storm.Report) []storm.Verdict {
	var verdicts []storm.Verdict
	if f.expect >= 0 {
		verdicts = append(verdicts, report.ExpectSuccesses(f.expect))
	}
	if f.options.Capacity > 0 {
		verdicts = append(verdicts, report.ExpectCapacity())
	}
	if f.no5xx {
		verdicts = append(verdicts, report.ExpectNo5xx())
	}
	if f.equalTwins {
		verdicts = append(verdicts, report.ExpectEqualTwins())
	}
	return verdicts
}

func parseStorm(args []string) (*stormFlags, error) {
	set, f := stormFlagSet()
	if err := set.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil, err
		}
		return nil, fmt.Errorf("%w; see slotgate storm --help", err)
	}
	if set.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q: every value needs its flag; see slotgate storm --help", set.Arg(0))
	}
	if len(f.options.Targets) == 0 {
		return nil, errors.New("--url is missing; see slotgate storm --help")
	}
	var err error
	if f.options.Success, err = storm.ParseSuccess(f.success...); err != nil {
		return nil, err
	}
	if name, isFile := strings.CutPrefix(f.options.Body, "@"); isFile {
		content, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("body: %w", err)
		}
		f.options.Body = string(content)
	}
	return f, nil
}

// stormFlagSet names the flags; stormHelp explains them.
func stormFlagSet() (*flag.FlagSet, *stormFlags) {
	f := &stormFlags{expect: -1}
	o := &f.options
	set := flag.NewFlagSet("storm", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.Func("url", "", appendTo(&o.Targets))
	set.StringVar(&o.Method, "X", "POST", "")
	set.Func("H", "", appendTo(&o.Header))
	set.StringVar(&o.Body, "d", "", "")
	set.IntVar(&o.Requests, "requests", 1000, "")
	set.IntVar(&o.Clients, "clients", 32, "")
	set.IntVar(&o.Subjects, "subjects", 0, "")
	set.Func("retries-same-key", "", func(text string) (err error) { o.RetriesSameKey, err = parseShare(text); return err })
	set.Func("rate", "", func(text string) (err error) { o.Rate, err = parseStormRate(text); return err })
	set.DurationVar(&o.Timeout, "timeout", 10*time.Second, "")
	set.DurationVar(&o.MaxTime, "max-time", 5*time.Minute, "")
	set.Uint64Var(&o.Seed, "seed", uint64(rand.Uint32()), "")
	set.Func("success", "", appendTo(&f.success))
	set.Func("expect", "", func(text string) error {
		n, err := strconv.ParseUint(text, 10, 31)
		if err != nil {
			return errors.New("must be a whole number from 0")
		}
		f.expect = int(n)
		return nil
	})
	set.Func("capacity", "", func(text string) error {
		n, err := strconv.ParseUint(text, 10, 31)
		if err != nil || n == 0 {
			return errors.New("must be a whole number from 1")
		}
		o.Capacity = int(n)
		return nil
	})
	set.BoolVar(&f.no5xx, "expect-no-5xx", false, "")
	set.BoolVar(&f.equalTwins, "expect-equal-twins", false, "")
	set.StringVar(&f.jsonFile, "json", "", "")
	set.StringVar(&f.htmlFile, "html", "", "")
	return set, f
}

func appendTo(list *[]string) func(string) error {
	return func(text string) error {
		*list = append(*list, text)
		return nil
	}
}

// parseShare reads 0.2 or 20%.
func parseShare(text string) (float64, error) {
	number, percent := strings.CutSuffix(text, "%")
	share, err := strconv.ParseFloat(number, 64)
	if percent {
		share /= 100
	}
	if err != nil || !(share >= 0 && share <= 1) {
		return 0, errors.New("must be a share from 0 to 1 such as 0.2 or 20%")
	}
	return share, nil
}

// parseStormRate reads 50, 50/s or 5/10s as requests a second.
func parseStormRate(text string) (float64, error) {
	number, per, hasPer := strings.Cut(text, "/")
	count, err := strconv.ParseFloat(number, 64)
	window := time.Second
	if hasPer && err == nil {
		if per != "" && (per[0] < '0' || per[0] > '9') {
			per = "1" + per
		}
		window, err = time.ParseDuration(per)
	}
	if err != nil || !(count > 0) || window <= 0 {
		return 0, errors.New("must be a rate such as 50, 50/s or 5/10s")
	}
	return count / window.Seconds(), nil
}
