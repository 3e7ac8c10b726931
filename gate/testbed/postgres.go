package testbed

import (
	"context"
	"database/sql"
	"fmt"
	"sync/atomic"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // registers the driver "pgx"
)

// PostgresDatabase is an empty database that belongs to one test.
type PostgresDatabase struct {
	server *postgresServer
	name   string
}

// Postgres creates an empty database and drops it when the test ends. The
// server behind it is the one of SharedPostgres if TestMain set that up, else
// one of the test's own (about a second more).
func Postgres(t testing.TB) *PostgresDatabase {
	t.Helper()
	server, shared, err := sharedPostgres.get()
	if err == nil && !shared {
		if server, err = startPostgres(); err == nil {
			t.Cleanup(server.stop)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	database := &PostgresDatabase{server: server, name: server.nextName()}
	if err := server.execute("CREATE DATABASE " + database.name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// FORCE ends sessions that a test left open.
		if err := server.execute("DROP DATABASE " + database.name + " WITH (FORCE)"); err != nil {
			t.Error(err)
		}
	})
	return database
}

// DSN returns a connection URL for pgx. The role it names is a superuser.
func (d *PostgresDatabase) DSN() string { return d.server.dsn(d.name) }

// PID returns the process id of the server, which other tests may share.
func (d *PostgresDatabase) PID() int { return d.server.child.PID }

// databases numbers the databases of all servers of this process.
var databases atomic.Int64

func (s *postgresServer) nextName() string {
	return fmt.Sprintf("test_%d", databases.Add(1))
}

// execute runs one statement in the maintenance database.
func (s *postgresServer) execute(statement string) error {
	db, err := sql.Open("pgx", s.dsn("postgres"))
	if err != nil {
		return fmt.Errorf("testbed: postgres: %w", err)
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	if _, err := db.ExecContext(ctx, statement); err != nil {
		return fmt.Errorf("testbed: postgres: %s: %w", statement, err)
	}
	return nil
}
