package source

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/slotgate/slotgate/gate/testbed"
	"github.com/slotgate/slotgate/rules"
)

func TestErrorsKeepThePassword(t *testing.T) {
	pg, maria := testbed.Postgres(t), testbed.MariaDB(t)
	host := func(dsn, before, after string) string {
		_, rest, _ := strings.Cut(dsn, before)
		host, _, _ := strings.Cut(rest, after)
		return host
	}
	pgHost, mariaHost := host(pg.DSN(), "@", "/"), host(maria.DSN(), "(", ")")
	for _, test := range []struct{ driver, dsn string }{
		{"postgres", "postgres://nobody:s3cret@" + pgHost + "/nowhere"},
		{"postgres", "host=127.0.0.1 port=1 user=nobody password=s3cret dbname=x"},
		{"postgres", "postgres://nobody:s3cret@" + pgHost + ":x/nowhere"},
		{"postgres", "postgres://nobody:s3cret@host:99999/nowhere?sslmode=s3cret"},
		{"postgres", "password=s3cret host"},
		{"mysql", "nobody:s3cret@tcp(" + mariaHost + ")/nowhere"},
		{"mysql", "nobody:s3cret@tcp(127.0.0.1:1)/nowhere"},
		{"mysql", "nobody:s3cret@tcp(127.0.0.1:1"},
		{"mysql", "s3cret"},
		{"mysql", "nobody:x@tcp(127.0.0.1:1)/x?parseTime=s3cret"},
		{"mysql", "nobody:x@tcp(127.0.0.1:1)/x?tls=s3cret"},
		{"mysql", "nobody:x@tcp(127.0.0.1:1)/x?loc=s3cret"},
		{"sqlite", ":memory:"},
		{"sqlite", "file::memory:"},
		{"sqlite", "file:x?mode=memory"},
		{"sqlite", ""},
		{"sqlite", "x.db?_pragma=%zzs3cret"},
		{"sqlite", t.TempDir() + "/missing.db"},
		{"oracle", "s3cret"},
	} {
		parameter := map[bool]string{true: "$1", false: "?"}[test.driver == "postgres"]
		s, err := Open(&rules.TruthConfig{
			SQL:     &rules.SQLSource{Driver: test.driver, DSN: test.dsn, Query: "SELECT n FROM slots WHERE slot = " + parameter, Means: rules.MeansRemaining},
			Timeout: time.Second,
		}, Options{})
		if err == nil {
			_, err = s.Read(within(t, soon), "1")
			s.Close()
		}
		if err == nil || strings.Contains(err.Error(), "s3cret") || !strings.HasPrefix(err.Error(), "truth: ") {
			t.Errorf("%s %q gives %v, want an error without the password", test.driver, test.dsn, err)
		}
	}
}

func TestSQLiteTakesPathsAndURIs(t *testing.T) {
	d := databases["sqlite"](t)
	d.do("PRAGMA journal_mode = WAL", "CREATE TABLE slots (slot text PRIMARY KEY, n int)", "INSERT INTO slots VALUES ('a', 7)")
	plain := t.TempDir() + "/plain.db"
	d.do("VACUUM INTO '" + plain + "'")
	for _, dsn := range []string{d.dsn, plain, "file:" + plain, plain + "?_pragma=cache_size(100)", "file:" + plain + "?mode=rwc", "file:" + plain + "?mode=ro&immutable=1"} {
		d.dsn = dsn
		if got := read(t, d.bySlot(), "a"); got != left(7) {
			t.Errorf("%s: slot a is %+v, want 7 left", dsn, got)
		}
	}
	d.dsn = t.TempDir() + "/new.db"
	if got, err := d.bySlot().Read(t.Context(), "a"); err == nil {
		t.Errorf("read %+v from a file that is not there", got)
	}
	if _, err := os.Stat(d.dsn); !os.IsNotExist(err) {
		t.Errorf("a look makes %s (%v)", d.dsn, err)
	}
}

// A database in memory has no mode=ro.
func TestASharedSQLiteInMemoryCannotBeWritten(t *testing.T) {
	d := database{t: t, driver: "sqlite", dsn: "file:lessons?mode=memory&cache=shared", parameter: "?"}.open("sqlite")
	d.do("CREATE TABLE slots (slot text PRIMARY KEY, n int)", "INSERT INTO slots VALUES ('a', 7)")
	if got := read(t, d.bySlot(), "a"); got != left(7) {
		t.Errorf("slot a is %+v, want 7 left", got)
	}
	if got, err := d.source("UPDATE slots SET n = 99 WHERE slot = ? RETURNING n").Read(t.Context(), "a"); err == nil {
		t.Errorf("an UPDATE is run and gives %+v", got)
	}
}

// As a pooler between us and the database may ask for.
func TestPostgresWithoutNamedStatements(t *testing.T) {
	d := databases["postgres"](t)
	d.do("CREATE TABLE slots (slot int PRIMARY KEY, n int)", "INSERT INTO slots VALUES (7, 70)")
	for _, mode := range []string{"cache_statement", "cache_describe", "describe_exec", "exec", "simple_protocol"} {
		with := d
		with.dsn += "&default_query_exec_mode=" + mode
		s := with.bySlot()
		for range 2 {
			for slot, want := range map[string]Value{"7": left(70), "007": missing, "abc": missing, "8": missing, "'": missing} {
				if got := read(t, s, slot); got != want {
					t.Errorf("%s: slot %s is %+v, want %+v", mode, slot, got, want)
				}
			}
		}
	}
}
