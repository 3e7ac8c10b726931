package testbed

import "sync"

// M is the part of testing.M that TestMain needs.
type M interface{ Run() int }

// SharedPostgres makes all calls of Postgres in a test binary share one
// server, started by the first of them and stopped when Run returns:
//
//	func TestMain(m *testing.M) { os.Exit(testbed.SharedPostgres(m).Run()) }
//
// or, in a package that also looks for leaked goroutines:
//
//	func TestMain(m *testing.M) { goleak.VerifyTestMain(testbed.SharedPostgres(m)) }
func SharedPostgres(m M) M { return sharingM{&sharedPostgres, m} }

// SharedMariaDB does the same for MariaDB. The two may be nested.
func SharedMariaDB(m M) M { return sharingM{&sharedMariaDB, m} }

// The servers of this test binary, if it wants them.
var (
	sharedPostgres = share[*postgresServer]{start: startPostgres}
	sharedMariaDB  = share[*mariadbServer]{start: startMariaDB}
)

type sharingM struct {
	share interface {
		open()
		close()
	}
	tests M
}

func (m sharingM) Run() int {
	m.share.open()
	defer m.share.close()
	return m.tests.Run()
}

// share is one server for a whole test binary.
type share[S interface{ stop() }] struct {
	start func() (S, error)

	mu      sync.Mutex
	wanted  bool
	started bool // tried once: server and err are what came of it
	server  S
	err     error
}

func (s *share[S]) open() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wanted = true
}

// get returns false when nobody asked for a shared server.
func (s *share[S]) get() (server S, shared bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wanted && !s.started {
		s.started = true
		s.server, s.err = s.start()
	}
	return s.server, s.wanted, s.err
}

func (s *share[S]) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.started && s.err == nil {
		s.server.stop()
	}
	var none S
	s.wanted, s.started, s.server, s.err = false, false, none, nil
}
