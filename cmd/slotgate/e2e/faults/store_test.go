package faults

import (
	"fmt"
	"strings"
	"time"

	"github.com/slotgate/slotgate/cmd/slotgate/e2e/stage"
	"github.com/slotgate/slotgate/gate/testbed"
)

// storeCells are the faults that a store may have in any topology.
func storeCells(topology string) []cell {
	return []cell{
		{
			fault: "redis restarted empty", topology: topology, lasts: 4 * time.Second,
			// Its replicas follow: all that the server knew is gone.
			strike: func(s *scene) {
				s.midst()
				s.place.masters()[0].Restart()
			},
			mustSee: logged("the store is another one than before"),
		},
		{
			fault: "redis paused 5 s", topology: topology, lasts: 9 * time.Second,
			strike: func(s *scene) {
				s.midst()
				for _, server := range s.place.servers {
					server.Freeze()
				}
				s.pause(5 * time.Second)
				for _, server := range s.place.servers {
					server.Resume()
				}
			},
			mustSee: away,
		},
		{
			fault: "redis 200 ms slower, within store.timeout", topology: topology, lasts: 4 * time.Second,
			strike: slower,
			mustSee: func(_ *scene, results map[string]*result) string {
				if longest := results[pass].longest; longest < 200*time.Millisecond {
					return fmt.Sprintf("no answer took longer than %v", longest)
				}
				return ""
			},
		},
		{
			fault: "redis 200 ms slower, beyond store.timeout", topology: topology, lasts: 4 * time.Second, timeout: 500 * time.Millisecond,
			strike:  slower,
			mustSee: away,
		},
		{
			fault: "replies lost with their connections", topology: topology, lasts: 4 * time.Second,
			strike: func(s *scene) {
				s.midst()
				s.lose(1500*time.Millisecond, 7)
			},
			mustSee: struck,
		},
		{
			fault: "replies lost in silence", topology: topology, lasts: 6 * time.Second,
			strike: func(s *scene) {
				s.midst()
				s.proxies(func(p *testbed.RedisProxy) { p.DropReplies(true) })
				s.pause(s.cell.limits().store) // longer than a call and its retry last
				s.proxies(func(p *testbed.RedisProxy) { p.DropReplies(false) })
			},
			mustSee: away,
		},
		{
			fault: "redis out of memory, noeviction", topology: topology, lasts: 4 * time.Second,
			strike: func(s *scene) {
				s.midst()
				masters := s.place.masters()
				for _, m := range masters {
					m.Set("maxmemory-policy", "noeviction", "maxmemory", "1mb")
				}
				s.pause(time.Second)
				for _, m := range masters {
					m.Set("maxmemory", "0")
				}
			},
			mustSee: away,
		},
		{
			fault: "scripts flushed again and again", topology: topology,
			strike: func(s *scene) {
				s.midst()
				masters := s.place.masters()
				for began := time.Now(); time.Since(began) < time.Second || s.count < enough; s.count++ {
					masters[s.count%len(masters)].FlushScripts()
					s.pause(5 * time.Millisecond)
				}
			},
			mustSee: struck,
		},
		{
			fault: "scripts denied by an ACL", topology: topology, lasts: 4 * time.Second,
			strike: func(s *scene) {
				s.midst()
				masters := s.place.masters()
				for _, m := range masters {
					s.do(m, "ACL", "SETUSER", "default", "-@scripting")
				}
				s.pause(time.Second)
				for _, m := range masters {
					s.do(m, "ACL", "SETUSER", "default", "+@scripting")
				}
			},
			mustSee: away,
		},
	}
}

// standaloneCells are a single server's own.
var standaloneCells = []cell{
	{
		fault: "redis killed, back with its data after 1 s", topology: standalone, lasts: 4 * time.Second,
		strike: func(s *scene) {
			s.midst()
			s.place.servers[0].Kill()
			s.pause(time.Second)
			s.place.servers[0].RestartWithData()
		},
		mustSee: away,
	},
}

func slower(s *scene) {
	s.midst()
	s.proxies(func(p *testbed.RedisProxy) { p.DelayReplies(200 * time.Millisecond) })
	s.pause(time.Second)
	s.proxies(func(p *testbed.RedisProxy) { p.DelayReplies(0) })
}

// lose loses the reply of every n-th script, and its connection, for at least d.
func (s *scene) lose(d time.Duration, n int) {
	s.t.Helper()
	cuts := make([]<-chan struct{}, len(s.place.proxies))
	began := time.Now()
	stage.Eventually(s.t, time.Minute, func() string {
		for i, p := range s.place.proxies {
			if cuts[i] == nil {
				cuts[i] = p.CutAfter("EVALSHA", n)
			}
			select {
			case <-cuts[i]:
				cuts[i] = nil
				s.count++
			default:
			}
		}
		if s.count < enough || time.Since(began) < d {
			return fmt.Sprintf("%d replies were lost", s.count)
		}
		return ""
	})
}

func (s *scene) proxies(do func(*testbed.RedisProxy)) {
	for _, p := range s.place.proxies {
		do(p)
	}
}

func (s *scene) do(server *testbed.RedisServer, words ...string) {
	s.t.Helper()
	if err := stage.RedisDo(server.DirectAddr(), words...); err != nil {
		s.t.Fatal(err)
	}
}

// away is the proof that gates had to do without their store.
func away(_ *scene, results map[string]*result) string {
	if results[pass].passed == 0 || results[reject].away == 0 {
		return "no booking passed through, or none was rejected"
	}
	return ""
}

// logged is the proof that every gate noticed.
func logged(text string) func(*scene, map[string]*result) string {
	return func(s *scene, _ map[string]*result) string {
		for _, g := range s.gates {
			if !strings.Contains(g.Log.String(), text) {
				return fmt.Sprintf("gate %s did not say %q", g.URL, text)
			}
		}
		return ""
	}
}

// enough strikes make a fault of many parts.
const enough = 5

// struck is the proof of faults that clients should not see.
func struck(s *scene, _ map[string]*result) string {
	if s.count < enough {
		return fmt.Sprintf("it was done %d times", s.count)
	}
	return ""
}
