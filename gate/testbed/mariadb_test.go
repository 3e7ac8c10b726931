package testbed

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"testing"
	"time"
)

func connectMariaDB(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	db, err := openMariaDB(dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func TestMariaDBGivesEachCallAnEmptyDatabaseOfOneServer(t *testing.T) {
	first, second := MariaDB(t), MariaDB(t)
	if first.PID() != second.PID() {
		t.Errorf("two servers, %d and %d, want one shared", first.PID(), second.PID())
	}
	for _, database := range []*MariaDBDatabase{first, second} {
		if _, err := connectMariaDB(t, database.DSN()).ExecContext(t.Context(), "CREATE TABLE mine (n int)"); err != nil {
			t.Error(err)
		}
	}
}

func TestMariaDBDropsTheDatabaseWithItsTest(t *testing.T) {
	var dropped *MariaDBDatabase
	t.Run("life", func(t *testing.T) {
		dropped = MariaDB(t)
		// A session that is still open does not prevent it.
		leftOpen, err := openMariaDB(dropped.DSN())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { leftOpen.Close() })
		if err := leftOpen.PingContext(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
	var left int
	err := connectMariaDB(t, MariaDB(t).DSN()).QueryRowContext(t.Context(),
		"SELECT count(*) FROM information_schema.schemata WHERE schema_name = ?", dropped.name).Scan(&left)
	if err != nil || left != 0 {
		t.Errorf("%d databases left behind (%v), want 0", left, err)
	}
}

func TestMariaDBFrozenAnswersNothingUntilItIsResumed(t *testing.T) {
	database := MariaDB(t)
	db := connectMariaDB(t, database.DSN())
	if err := db.PingContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	database.Freeze()
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := db.PingContext(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a frozen server gives %v, want the deadline", err)
	}
	database.Resume()
	if err := db.PingContext(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestMariaDBServerLeavesNothing(t *testing.T) {
	server, err := startMariaDB()
	if err != nil {
		t.Fatal(err)
	}
	pid, folder := server.child.PID, server.folder
	if err := connectMariaDB(t, server.dsn("mysql")).PingContext(t.Context()); err != nil {
		t.Error(err)
	}
	server.stop()
	if running(pid) {
		t.Errorf("mariadbd %d still runs", pid)
	}
	if _, err := os.Stat(folder); !os.IsNotExist(err) {
		t.Errorf("%s is still there (%v)", folder, err)
	}
}
