package rig

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	_ "github.com/jackc/pgx/v5/stdlib" // registers the driver "pgx"
)

// Postgres is a PostgreSQL with its own settings, but for the number of connections:
// commits reach the disk.
type Postgres struct {
	*Process
	admin *sql.DB
	addr  string
}

var errNoPostgres = errors.New("PostgreSQL is not installed; run: deploy/bench/needs")

// Postgres makes a database server and returns when it answers. Stop ends it.
func (r *Rig) Postgres(ctx context.Context) (*Postgres, error) {
	programs, err := postgresPrograms()
	if err != nil {
		return nil, err
	}
	account, err := postgresAccount()
	if err != nil {
		return nil, err
	}
	dir, err := r.Folder()
	if err != nil {
		return nil, err
	}
	if account != nil {
		if err := os.Chown(dir, int(account.Uid), int(account.Gid)); err != nil {
			return nil, err
		}
	}
	command := func(program string, args ...string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, filepath.Join(programs, program), args...)
		cmd.Dir = dir
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: account}
		return cmd
	}
	data := filepath.Join(dir, "data")
	if out, err := command("initdb", "--pgdata", data, "--username", "postgres",
		"--auth", "trust", "--encoding", "UTF8", "--locale", "C", "--no-sync").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w\n%s", err, out)
	}
	p := &Postgres{}
	if p.addr, err = FreeAddr(); err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(p.addr)
	if err != nil {
		return nil, err
	}
	if p.admin, err = sql.Open("pgx", p.DSN("postgres")); err != nil {
		return nil, err
	}
	server := command("postgres", "-D", data, "-c", "listen_addresses="+host, "-c", "port="+port,
		"-c", "unix_socket_directories=", "-c", "max_connections=200")
	// SIGQUIT is the immediate shutdown; unlike SIGKILL it leaves no shared memory.
	if p.Process, err = start("postgres", syscall.SIGQUIT, server); err != nil {
		p.admin.Close()
		return nil, err
	}
	if err := p.await(ctx, func() error { return p.admin.PingContext(ctx) }); err != nil {
		p.Stop()
		return nil, err
	}
	return p, nil
}

// Stop ends the server without a checkpoint.
func (p *Postgres) Stop() {
	p.admin.Close()
	p.Process.Stop()
}

// DSN returns the URL of a database.
func (p *Postgres) DSN(database string) string {
	return fmt.Sprintf("postgres://postgres@%s/%s?sslmode=disable", p.addr, database)
}

// Create creates an empty database.
func (p *Postgres) Create(ctx context.Context, database string) error {
	_, err := p.admin.ExecContext(ctx, "CREATE DATABASE "+database)
	return err
}

// Transactions returns how many have ended in a database, by commit or rollback. A
// session tells of its own now and then, and when it ends: ask when none is open.
func (p *Postgres) Transactions(ctx context.Context, database string) (int64, error) {
	var n int64
	err := p.admin.QueryRowContext(ctx,
		"SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = $1", database).Scan(&n)
	return n, err
}

// AwaitClosed returns when no session is left in a database.
func (p *Postgres) AwaitClosed(ctx context.Context, database string) error {
	return p.await(ctx, func() error {
		var open int
		err := p.admin.QueryRowContext(ctx, "SELECT count(*) FROM pg_stat_activity WHERE datname = $1", database).Scan(&open)
		if err == nil && open > 0 {
			err = fmt.Errorf("%d sessions in %s", open, database)
		}
		return err
	})
}

// postgresPrograms returns a folder with both initdb and postgres of one version.
func postgresPrograms() (string, error) {
	var folders []string
	if initdb, err := exec.LookPath("initdb"); err == nil {
		if resolved, err := filepath.EvalSymlinks(initdb); err == nil {
			folders = append(folders, filepath.Dir(resolved))
		}
	}
	debian, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	slices.Sort(debian)
	slices.Reverse(debian)
	for _, folder := range append(folders, debian...) {
		_, noInitdb := os.Stat(filepath.Join(folder, "initdb"))
		_, noPostgres := os.Stat(filepath.Join(folder, "postgres"))
		if noInitdb == nil && noPostgres == nil {
			return folder, nil
		}
	}
	return "", errNoPostgres
}

// postgresAccount is who runs the server: we, or, since it refuses to run as root,
// the account that its package made.
func postgresAccount() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	account, err := user.Lookup("postgres")
	if err != nil {
		return nil, fmt.Errorf("%w (%v)", errNoPostgres, err)
	}
	uid, err := strconv.ParseUint(account.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(account.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}
