package testbed

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// masterName is what the sentinels call the master.
const masterName = "gate"

// SentinelDeployment is a Redis master, two replicas and three sentinels that
// watch them, quorum two. Its methods may be called at any time, also while another
// goroutine kills and restarts servers.
type SentinelDeployment struct {
	t         testing.TB
	servers   []*RedisServer
	sentinels []*RedisServer
}

// Sentinel starts a deployment on free loopback ports. It returns once both
// replicas follow the master and every sentinel knows all of them and has its
// quorum.
func Sentinel(t testing.TB, options ...Option) *SentinelDeployment {
	t.Helper()
	o := newTopology(t, time.Second, options)
	s := &SentinelDeployment{t: t}
	for range 3 {
		if err := s.startServer(o); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		if err := s.startSentinel(o); err != nil {
			t.Fatal(err)
		}
	}
	s.AwaitReady()
	return s
}

// startServer starts the master, or a replica if there is a master.
func (s *SentinelDeployment) startServer(o topology) error {
	server := o.newServer(s.t, append(slices.Clip(o.args), "--replica-announce-ip", o.hosts.peers,
		"--repl-diskless-sync-delay", "0")...)
	// The sentinels have a server write its new role into this file.
	config := ""
	if len(s.servers) > 0 {
		config = fmt.Sprintf("replicaof %s %d\n", o.hosts.peers, s.servers[0].port)
	}
	if err := server.configure(config); err != nil {
		return err
	}
	s.servers = append(s.servers, server)
	return server.launch()
}

func (s *SentinelDeployment) startSentinel(o topology) error {
	sentinel := o.newServer(s.t, "--sentinel", "--protected-mode", "no")
	if o.hosts != direct {
		// Both addresses have one length, so a reply keeps its own.
		sentinel.rewrite = func(reply []byte) []byte {
			return bytes.ReplaceAll(reply, []byte(o.hosts.peers), []byte(clientHost))
		}
	}
	err := sentinel.configure(fmt.Sprintf(`sentinel announce-ip %[1]s
sentinel monitor %[2]s %[1]s %[3]d 2
sentinel down-after-milliseconds %[2]s %[4]d
sentinel failover-timeout %[2]s %[5]d
`, o.hosts.peers, masterName, s.servers[0].port, o.downAfter.Milliseconds(), o.failoverTimeout.Milliseconds()))
	if err != nil {
		return err
	}
	s.sentinels = append(s.sentinels, sentinel)
	return sentinel.launch()
}

// Addrs returns the sentinels' addresses.
func (s *SentinelDeployment) Addrs() []string {
	addrs := make([]string, len(s.sentinels))
	for i, sentinel := range s.sentinels {
		addrs[i] = sentinel.Addr()
	}
	return addrs
}

// MasterName returns the name under which the sentinels know the master.
func (s *SentinelDeployment) MasterName() string { return masterName }

// Servers returns the servers that hold data, the first master first.
func (s *SentinelDeployment) Servers() []*RedisServer { return slices.Clone(s.servers) }

// Sentinels returns the sentinels.
func (s *SentinelDeployment) Sentinels() []*RedisServer { return slices.Clone(s.sentinels) }

// AwaitReady returns once every server in reach (running and not isolated) but the
// master replicates it, and every running sentinel knows them, has its quorum and sees
// no failover. Sentinels look at their servers every ten seconds while nothing seems wrong, and
// hear of each other every two; until it returns they do both all the time.
func (s *SentinelDeployment) AwaitReady() {
	s.t.Helper()
	s.setPeriods(50, 50)
	if err := await(s.ready); err != nil {
		s.t.Fatalf("testbed: the Sentinel deployment is not ready: %v", err)
	}
	s.setPeriods(10000, 2000)
}

