package booking

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/slotgate/slotgate/deploy/schema"
)

// postgresConnections is the pool of a typical application server.
const postgresConnections = 32

type postgres struct {
	returning
	config *pgx.ConnConfig
}

func newPostgres(url string) (postgres, error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return postgres{}, fmt.Errorf("database URL: %w", err)
	}
	return postgres{config: config}, nil
}

func (p postgres) name() string {
	return fmt.Sprintf("PostgreSQL database %q at %s:%d", p.config.Database, p.config.Host, p.config.Port)
}

func (p postgres) open() *sql.DB {
	db := stdlib.OpenDB(*p.config)
	db.SetMaxOpenConns(postgresConnections)
	db.SetMaxIdleConns(postgresConnections)
	return db
}

func (postgres) tables(constraints bool) string {
	if constraints {
		return schema.Postgres
	}
	return schema.PostgresUnconstrained
}

func (postgres) tablesExist() string { return "SELECT to_regclass('lesson_slot') IS NOT NULL" }

func (postgres) forUpdate() string { return " FOR UPDATE" }

func (postgres) enter(func()) {}

func (postgres) leave() {}

// rowLocked compares, in one snapshot, whether the row is there with whether
// it can be locked at once. If it can, it is locked now and the statement that
// follows cannot wait; if not, that statement waits. So each wait is counted
// once and exactly, but for a commit that falls into the probe itself, and
// nothing is changed for statements that find no row and would lock none.
func (postgres) rowLocked(ctx context.Context, tx *sql.Tx, where string, args []any) (bool, error) {
	var there, free bool
	err := tx.QueryRowContext(ctx, `SELECT
		(SELECT 1 FROM lesson_slot WHERE `+where+`) IS NOT NULL,
		(SELECT 1 FROM lesson_slot WHERE `+where+` FOR UPDATE SKIP LOCKED) IS NOT NULL`, args...).Scan(&there, &free)
	return there && !free, err
}

// classify reads SQLSTATE; source: PostgreSQL documentation, appendix A.
func (postgres) classify(err error) violation {
	var failure *pgconn.PgError
	if !errors.As(err, &failure) {
		return noViolation
	}
	switch failure.Code {
	case "23514": // check_violation
		return checkViolation
	case "23505": // unique_violation
		return uniqueViolation
	case "40001", "40P01", "55P03": // serialization_failure, deadlock_detected, lock_not_available
		return lostRace
	}
	return noViolation
}
