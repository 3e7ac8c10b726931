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

type sharingM struct {
	share *postgresShare
	tests M
}

func (m sharingM) Run() int {
	m.share.open()
	defer m.share.close()
	return m.tests.Run()
}

// sharedPostgres is the server of this test binary, if it wants one.
var sharedPostgres postgresShare

type postgresShare struct {
	mu     sync.Mutex
	wanted bool
	server *postgresServer
	err    error // of the one attempt to start it
}

func (s *postgresShare) open() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wanted = true
}

// get returns nil, nil when nobody asked for a shared server.
func (s *postgresShare) get() (*postgresServer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wanted && s.server == nil && s.err == nil {
		s.server, s.err = startPostgres()
	}
	return s.server, s.err
}

func (s *postgresShare) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server != nil {
		s.server.stop()
	}
	s.wanted, s.server, s.err = false, nil, nil
}
