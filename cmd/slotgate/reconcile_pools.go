package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"

	"github.com/slotgate/slotgate/gate/admin"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/gate/truth"
	"github.com/slotgate/slotgate/gate/truth/source"
	"github.com/slotgate/slotgate/rules"
)

// Exit statuses of reconcile and audit.
const (
	compareClean  = 0
	compareFailed = 1
	compareFound  = 4
)

// storePatience is the least time that a call of the store gets: no client waits for
// a report, and one call that fails ends it.
const storePatience = 15 * time.Second

// comparison is the command line of reconcile and audit: which pools to go through,
// and how to tell what is found.
type comparison struct {
	name, help string
	flags      *flag.FlagSet
	config     configFlags
	only       string // the one pool, "" all
	format     string
	options    truth.ExamineOptions
	// unfit tells why the command can do nothing with a pool, "" where it can.
	unfit func(*rules.PoolConfig) string
}

// noTruth is why neither command can do anything with a pool.
const noTruth = "its capacity does not come from the backend's own data, there is nothing to compare the store with"

// examination goes through pools, one after the other, and writes what it finds.
type examination interface {
	// pool counts what is wrong in one. Also with an error it tells how far it came.
	pool(context.Context, *truth.Pool, truth.ExamineOptions) (s truth.Summary, found int, err error)
	// end writes what comes after the last pool.
	end(complete bool) error
}

func newComparison(name, help string) *comparison {
	c := &comparison{name: name, help: help, flags: newFlags(name), format: "table"}
	c.config.register(c.flags)
	c.flags.Func("pool", "", nonEmpty(&c.only))
	c.flags.Func("slot", "", nonEmpty(&c.options.Slot))
	c.flags.Func("format", "", func(text string) error {
		c.format = text
		if !slices.Contains(reportFormats, text) {
			return errors.New("must be one of " + strings.Join(reportFormats, ", "))
		}
		return nil
	})
	c.flags.Func("rate", "", func(text string) error {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return errors.New("must be a whole number from 1, of reads a second")
		}
		c.options.Rate = rules.Rate{Count: n, Per: time.Second}
		return nil
	})
	return c
}

// nonEmpty refuses what a script with an unset variable would say: all.
func nonEmpty(into *string) func(string) error {
	return func(text string) error {
		if text == "" {
			return errors.New("must not be empty; leave the flag out for all")
		}
		*into = text
		return nil
	}
}

// run is the command from its arguments to its exit status.
func (c *comparison) run(args []string, stdout, stderr io.Writer, begin func() examination) int {
	operands, err := parse(c.flags, args)
	if err == nil && len(operands) > 0 {
		err = fmt.Errorf("unexpected argument %q", operands[0])
	}
	var config *rules.Config
	var faults rules.Faults
	if err == nil {
		config, faults, err = c.config.load()
	}
	if err != nil {
		return usageFault(c.name, c.help, err, compareFailed, stdout, stderr)
	}
	if config == nil {
		fmt.Fprint(stderr, faults)
		return compareFailed
	}
	// Warnings are run's and check's to tell: nightly they would hide what is found.
	status, err := c.compare(config, begin(), stderr)
	if err != nil {
		c.tell(stderr, err.Error())
	}
	return status
}

// tell writes one line: drivers write several, and may quote what a client chose.
func (c *comparison) tell(stderr io.Writer, what string) {
	what = strings.Map(func(r rune) rune {
		if !unicode.IsGraphic(r) {
			return ' '
		}
		return r
	}, what)
	fmt.Fprintf(stderr, "slotgate %s: %s\n", c.name, strings.Join(strings.Fields(what), " "))
}

// compare goes through the pools of a configuration. Ctrl-C ends it with what it has.
func (c *comparison) compare(config *rules.Config, x examination, stderr io.Writer) (status int, err error) {
	pools, err := c.choose(config, stderr)
	if err != nil {
		return compareFailed, err
	}
	if config.Store.Kind == "memory" {
		return compareFailed, errors.New("store.kind is memory: the counters live in the gate's own process, where only its admin API reaches them; " +
			"slotgate slots resync POOL SLOT compares a slot there, and report in the pool's capacity all of them daily")
	}
	config.Store.Timeout = max(config.Store.Timeout, storePatience)
	log, metrics := slog.New(slog.DiscardHandler), admin.NewMetrics(config, "", "")
	s, err := openStore(config.Store, metrics, log)
	if err != nil {
		return compareFailed, err
	}
	defer s.Close()
	engine, err := truth.Open(config, truth.EngineOptions{
		Store: s, Meter: metrics, Logger: log,
		Source: source.Options{URL: config.Upstream.URL, Log: log},
	})
	if err != nil {
		return compareFailed, err
	}
	defer engine.Close()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process
	return c.goThrough(ctx, engine, pools, x, stderr)
}

// choose returns the pools to go through. Those that cannot be are told of, or are an
// error if one was asked for.
func (c *comparison) choose(config *rules.Config, stderr io.Writer) (chosen []string, err error) {
	names := slices.Sorted(maps.Keys(config.Pools))
	if c.only != "" {
		pool := config.Pools[c.only]
		if pool == nil {
			return nil, fmt.Errorf("there is no pool %q%s; pools are %s", c.only, suggestion(c.only, names), strings.Join(names, ", "))
		}
		if why := c.unfit(pool); why != "" {
			return nil, fmt.Errorf("pool %s: %s", c.only, why)
		}
		return []string{c.only}, nil
	}
	for _, name := range names {
		if why := c.unfit(config.Pools[name]); why != "" {
			c.tell(stderr, "pool "+name+" is skipped: "+why)
			continue
		}
		chosen = append(chosen, name)
	}
	if chosen == nil {
		return nil, errors.New("no pool of this configuration can be gone through")
	}
	return chosen, nil
}

// goThrough examines pool after pool, and tells how that went.
func (c *comparison) goThrough(ctx context.Context, engine *truth.Engine, pools []string, x examination, stderr io.Writer) (status int, err error) {
	slots, failed, found := 0, 0, 0
	for _, name := range pools {
		var s truth.Summary
		var n int
		s, n, err = x.pool(ctx, engine.Pool(name), c.options)
		slots, failed, found = slots+s.Slots, failed+s.Failed, found+n
		if s.Failed > 0 {
			c.tell(stderr, fmt.Sprintf("pool %s: slots that could not be compared: %d, the first because: %s; check capacity's dsn, query or path",
				name, s.Failed, s.Error))
		}
		if err != nil {
			break
		}
	}
	if written := x.end(err == nil && failed == 0); err == nil {
		err = written
	}
	var away *store.Error
	switch {
	case ctx.Err() != nil:
		return compareFailed, errors.New("stopped by a signal; the report is of what was compared until then")
	case errors.As(err, &away):
		return compareFailed, fmt.Errorf("%w; is the store running, and are its addresses, username and password right?", err)
	case err != nil:
		return compareFailed, err
	case c.options.Slot != "" && slots+failed == 0:
		return compareFailed, fmt.Errorf("the store does not know slot %s: it was never seen, or its idle state has been dropped", printable(c.options.Slot))
	case found > 0:
		return compareFound, nil
	case failed > 0:
		return compareFailed, nil
	}
	return compareClean, nil
}
