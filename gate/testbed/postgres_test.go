package testbed

import (
	"database/sql"
	"os"
	"testing"
)

func connect(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func TestPostgresGivesEachCallAnEmptyDatabaseOfOneServer(t *testing.T) {
	first, second := Postgres(t), Postgres(t)
	if first.PID() != second.PID() {
		t.Errorf("two servers, %d and %d, want one shared", first.PID(), second.PID())
	}
	for _, database := range []*PostgresDatabase{first, second} {
		if _, err := connect(t, database.DSN()).ExecContext(t.Context(), "CREATE TABLE mine (n int)"); err != nil {
			t.Error(err)
		}
	}
}

func TestPostgresDropsTheDatabaseWithItsTest(t *testing.T) {
	var dropped *PostgresDatabase
	t.Run("life", func(t *testing.T) {
		dropped = Postgres(t)
		// A session that is still open does not prevent it.
		leftOpen, err := sql.Open("pgx", dropped.DSN())
		if err != nil {
			t.Fatal(err)
		}
		if err := leftOpen.PingContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { leftOpen.Close() })
	})
	var left int
	err := connect(t, Postgres(t).DSN()).QueryRowContext(t.Context(),
		"SELECT count(*) FROM pg_database WHERE datname = $1", dropped.name).Scan(&left)
	if err != nil || left != 0 {
		t.Errorf("%d databases left behind (%v), want 0", left, err)
	}
}

func TestPostgresServerLeavesNothing(t *testing.T) {
	server, err := startPostgres()
	if err != nil {
		t.Fatal(err)
	}
	pid, folder := server.child.PID, server.folder
	if err := connect(t, server.dsn("postgres")).PingContext(t.Context()); err != nil {
		t.Error(err)
	}
	server.stop()
	if running(pid) {
		t.Errorf("postgres %d still runs", pid)
	}
	if _, err := os.Stat(folder); !os.IsNotExist(err) {
		t.Errorf("%s is still there (%v)", folder, err)
	}
}

// fakeM is a test binary whose tests are one function.
type fakeM func() int

func (f fakeM) Run() int { return f() }

func TestSharedPostgresStartsOnceAndStopsWithTheTests(t *testing.T) {
	share := share[*postgresServer]{start: startPostgres}
	if server, shared, err := share.get(); server != nil || shared || err != nil {
		t.Fatalf("a share nobody asked for gives %v, %v", server, err)
	}
	var pid int
	code := sharingM{share: &share, tests: fakeM(func() int {
		first, _, err := share.get()
		if err != nil {
			t.Error(err)
			return 1
		}
		second, shared, err := share.get()
		if err != nil || !shared || first != second {
			t.Errorf("the second call gives another server (%v)", err)
		}
		pid = first.child.PID
		return 7
	})}.Run()
	if code != 7 {
		t.Errorf("exit code is %d, want that of the tests, 7", code)
	}
	if pid == 0 || running(pid) {
		t.Errorf("postgres %d still runs after the tests", pid)
	}
}
