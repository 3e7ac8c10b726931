// Package relief measures what a hot slot does to a backend's database, with and
// without something before it.
//
// The backend is the sample booking API on PostgreSQL. One lesson with 50 seats opens
// to 5,000 clients at the same moment, while other lessons are booked at a steady
// rate: those are the customers who only suffer.
package relief

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/slotgate/slotgate/cmd/legacybooking/booking"
	"github.com/slotgate/slotgate/deploy/bench/conf"
	"github.com/slotgate/slotgate/deploy/bench/rig"
)

const (
	seats = 50
	// quiet are the lessons besides the hot one, enough that none of them sells out.
	quiet = 400
	// hot is the hot lesson's number.
	hot = quiet + 1
)

// Options say what is run.
type Options struct {
	Styles  []booking.Style
	Clients int // of the hot lesson, each with one request
	Rate    int // bookings of other lessons a second
	Rounds  int
	// Calm is how long only other lessons are booked, Whole how long they are in all,
	// in whole seconds.
	Calm, Whole time.Duration
	// StoreTimeout is the gate's store.timeout.
	StoreTimeout time.Duration
	Progress     io.Writer
}

// Row is one way to run the backend: the medians of its rounds.
type Row struct {
	Style  booking.Style `json:"style"`
	Front  string        `json:"front"`
	Rounds int           `json:"rounds"`
	Figures
}

// Figures are what one round saw. Those of the hot lesson are without the bookings of
// the others, each of which is one transaction.
type Figures struct {
	Arrived      int64   `json:"arrived"`      // requests of the hot lesson at the API
	Transactions int64   `json:"transactions"` // of the hot lesson
	LockWaits    int64   `json:"lock_waits"`   // of all
	Booked       int64   `json:"booked"`       // seats of the hot lesson
	HotSeconds   float64 `json:"hot_seconds"`  // until the last client had its answer
	HotP99       float64 `json:"hot_p99_ms"`
	CalmP99      float64 `json:"calm_p99_ms"`   // of other lessons before the opening
	OthersP99    float64 `json:"others_p99_ms"` // of other lessons during it
	DatabaseCPU  float64 `json:"database_cpu_s"`
	// Unserved are clients who were neither booked nor told that it is sold out.
	Unserved int64 `json:"unserved"`

	answers string // by status, for the progress
}

// fronts are what may stand before the API.
var fronts = []struct {
	name  string
	start func(ctx context.Context, r *rig.Rig, s conf.Settings) (*rig.Process, error)
}{
	{"nothing", nil},
	{"nginx limit_req", startLimit},
	{"slotgate", startGate},
}

// Run measures each style behind each front.
func Run(ctx context.Context, r *rig.Rig, o Options) ([]Row, error) {
	rounds := map[[2]string][]Figures{}
	for round := range o.Rounds {
		for _, style := range o.Styles {
			for _, front := range fronts {
				f, err := measure(ctx, r, o, style, front.start)
				if err != nil {
					return nil, fmt.Errorf("%s behind %s: %w", style, front.name, err)
				}
				fmt.Fprintf(o.Progress, "round %d  %-11s behind %-15s  %5d transactions  %5d lock waits  others p99 %6.1f ms (calm %.1f)  %s\n",
					round+1, style, front.name, f.Transactions, f.LockWaits, f.OthersP99, f.CalmP99, f.answers)
				at := [2]string{string(style), front.name}
				rounds[at] = append(rounds[at], f)
			}
		}
	}
	var rows []Row
	for _, style := range o.Styles {
		for _, front := range fronts {
			all := rounds[[2]string{string(style), front.name}]
			rows = append(rows, Row{Style: style, Front: front.name, Rounds: len(all), Figures: medians(all)})
		}
	}
	return rows, nil
}

func startLimit(ctx context.Context, r *rig.Rig, s conf.Settings) (*rig.Process, error) {
	file, err := rig.Write(s.Dir, "nginx.conf", conf.NginxLimit, s)
	if err != nil {
		return nil, err
	}
	return r.StartInstalled(ctx, "nginx", "nginx", s.Listen, "-c", file)
}

func startGate(ctx context.Context, r *rig.Rig, s conf.Settings) (*rig.Process, error) {
	file, err := rig.Write(s.Dir, "gate.yaml", conf.Gate, s)
	if err != nil {
		return nil, err
	}
	return r.Start(ctx, "slotgate", "slotgate", s.Listen, "run", "-c", file)
}

// settings are those of one round before the API at backend.
func (o Options) settings(r *rig.Rig, backend, store string) (s conf.Settings, err error) {
	s = conf.Settings{
		Backend: backend, Redis: store, Workers: runtime.NumCPU(), Capacity: seats,
		StoreTimeout: o.StoreTimeout.String(), RejectCache: "250ms", // the default
	}
	if s.Dir, err = r.Folder(); err != nil {
		return s, err
	}
	if s.Listen, err = rig.FreeAddr(); err != nil {
		return s, err
	}
	s.Admin, err = rig.FreeAddr()
	return s, err
}

// startAPI starts the sample API on a database.
func startAPI(ctx context.Context, r *rig.Rig, style booking.Style, dsn string) (*rig.Process, string, error) {
	addr, err := rig.FreeAddr()
	if err != nil {
		return nil, "", err
	}
	process, err := r.Start(ctx, "api", "legacybooking", addr, "--listen", addr, "--db", dsn, "--style", string(style),
		"--lessons", strconv.Itoa(hot), "--seats", strconv.Itoa(seats))
	return process, addr, err
}

func medians(all []Figures) Figures {
	var m Figures
	if len(all) == 0 {
		return m
	}
	m.Arrived = median(all, func(f Figures) int64 { return f.Arrived })
	m.Transactions = median(all, func(f Figures) int64 { return f.Transactions })
	m.LockWaits = median(all, func(f Figures) int64 { return f.LockWaits })
	m.Booked = median(all, func(f Figures) int64 { return f.Booked })
	m.Unserved = median(all, func(f Figures) int64 { return f.Unserved })
	m.HotSeconds = median(all, func(f Figures) float64 { return f.HotSeconds })
	m.HotP99 = median(all, func(f Figures) float64 { return f.HotP99 })
	m.CalmP99 = median(all, func(f Figures) float64 { return f.CalmP99 })
	m.OthersP99 = median(all, func(f Figures) float64 { return f.OthersP99 })
	m.DatabaseCPU = median(all, func(f Figures) float64 { return f.DatabaseCPU })
	return m
}

func median[N int64 | float64](all []Figures, of func(Figures) N) N {
	values := make([]N, len(all))
	for i, f := range all {
		values[i] = of(f)
	}
	slices.Sort(values)
	return values[len(values)/2]
}
