package testbed

import (
	"database/sql"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/go-sql-driver/mysql"
)

// MariaDBDatabase is an empty database that belongs to one test.
type MariaDBDatabase struct {
	t      testing.TB
	server *mariadbServer
	name   string
}

// MariaDB creates an empty database and drops it when the test ends. The server
// behind it is the one of SharedMariaDB if TestMain set that up, else one of the
// test's own (about two seconds more).
func MariaDB(t testing.TB) *MariaDBDatabase {
	t.Helper()
	server, shared, err := sharedMariaDB.get()
	if err == nil && !shared {
		if server, err = startMariaDB(); err == nil {
			t.Cleanup(server.stop)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	database := &MariaDBDatabase{t: t, server: server, name: fmt.Sprintf("test_%d", mariadbDatabases.Add(1))}
	if err := server.execute("CREATE DATABASE " + database.name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.execute("DROP DATABASE " + database.name); err != nil {
			t.Error(err)
		}
	})
	return database
}

// DSN returns where the database is, as github.com/go-sql-driver/mysql writes it.
// The account it names may do everything.
func (d *MariaDBDatabase) DSN() string { return d.server.dsn(d.name) }

// URL returns the same as mysql://user@host:port/database.
func (d *MariaDBDatabase) URL() string {
	return fmt.Sprintf("mysql://root@%s/%s", loopback(d.server.port), d.name)
}

// PID returns the process id of the server, which other tests may share.
func (d *MariaDBDatabase) PID() int { return d.server.child.PID }

// Freeze returns once the server has stopped, for all who share it: it accepts
// connections and answers nothing until Resume.
func (d *MariaDBDatabase) Freeze() {
	d.t.Helper()
	if err := d.server.child.Freeze(); err != nil {
		d.t.Fatal(err)
	}
}

// Resume ends Freeze.
func (d *MariaDBDatabase) Resume() {
	d.t.Helper()
	if err := d.server.child.Resume(); err != nil {
		d.t.Fatal(err)
	}
}

// mariadbDatabases numbers the databases of all servers of this process.
var mariadbDatabases atomic.Int64

// openMariaDB opens a pool of connections. The driver would print to standard error
// what a server that is about to start answers.
func openMariaDB(dsn string) (*sql.DB, error) {
	config, err := mysql.ParseDSN(dsn)
	if err != nil {
		return nil, err
	}
	config.Logger = &mysql.NopLogger{}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}
