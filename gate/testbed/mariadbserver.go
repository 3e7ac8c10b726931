package testbed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/slotgate/slotgate/gate/testbed/child"
)

const installMariaDB = "testbed: MariaDB is not installed; run: apt-get install -y mariadb-server"

// mariadbServer is a running MariaDB with its own data folder.
type mariadbServer struct {
	folder string
	port   int
	child  *child.Process
}

func startMariaDB() (*mariadbServer, error) {
	server, err := lookServer("mariadbd")
	if err != nil {
		return nil, errors.New(installMariaDB)
	}
	install, err := lookServer("mariadb-install-db")
	if err != nil {
		return nil, errors.New(installMariaDB)
	}
	// As root it refuses to run.
	account, err := serviceAccount("mysql", installMariaDB)
	if err != nil {
		return nil, err
	}
	folder, err := serviceFolder("mariadb", account)
	if err != nil {
		return nil, err
	}
	s := &mariadbServer{folder: folder}
	if err := s.start(install, server, account); err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

func (s *mariadbServer) start(install, server string, account *syscall.Credential) error {
	command := func(program string, args ...string) *exec.Cmd {
		// What is lost with the machine is of no use to a test: nothing is synced.
		cmd := exec.Command(program, append([]string{
			"--no-defaults", "--datadir=" + s.data(), "--tmpdir=" + s.folder, "--skip-name-resolve",
			"--innodb-log-file-size=4M", "--innodb-buffer-pool-size=16M",
			"--innodb-flush-method=nosync", "--innodb-flush-log-at-trx-commit=0", "--skip-innodb-doublewrite",
		}, args...)...)
		cmd.Dir = s.folder // the caller's own may be closed to that account
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: account}
		return cmd
	}

	// With this method root has an empty password, from the loopback only.
	if err := child.Run(command(install, "--auth-root-authentication-method=normal", "--skip-test-db")); err != nil {
		return err
	}

	return onFreePort(func(port int) (err error) {
		s.port = port
		s.child, err = startChild(command(server, "--bind-address=127.0.0.1", "--port="+strconv.Itoa(port),
			"--socket="+filepath.Join(s.folder, "socket"), "--pid-file="+filepath.Join(s.folder, "pid"),
			"--max-connections=200", "--character-set-server=utf8mb4", "--skip-log-bin",
			"--key-buffer-size=1M", "--aria-pagecache-buffer-size=1M", "--performance-schema=OFF",
		), syscall.SIGKILL)
		if err != nil {
			return err
		}
		return awaitReady(s.child, s.ping)
	})
}

func (s *mariadbServer) data() string { return filepath.Join(s.folder, "data") }

// ping succeeds only when the server that answers is our child.
func (s *mariadbServer) ping() error {
	db, err := openMariaDB(s.dsn(""))
	if err != nil {
		return err
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	var folder string
	if err := db.QueryRowContext(ctx, "SELECT @@datadir").Scan(&folder); err != nil {
		return err
	}
	if want := s.data(); filepath.Clean(folder) != want {
		return fmt.Errorf("port %d is served from %s, not from %s", s.port, folder, want)
	}
	return nil
}

func (s *mariadbServer) dsn(database string) string {
	return fmt.Sprintf("root@tcp(%s)/%s", loopback(s.port), database)
}

// execute runs one statement outside of any database.
func (s *mariadbServer) execute(statement string) error {
	db, err := openMariaDB(s.dsn(""))
	if err != nil {
		return fmt.Errorf("testbed: mariadb: %w", err)
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	if _, err := db.ExecContext(ctx, statement); err != nil {
		return fmt.Errorf("testbed: mariadb: %s: %w", statement, err)
	}
	return nil
}

// stop kills the server, which has nothing to save, and removes its folder.
func (s *mariadbServer) stop() {
	if s.child != nil {
		s.child.End(syscall.SIGKILL, 10*time.Second)
	}
	os.RemoveAll(s.folder)
}
