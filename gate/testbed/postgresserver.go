package testbed

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/slotgate/slotgate/gate/testbed/child"
)

const installPostgres = "testbed: PostgreSQL is not installed; run: apt-get install -y postgresql"

// postgresServer is a running PostgreSQL with its own data folder.
type postgresServer struct {
	folder string
	port   int
	child  *child.Process
}

func startPostgres() (*postgresServer, error) {
	programs, err := postgresPrograms()
	if err != nil {
		return nil, err
	}
	// As root it refuses to run.
	account, err := serviceAccount("postgres", installPostgres)
	if err != nil {
		return nil, err
	}
	folder, err := serviceFolder("postgres", account)
	if err != nil {
		return nil, err
	}
	s := &postgresServer{folder: folder}
	if err := s.start(programs, account); err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

func (s *postgresServer) start(programs string, account *syscall.Credential) error {
	command := func(program string, args ...string) *exec.Cmd {
		cmd := exec.Command(filepath.Join(programs, program), args...)
		cmd.Dir = s.folder // the caller's own may be closed to that account
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: account}
		return cmd
	}

	data := filepath.Join(s.folder, "data")
	err := child.Run(command("initdb", "--pgdata", data, "--username", "postgres",
		"--auth", "trust", "--encoding", "UTF8", "--locale", "C", "--no-sync"))
	if err != nil {
		return err
	}

	return onFreePort(func(port int) (err error) {
		s.port = port
		// SIGQUIT is the immediate shutdown. Unlike SIGKILL it leaves no
		// shared memory behind.
		s.child, err = startChild(command("postgres", "-D", data,
			"-c", "listen_addresses=127.0.0.1", "-c", "port="+strconv.Itoa(port),
			"-c", "unix_socket_directories=", "-c", "max_connections=200",
			"-c", "fsync=off", "-c", "synchronous_commit=off", "-c", "full_page_writes=off",
		), syscall.SIGQUIT)
		if err != nil {
			return err
		}
		return awaitReady(s.child, s.ping)
	})
}

// ping succeeds only when the server that answers is our child.
func (s *postgresServer) ping() error {
	db, err := sql.Open("pgx", s.dsn("postgres"))
	if err != nil {
		return err
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	var folder string
	if err := db.QueryRowContext(ctx, "SHOW data_directory").Scan(&folder); err != nil {
		return err
	}
	if want := filepath.Join(s.folder, "data"); folder != want {
		return fmt.Errorf("port %d is served from %s, not from %s", s.port, folder, want)
	}
	return nil
}

func (s *postgresServer) dsn(database string) string {
	return fmt.Sprintf("postgres://postgres@%s/%s?sslmode=disable", loopback(s.port), database)
}

// stop ends the server without a checkpoint and removes its folder.
func (s *postgresServer) stop() {
	if s.child != nil {
		s.child.End(syscall.SIGQUIT, 10*time.Second)
	}
	os.RemoveAll(s.folder)
}

// postgresPrograms returns a folder that holds both initdb and postgres. The
// two are taken from one folder because the first of each in PATH may belong
// to different versions, and then the server refuses the data folder.
func postgresPrograms() (string, error) {
	var folders []string
	if initdb, err := exec.LookPath("initdb"); err == nil {
		if resolved, err := filepath.EvalSymlinks(initdb); err == nil {
			folders = append(folders, filepath.Dir(resolved))
		}
	}
	folders = append(folders, debianPostgres()...)
	for _, folder := range folders {
		_, noInitdb := exec.LookPath(filepath.Join(folder, "initdb"))
		_, noPostgres := exec.LookPath(filepath.Join(folder, "postgres"))
		if noInitdb == nil && noPostgres == nil {
			return folder, nil
		}
	}
	return "", errors.New(installPostgres)
}

// debianPostgres lists where Debian keeps server programs, newest version
// first. They are not in PATH there.
func debianPostgres() []string {
	folders, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	version := func(folder string) float64 {
		number, _ := strconv.ParseFloat(filepath.Base(filepath.Dir(folder)), 64)
		return number
	}
	slices.SortFunc(folders, func(a, b string) int { return cmp.Compare(version(b), version(a)) })
	return folders
}
