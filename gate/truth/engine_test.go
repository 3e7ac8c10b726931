package truth

import (
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/slotgate/slotgate/gate"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/gate/store/memstore"
	"github.com/slotgate/slotgate/rules"
)

func TestAnEngineServesThePoolsThatNameASource(t *testing.T) {
	database := filepath.Join(t.TempDir(), "lessons.db")
	db := openSQLite(t, database)
	for _, statement := range []string{
		"CREATE TABLE slot (id TEXT PRIMARY KEY, remain INTEGER)",
		"INSERT INTO slot VALUES ('1', 4)",
		"CREATE TABLE booking (id INTEGER PRIMARY KEY, slot TEXT, student TEXT)",
	} {
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	config, faults := rules.Load("test.yaml", []byte(`
upstream: { url: "http://127.0.0.1:1" }
pools:
  lessons:
    capacity:
      sql: { driver: sqlite, dsn: "`+database+`", query: "SELECT remain FROM slot WHERE id = ?", means: remaining }
      bookings: { query: "SELECT id, student FROM booking WHERE slot = ?" }
  numbered: { capacity: 6 }
rules:
  - { name: book, match: { methods: [POST], path: "/l/{l}" }, pool: lessons, slot: "path:l" }
`), rules.LoadOptions{})
	if config == nil {
		t.Fatal(faults)
	}
	s := memstore.New(memstore.Options{})
	defer s.Close()
	o := EngineOptions{Store: s, Meter: &meter{}, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}
	e, err := Open(config, o)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	e.Start()
	if got := e.Pools(); !slices.Equal(got, []string{"lessons"}) || e.Pool("numbered") != nil {
		t.Errorf("pools %q", got)
	}
	p := e.Pool("lessons")
	if p.probes == nil || p.lister == nil {
		t.Error("bookings.query serves neither probes nor lists")
	}
	for slot, want := range map[string]gate.Loaded{"1": gate.LoadDone, "2": gate.LoadMissing} {
		if got := e.Load(t.Context(), "lessons", slot); got != want {
			t.Errorf("load of %s: %v, want %v", slot, got, want)
		}
	}
	if got := e.Load(t.Context(), "numbered", "1"); got != gate.LoadFailed {
		t.Errorf("load without a source: %v, want failed", got)
	}
	e.Probe(&store.Settle{Pool: "numbered", Slot: "1", Subject: "ann"})
	if err := e.Resync(t.Context(), "lessons", "1"); err != nil {
		t.Error(err)
	}
	if err := e.Resync(t.Context(), "numbered", "1"); err == nil {
		t.Error("a resync without a source is no error")
	}
	e.Close()

	config.Pools["lessons"].Capacity.Truth.SQL.DSN = ":memory:"
	if _, err := Open(config, o); err == nil || !strings.Contains(err.Error(), "pool lessons") {
		t.Errorf("error %v, want one that names the pool", err)
	}
}
