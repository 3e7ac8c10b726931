package booking

import (
	"context"
	"database/sql"
)

// engine is what differs between the databases.
type engine interface {
	// name says what is opened, for errors; it holds no password.
	name() string
	open() *sql.DB
	tables(constraints bool) string
	// tablesExist is a query for one boolean.
	tablesExist() string
	// bind writes a query with the parameters $1, $2 … as the driver takes it.
	bind(query string, args []any) (string, []any)
	// addLesson creates the lesson $1 with $2 seats unless it is there.
	addLesson() string
	// insert runs an INSERT and returns the id that the row was given.
	insert(ctx context.Context, s statements, query string, args []any) (int64, error)
	// forUpdate ends a SELECT that is to lock the rows it finds.
	forUpdate() string
	// enter returns when a transaction that writes may begin; if another is in
	// the way, it calls waiting first. leave ends the turn.
	enter(waiting func())
	leave()
	// rowLocked tells whether a statement that is about to lock the row of
	// lesson_slot picked by where will have to wait for another transaction.
	// It must be asked inside the transaction of that statement.
	rowLocked(ctx context.Context, tx *sql.Tx, where string, args []any) (bool, error)
	classify(err error) violation
}

// violation is the kind of a database error that the styles rely on.
type violation int

const (
	noViolation     violation = iota
	checkViolation            // remain would fall below 0
	uniqueViolation           // the student has a booking of this lesson
	lostRace                  // deadlock, serialization failure, lock wait too long
)
