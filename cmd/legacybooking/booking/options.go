package booking

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"
)

// Style is the way a seat is taken.
type Style string

// The styles; the package comment tells them apart.
const (
	Naive       Style = "naive"
	Conditional Style = "conditional"
	Optimistic  Style = "optimistic"
	RowLock     Style = "rowlock"
)

// Styles lists all styles.
var Styles = []Style{Naive, Conditional, Optimistic, RowLock}

// ParseStyle returns the style of that name.
func ParseStyle(name string) (Style, error) {
	if style := Style(name); slices.Contains(Styles, style) {
		return style, nil
	}
	return "", fmt.Errorf("unknown style %q: want naive, conditional, optimistic or rowlock", name)
}

// InMemory is the Database of a private SQLite that ends with its Server.
const InMemory = ":memory:"

// Options configures a Server.
type Options struct {
	// Database is a postgres:// or mysql:// URL (MariaDB too), the path of a SQLite
	// file, or InMemory, which is also the default. Missing tables are created.
	Database string
	// Style is the way a seat is taken; the default is Naive.
	Style Style
	// NoConstraints creates the tables without CHECK and UNIQUE. It is an
	// error if the tables exist already.
	NoConstraints bool
	// Envelope answers HTTP 200 whatever happens; {"code","msg","data"} tells.
	Envelope bool
	// Delay is work inside a booking: between read and write, or, for the
	// conditional style, between taking the seat and noting the booking.
	Delay time.Duration
	// CommitThenDelay passes between the commit of a booking and its answer.
	CommitThenDelay time.Duration
	// BeforeWrite and AfterCommit, if set, are called where Delay and
	// CommitThenDelay pass, before them, by concurrent requests at once.
	BeforeWrite, AfterCommit func()
	// Lessons are created with the ids 1 to Lessons and Seats seats each;
	// those that exist are left as they are.
	Lessons, Seats int
	// Log gets the errors of the database; the default is slog.Default.
	Log *slog.Logger
}

func (o Options) withDefaults() (Options, error) {
	if o.Database == "" {
		o.Database = InMemory
	}
	if o.Style == "" {
		o.Style = Naive
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if _, err := ParseStyle(string(o.Style)); err != nil {
		return o, err
	}
	if o.Lessons < 0 || o.Seats < 0 || o.Seats > maxSeats {
		return o, fmt.Errorf("%d lessons of %d seats: want 0 or more lessons of 0 to %d seats", o.Lessons, o.Seats, maxSeats)
	}
	if o.Delay < 0 || o.CommitThenDelay < 0 {
		return o, fmt.Errorf("delays of %s and %s: want 0 or more", o.Delay, o.CommitThenDelay)
	}
	return o, nil
}

func (o Options) engine() (engine, error) {
	if strings.HasPrefix(o.Database, "postgres://") || strings.HasPrefix(o.Database, "postgresql://") {
		return newPostgres(o.Database)
	}
	if strings.HasPrefix(o.Database, "mysql://") {
		return newMySQL(o.Database)
	}
	return newSQLite(o.Database), nil
}