// setPeriods sets how often sentinels look at servers and publish what they know,
// in milliseconds.
func (s *SentinelDeployment) setPeriods(info, publish int) {
	s.t.Helper()
	for _, sentinel := range s.sentinels {
		if !sentinel.Running() {
			continue
		}
		err := sentinel.do("SENTINEL", "DEBUG", "info-period", info, "publish-period", publish).Err()
		if err != nil && sentinel.Running() {
			s.t.Fatalf("testbed: SENTINEL DEBUG: %v", err)
		}
	}
}

func (s *SentinelDeployment) ready() error {
	master, err := s.master()
	if err != nil {
		return err
	}
	replicas := 0
	for _, server := range s.servers {
		if server == master || !server.reachable() {
			continue
		}
		if err := server.follows(master); err != nil {
			return err
		}
		replicas++
	}
	for _, sentinel := range s.sentinels {
		if !sentinel.Running() {
			continue
		}
		if err := sentinel.do("SENTINEL", "CKQUORUM", masterName).Err(); err != nil {
			return err
		}
		view, err := fields(sentinel.do("SENTINEL", "MASTER", masterName).StringSlice())
		if err != nil {
			return err
		}
		// It remembers replicas that are down, and never forgets a sentinel.
		known, _ := strconv.Atoi(view["num-slaves"])
		if view["flags"] != "master" || known < replicas || view["num-other-sentinels"] != "2" {
			return fmt.Errorf("sentinel %s sees %s with %s replicas and %s other sentinels",
				sentinel.Addr(), view["flags"], view["num-slaves"], view["num-other-sentinels"])
		}
	}
	return nil
}

// fields pairs the names and values that Sentinel lists.
func fields(list []string, err error) (map[string]string, error) {
	pairs := make(map[string]string, len(list)/2)
	for i := 0; i+1 < len(list); i += 2 {
		pairs[list[i]] = list[i+1]
	}
	return pairs, err
}

// Master returns the server that most of the sentinels call the master.
func (s *SentinelDeployment) Master() *RedisServer {
	s.t.Helper()
	var master *RedisServer
	err := await(func() (err error) {
		master, err = s.master()
		return err
	})
	if err != nil {
		s.t.Fatalf("testbed: who is master: %v", err)
	}
	return master
}

func (s *SentinelDeployment) master() (*RedisServer, error) {
	votes := make(map[string]int)
	for _, sentinel := range s.sentinels {
		if !sentinel.Running() {
			continue
		}
		addr, err := sentinel.do("SENTINEL", "GET-MASTER-ADDR-BY-NAME", masterName).StringSlice()
		if err != nil || len(addr) != 2 {
			continue
		}
		votes[strings.Join(addr, ":")]++
	}
	for _, server := range s.servers {
		if votes[server.peerAddr()] >= 2 {
			return server, nil
		}
	}
	return nil, fmt.Errorf("the sentinels name %v", votes)
}

// Failover tells the sentinels to promote a replica while all is well, and
// returns the new master. Writes that it had not got from the old one are lost.
func (s *SentinelDeployment) Failover() *RedisServer {
	s.t.Helper()
	old := s.Master()
	err := await(func() error {
		var err error
		for _, sentinel := range s.sentinels {
			if !sentinel.Running() {
				continue
			}
			if err = sentinel.do("SENTINEL", "FAILOVER", masterName).Err(); err == nil {
				return nil
			}
		}
		return err
	})
	if err != nil {
		s.t.Fatalf("testbed: SENTINEL FAILOVER: %v", err)
	}
	return s.AwaitFailover(old)
}

// AwaitFailover returns the new master once most of the sentinels name another
// than old and it takes writes.
func (s *SentinelDeployment) AwaitFailover(old *RedisServer) *RedisServer {
	s.t.Helper()
	var master *RedisServer
	err := await(func() (err error) {
		if master, err = s.master(); err != nil {
			return err
		}
		if master == old {
			return errors.New("it has not begun")
		}
		return master.leads()
	})
	if err != nil {
		s.t.Fatalf("testbed: failover from %s: %v", old.Addr(), err)
	}
	return master
}
