package truth

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/slotgate/slotgate/gate/store/redisstore"
	"github.com/slotgate/slotgate/gate/testbed"
	"github.com/slotgate/slotgate/gate/truth/source"
	"github.com/slotgate/slotgate/rules"
)

// childVariable holds a gateSetup: this test binary is then a gate of its own, and
// runs no tests.
const childVariable = "SLOTGATE_TRUTH_TEST_GATE"

// gateSetup is what gates in several processes share, and the name of one.
type gateSetup struct {
	Redis, Database, Gate string
	// Stands: each read of the source tells of itself and waits for a line on stdin.
	Stands bool

	told chan struct{}
}

// processLease is short, but no shorter than a busy machine needs to renew it.
const processLease = 2 * time.Second

func (g *gateSetup) config() *rules.PoolConfig {
	c := poolConfig()
	c.Capacity.Truth = &rules.TruthConfig{
		SQL:     &rules.SQLSource{Driver: "sqlite", DSN: g.Database, Query: "SELECT remain FROM slot WHERE id = ?", Means: rules.MeansRemaining},
		Refresh: 200 * time.Millisecond, Hot: 100 * time.Millisecond, Timeout: 30 * time.Second,
		MaxRate: rules.Rate{Count: 1000, Per: time.Second},
	}
	return c
}

func (g *gateSetup) open() (*Pool, *redisstore.Store, func(), error) {
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	s, err := redisstore.Open(context.Background(), redisstore.Options{
		Addresses: []string{g.Redis}, Timeout: 5 * time.Second, Logger: quiet, Secret: "the same for all gates",
	})
	if err != nil {
		return nil, nil, nil, err
	}
	config := g.config()
	of, err := source.Open(config.Capacity.Truth, source.Options{Log: quiet})
	if err != nil {
		return nil, nil, nil, err
	}
	var reads Source = of
	if g.Stands {
		reads = standingSource{of, g.told}
	}
	p, err := New(Options{
		Name: "lessons", Config: config, Store: s, Source: reads, Meter: &meter{}, Logger: quiet,
		Gate: g.Gate, Lease: processLease, Awaited: time.Second,
	})
	return p, s, func() { p.Close(); _ = of.Close(); _ = s.Close() }, err
}

// standingSource has its value, says so, and gives it when it is told to.
type standingSource struct {
	Source
	told <-chan struct{}
}

func (s standingSource) Read(ctx context.Context, slot string) (source.Value, error) {
	v, err := s.Source.Read(ctx, slot)
	fmt.Println("read", slot)
	<-s.told
	return v, err
}

// childRole is what this test binary does when a test has started it as another
// gate, nil in the tests' own process.
func childRole() func() {
	text, is := os.LookupEnv(childVariable)
	if !is {
		return nil
	}
	return func() {
		var g gateSetup
		if err := json.Unmarshal([]byte(text), &g); err != nil {
			panic(err)
		}
		g.told = make(chan struct{})
		go g.listen()
		p, _, _, err := g.open()
		if err != nil {
			panic(err)
		}
		p.Start()
		for leads := false; ; time.Sleep(time.Millisecond) { // until it is killed
			if now := p.Leads(); now != leads {
				leads = now
				fmt.Println("leads", leads)
			}
		}
	}
}

// listen takes the lines of the test, and ends the process with it.
func (g *gateSetup) listen() {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		g.told <- struct{}{}
	}
	os.Exit(0)
}

// gateProcess is a gate in a process of its own.
type gateProcess struct {
	t     *testing.T
	cmd   *exec.Cmd
	stdin io.Writer
	lines chan string
}

func startGate(t *testing.T, g gateSetup) *gateProcess {
	t.Helper()
	text, err := json.Marshal(&g)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"="+string(text))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &gateProcess{t: t, cmd: cmd, stdin: stdin, lines: make(chan string, 1000)}
	go func() {
		defer close(c.lines)
		for scanner := bufio.NewScanner(out); scanner.Scan(); {
			c.lines <- scanner.Text()
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		for range c.lines {
		}
		_ = cmd.Wait()
	})
	return c
}

// says waits for a line.
func (c *gateProcess) says(want string) {
	c.t.Helper()
	limit := time.After(time.Minute)
	for {
		select {
		case line, more := <-c.lines:
			if line == want {
				return
			}
			if !more {
				c.t.Fatalf("the gate ended before it said %q", want)
			}
		case <-limit:
			c.t.Fatalf("the gate did not say %q", want)
		}
	}
}

// freeze returns once every thread of the process stands still.
func (c *gateProcess) freeze() {
	c.t.Helper()
	if err := c.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		c.t.Fatal(err)
	}
	for {
		err := unix.Waitid(unix.P_PID, c.cmd.Process.Pid, nil, unix.WSTOPPED, nil)
		if err == nil {
			return
		}
		if err != unix.EINTR {
			c.t.Fatal(err)
		}
	}
}

// stage is a Redis, a database and the test's own gate.
type stage struct {
	*bench
	setup gateSetup
	own   *Pool
	db    *sql.DB
}

func newStage(t *testing.T) *stage {
	t.Helper()
	setup := gateSetup{Redis: testbed.Redis(t).Addr(), Database: filepath.Join(t.TempDir(), "lessons.db"), Gate: "gate-own"}
	s := &stage{setup: setup, db: openSQLite(t, setup.Database)}
	s.bench = &bench{T: t, meter: &meter{}, config: setup.config()}
	s.exec("CREATE TABLE slot (id TEXT PRIMARY KEY, remain INTEGER)")
	s.exec("INSERT INTO slot VALUES ('1', 10)")
	own, shared, end, err := setup.open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(end)
	s.own, s.bench.store = own, shared
	return s
}

func openSQLite(t testing.TB, file string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", file+"?_pragma=busy_timeout(60000)") // readers lock it for moments
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func (s *stage) exec(statement string) {
	s.Helper()
	if _, err := s.db.Exec(statement); err != nil {
		s.Fatal(err)
	}
}

func (s *stage) other(stands bool) *gateProcess {
	s.Helper()
	other := s.setup
	other.Gate, other.Stands = "gate-other", stands
	return startGate(s.T, other)
}

// until waits for a condition that another process, or the pool, brings about.
func (s *stage) until(what string, holds func() bool) time.Duration {
	s.Helper()
	began := time.Now()
	for !holds() {
		if time.Since(began) > time.Minute {
			s.Fatalf("it did not come to pass: %s", what)
		}
		time.Sleep(time.Millisecond)
	}
	return time.Since(began)
}

func (s *stage) left() int64 {
	left, known := func() (int64, bool) { slot := s.slot("1"); return slot.Available() }()
	if !known {
		return -1
	}
	return left
}
