package booking

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"

	sqlitedriver "modernc.org/sqlite"
	sqlitecode "modernc.org/sqlite/lib"

	"github.com/slotgate/slotgate/deploy/schema"
)

// sqliteConnections bounds concurrent readers of a file; one of them may write.
const sqliteConnections = 8

// sqlite has one writer at a time. Writers of this process take turns before
// they reach the database, in order of arrival: left to SQLite they would poll
// for its lock, and the unlucky would starve.
type sqlite struct {
	returning
	path        string
	dsn         string
	connections int
	turn        chan struct{} // full while a transaction writes
}

func newSQLite(path string) *sqlite {
	s := &sqlite{path: path, turn: make(chan struct{}, 1)}
	if path == InMemory {
		// Each connection to it would see a database of its own.
		s.dsn, s.connections = "file::memory:?_txlock=immediate", 1
		return s
	}
	// With a write-ahead log readers see the last commit while one writes.
	// BEGIN IMMEDIATE takes the write lock before the first read; a later
	// upgrade could fail without waiting. The timeout is for other processes.
	name := (&url.URL{Path: filepath.Clean(path)}).EscapedPath()
	s.dsn = "file:" + name + "?_txlock=immediate&_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)"
	s.connections = sqliteConnections
	return s
}

func (s *sqlite) name() string {
	if s.path == InMemory {
		return "SQLite in memory"
	}
	return fmt.Sprintf("SQLite file %q (its folder must exist and be writable)", s.path)
}

func (s *sqlite) open() *sql.DB {
	// The driver is registered under this name, so Open cannot fail.
	db, _ := sql.Open("sqlite", s.dsn)
	db.SetMaxOpenConns(s.connections)
	db.SetMaxIdleConns(s.connections)
	return db
}

func (*sqlite) tables(constraints bool) string {
	if constraints {
		return schema.SQLite
	}
	return schema.SQLiteUnconstrained
}

func (*sqlite) tablesExist() string {
	return "SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'lesson_slot')"
}

// forUpdate is empty: BEGIN IMMEDIATE has locked everything already.
func (*sqlite) forUpdate() string { return "" }

func (s *sqlite) enter(waiting func()) {
	select {
	case s.turn <- struct{}{}:
	default:
		waiting()
		s.turn <- struct{}{}
	}
}

func (s *sqlite) leave() { <-s.turn }

// rowLocked is false: who has begun to write waits no more.
func (*sqlite) rowLocked(context.Context, *sql.Tx, string, []any) (bool, error) { return false, nil }

// classify reads result codes; source: https://www.sqlite.org/rescode.html.
func (*sqlite) classify(err error) violation {
	var failure *sqlitedriver.Error
	if !errors.As(err, &failure) {
		return noViolation
	}
	switch failure.Code() {
	case sqlitecode.SQLITE_CONSTRAINT_CHECK:
		return checkViolation
	case sqlitecode.SQLITE_CONSTRAINT_UNIQUE:
		return uniqueViolation
	}
	if failure.Code()&0xff == sqlitecode.SQLITE_BUSY { // the low byte is the primary code
		return lostRace
	}
	return noViolation
}
