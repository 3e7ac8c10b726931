package booking

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// database runs statements and counts them. Its own statements commit one by
// one; begin a transaction for more.
type database struct {
	statements
	pool *sql.DB
}

// statements runs SQL on the pool or inside one transaction.
type statements struct {
	on interface {
		ExecContext(context.Context, string, ...any) (sql.Result, error)
		QueryContext(context.Context, string, ...any) (*sql.Rows, error)
		QueryRowContext(context.Context, string, ...any) *sql.Row
	}
	engine engine
	stats  *recorder
}

// transaction is one transaction that writes.
type transaction struct {
	statements
	tx *sql.Tx
}

func openDatabase(ctx context.Context, e engine, stats *recorder) (*database, error) {
	pool := e.open()
	if err := pool.PingContext(ctx); err != nil {
		pool.Close()
		return nil, fmt.Errorf("open %s: %w", e.name(), err)
	}
	return &database{statements: statements{on: pool, engine: e, stats: stats}, pool: pool}, nil
}

// createTables leaves existing tables alone, unless that would silently keep
// constraints that the caller wants gone.
func (d *database) createTables(ctx context.Context, constraints bool) error {
	var exist bool
	if _, err := d.row(ctx, d.engine.tablesExist(), nil, &exist); err != nil {
		return fmt.Errorf("look for tables: %w", err)
	}
	switch {
	case exist && !constraints:
		return errors.New("table lesson_slot exists already, and constraints are only left out when tables are created: use an empty database")
	case exist:
		return nil
	}
	// Without arguments all drivers take several statements at once.
	if _, err := d.exec(ctx, d.engine.tables(constraints)); err != nil {
		return fmt.Errorf("create tables: %w", err)
	}
	return nil
}

// transact runs work in a transaction and commits it if work returns nil. What
// a constraint or another transaction forbade comes back as the failure the
// client is to hear.
func (d *database) transact(ctx context.Context, work func(*transaction) error) error {
	d.engine.enter(d.stats.lockWait)
	defer d.engine.leave()
	err := d.commit(ctx, work)
	switch d.engine.classify(err) {
	case checkViolation:
		d.stats.constraintConflict()
		return errSoldOut
	case uniqueViolation:
		d.stats.constraintConflict()
		return errDuplicate
	case lostRace:
		d.stats.serializationConflict()
		return errBusy
	}
	return err
}

func (d *database) commit(ctx context.Context, work func(*transaction) error) error {
	tx, err := d.pool.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // does nothing after a commit
	t := &transaction{statements: statements{on: tx, engine: d.engine, stats: d.stats}, tx: tx}
	if err := work(t); err != nil {
		return err
	}
	return tx.Commit()
}

// exec runs a statement and returns the number of rows it changed.
func (s statements) exec(ctx context.Context, query string, args ...any) (int64, error) {
	result, err := s.execute(ctx, query, args)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

func (s statements) execute(ctx context.Context, query string, args []any) (sql.Result, error) {
	s.stats.statement()
	query, args = s.engine.bind(query, args)
	return s.on.ExecContext(ctx, query, args...)
}

// rows reads any number of rows. The caller closes them.
func (s statements) rows(ctx context.Context, query string, args []any) (*sql.Rows, error) {
	s.stats.statement()
	query, args = s.engine.bind(query, args)
	return s.on.QueryContext(ctx, query, args...)
}

// row reads at most one row. It returns false if there is none.
func (s statements) row(ctx context.Context, query string, args []any, into ...any) (bool, error) {
	s.stats.statement()
	query, args = s.engine.bind(query, args)
	err := s.on.QueryRowContext(ctx, query, args...).Scan(into...)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// lockLesson counts a lock wait if the statement that follows will have to
// wait for the row of lesson_slot picked by where. The probe itself is an
// instrument and not counted as a statement.
func (t *transaction) lockLesson(ctx context.Context, where string, args ...any) error {
	locked, err := t.engine.rowLocked(ctx, t.tx, where, args)
	if locked {
		t.stats.lockWait()
	}
	return err
}

// updateLesson changes the row of lesson_slot picked by where, and returns
// false if there is none. The arguments of where are numbered before those of
// set.
func (t *transaction) updateLesson(ctx context.Context, set, where string, whereArgs []any, setArgs ...any) (bool, error) {
	if err := t.lockLesson(ctx, where, whereArgs...); err != nil {
		return false, err
	}
	changed, err := t.exec(ctx, "UPDATE lesson_slot SET "+set+" WHERE "+where, append(whereArgs, setArgs...)...)
	return changed == 1, err
}
