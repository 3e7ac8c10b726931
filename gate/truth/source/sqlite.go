package source

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strings"

	driver "modernc.org/sqlite" // registers itself as "sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

type sqlite struct{}

// openSQLite takes a path or a file: URI (https://www.sqlite.org/uri.html), either
// with parameters behind a question mark.
func openSQLite(dsn string) (*sql.DB, dialect, error) {
	name, query, _ := strings.Cut(dsn, "?")
	parameters, err := url.ParseQuery(query)
	inMemory := name == ":memory:" || name == "file::memory:" || parameters.Get("mode") == "memory"
	switch {
	case err != nil:
		return nil, nil, errors.New("what is behind the question mark is not name=value&…")
	case name == "":
		return nil, nil, errors.New("want the path of a database file")
	case inMemory && parameters.Get("cache") != "shared":
		return nil, nil, errors.New("want the path of a database file: one in memory is seen by its own connection only, unless cache=shared")
	case !strings.HasPrefix(name, "file:"):
		name = "file:" + (&url.URL{Path: name}).EscapedPath()
	}
	if !inMemory {
		parameters.Set("mode", "ro")
	}
	// A writer may have the file locked for a moment; a look waits, within its time.
	parameters["_pragma"] = append(parameters["_pragma"], "query_only(1)", "busy_timeout(1000)")
	// The driver is registered under this name, so Open cannot fail.
	db, err := sql.Open("sqlite", name+"?"+parameters.Encode())
	return db, sqlite{}, err
}

// grammar: a column may be declared COLLATE NOCASE or RTRIM.
func (sqlite) grammar() grammar {
	return grammar{bracketed: true, exactMatch: func(operand, placeholder string) string {
		return fmt.Sprintf("CAST(%s AS TEXT) = %s COLLATE BINARY", operand, placeholder)
	}}
}

// snapshot: SQLite's only isolation level is the serializable one.
func (sqlite) snapshot() *sql.TxOptions { return &sql.TxOptions{ReadOnly: true} }

// holds: SQLite compares text that is no number with numbers as what it is, unequal.
func (sqlite) holds(context.Context, *sql.Conn, *statement, string) (bool, error) { return true, nil }

func (sqlite) foreign(error, string) bool { return false }

// passing: who opens a file read-only and meets a commit on its way may take its journal for
// one that was left by a crash, which it could not roll back.
func (sqlite) passing(err error) bool {
	var failure *driver.Error
	return errors.As(err, &failure) && failure.Code() == sqlite3.SQLITE_READONLY_ROLLBACK
}
