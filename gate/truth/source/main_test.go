package source

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/slotgate/slotgate/gate/testbed"
	"github.com/slotgate/slotgate/rules"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(testbed.SharedMariaDB(testbed.SharedPostgres(m)))
}

// database is an empty database that a test writes to behind the source's back.
type database struct {
	*sql.DB
	t           *testing.T
	driver, dsn string
	parameter   string // of a query: $1 or ?
}

// databases makes an empty database of each kind.
var databases = map[string]func(*testing.T) database{
	"postgres": func(t *testing.T) database {
		return database{t: t, driver: "postgres", dsn: testbed.Postgres(t).DSN(), parameter: "$1"}.open("pgx")
	},
	"mysql": func(t *testing.T) database {
		return database{t: t, driver: "mysql", dsn: testbed.MariaDB(t).DSN(), parameter: "?"}.open("mysql")
	},
	"sqlite": func(t *testing.T) database {
		file := filepath.Join(t.TempDir(), "50% off.db")
		return database{t: t, driver: "sqlite", dsn: file, parameter: "?"}.open("sqlite")
	},
}

func onEachDatabase(t *testing.T, test func(t *testing.T, d database)) {
	for name, open := range databases {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

func (d database) open(driver string) database {
	db, err := sql.Open(driver, d.dsn)
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { db.Close() })
	d.DB = db
	return d
}

// do runs statements; a ? is written as the database wants it.
func (d database) do(statements ...string) {
	d.t.Helper()
	for _, s := range statements {
		if _, err := d.Exec(s); err != nil {
			d.t.Fatalf("%s: %v", s, err)
		}
	}
}

// source opens a source whose query is given with the parameter as the database
// writes it, and means: remaining.
func (d database) source(query string, change ...func(*rules.TruthConfig)) Source {
	d.t.Helper()
	cfg := &rules.TruthConfig{
		SQL:     &rules.SQLSource{Driver: d.driver, DSN: d.dsn, Query: query, Means: rules.MeansRemaining},
		Timeout: 2 * time.Second,
	}
	for _, c := range change {
		c(cfg)
	}
	return open(d.t, cfg, Options{})
}

// bySlot is a source that reads column n of table slots where column slot is the slot.
func (d database) bySlot() Source {
	return d.source("SELECT n FROM slots WHERE slot = " + d.parameter)
}

func open(t *testing.T, cfg *rules.TruthConfig, o Options) Source {
	t.Helper()
	s, err := Open(cfg, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// within bounds a look that should not take long.
func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

const soon = 10 * time.Second

// read is a look that has to work.
func read(t *testing.T, s Source, slot string) Value {
	t.Helper()
	v, err := s.Read(within(t, soon), slot)
	if err != nil {
		t.Errorf("slot %.40q: %v", slot, err)
	}
	return v
}

var missing = Value{Missing: true}

// left is the value of a slot with n units left.
func left(n int64) Value { return Value{N: n, Total: -1} }
