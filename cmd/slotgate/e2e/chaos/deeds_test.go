package chaos

import (
	"syscall"
	"time"

	"github.com/slotgate/slotgate/cmd/slotgate/e2e/stage"
	"github.com/slotgate/slotgate/gate/testbed"
)

// deed begins a fault and returns how to end it, nil if it ends by itself.
type deed func(n *nemesis, f fault) (end func())

// deeds are what each kind of fault does.
var deeds = map[faultKind]deed{
	"store restarts empty": func(n *nemesis, f fault) func() {
		n.forgot = true
		server, _ := n.store(f)
		server.Kill()
		return server.Restart
	},
	"store restarts": func(n *nemesis, f fault) func() {
		n.mayFailOver()
		server, _ := n.store(f)
		server.Kill()
		return server.RestartWithData
	},
	"store frozen": func(n *nemesis, f fault) func() {
		n.mayFailOver()
		server, _ := n.store(f)
		server.Freeze()
		return server.Resume
	},
	"store fails over": func(n *nemesis, f fault) func() {
		n.mayFailOver()
		server, _ := n.store(f)
		n.arena.store.failover(server)
		return nil
	},
	"store slow to answer": func(n *nemesis, _ fault) func() {
		return n.everywhere(func(p *testbed.RedisProxy, on bool) { p.DelayReplies(slowness(on)) })
	},
	"store slow to hear": func(n *nemesis, _ fault) func() {
		return n.everywhere(func(p *testbed.RedisProxy, on bool) { p.DelayRequests(slowness(on)) })
	},
	"store replies dropped": func(n *nemesis, f fault) func() {
		_, proxy := n.store(f)
		proxy.DropReplies(true)
		return func() {
			proxy.DropReplies(false)
			proxy.Sever() // connections that lost one stay silent
		}
	},
	"store wire frozen": func(n *nemesis, f fault) func() {
		_, proxy := n.store(f)
		proxy.Freeze()
		return proxy.Thaw
	},
	"store cut off": func(n *nemesis, f fault) func() {
		_, proxy := n.store(f)
		proxy.Refuse(true)
		proxy.Sever()
		return func() { proxy.Refuse(false) }
	},
	"store reply cut": func(n *nemesis, f fault) func() {
		_, proxy := n.store(f)
		proxy.CutAfter("EVALSHA", f.nth)
		return nil
	},
	"store request cut": func(n *nemesis, f fault) func() {
		_, proxy := n.store(f)
		proxy.CutBefore("EVALSHA", f.nth)
		return nil
	},
	"store reply corrupted": func(n *nemesis, f fault) func() {
		_, proxy := n.store(f)
		proxy.Corrupt("EVALSHA", f.nth, testbed.Flip(0))
		return nil
	},
	"store connections cut": func(n *nemesis, f fault) func() {
		_, proxy := n.store(f)
		proxy.Sever()
		return nil
	},
	"store scripts flushed": func(n *nemesis, f fault) func() {
		server, _ := n.store(f)
		server.FlushScripts()
		return nil
	},
	"store flushed": func(n *nemesis, f fault) func() {
		n.forgot = true
		server, _ := n.store(f)
		server.Flush()
		return nil
	},

	"backend refuses": func(n *nemesis, _ fault) func() {
		n.arena.front.Refuse(true)
		return func() { n.arena.front.Refuse(false) }
	},
	"backend commits late": func(n *nemesis, _ fault) func() {
		n.arena.late.Store(true)
		return func() { n.arena.late.Store(false) }
	},
	"backend cut":        trouble(stage.Cut),
	"backend error":      trouble(stage.Error),
	"backend garbage":    trouble(stage.Garbage),
	"backend stray":      trouble(stage.Stray),
	"backend silent":     trouble(stage.Silence),
	"backend hangs":      trouble(stage.Hang),
	"backend overloaded": trouble(stage.Overload),
	"backend throttles":  trouble(stage.Throttled),

	"gate killed": func(n *nemesis, f fault) func() {
		i := f.target % gates
		n.restarted = true
		n.arena.gate(i).Kill()
		return func() { n.arena.startGate(i) }
	},
	"gate stopped": func(n *nemesis, f fault) func() {
		i := f.target % gates
		n.restarted = true
		if err := n.arena.gate(i).Stop(); err != nil {
			n.arena.t.Errorf("gate %d ended with %v", i, err)
		}
		return func() { n.arena.startGate(i) }
	},
	"gate frozen": func(n *nemesis, f fault) func() {
		n.signal(f, syscall.SIGSTOP)
		return func() { n.signal(f, syscall.SIGCONT) }
	},
	"gate hung up on": func(n *nemesis, f fault) func() {
		n.signal(f, syscall.SIGHUP)
		return nil
	},
}

func (n *nemesis) store(f fault) (*testbed.RedisServer, *testbed.RedisProxy) {
	return n.arena.store.target(f.target)
}

// mayFailOver notes that a replica without the last writes may become the master.
// Where a master needs a replica to write, none lags by more than the gates send again.
func (n *nemesis) mayFailOver() {
	if n.arena.setup.topology != "standalone" && !n.arena.setup.minReplicas {
		n.forgot = true
	}
}

func (n *nemesis) everywhere(turn func(p *testbed.RedisProxy, on bool)) (end func()) {
	for _, proxy := range n.arena.store.proxies {
		turn(proxy, true)
	}
	return func() {
		for _, proxy := range n.arena.store.proxies {
			turn(proxy, false)
		}
	}
}

func slowness(on bool) time.Duration {
	if on {
		return 200 * time.Millisecond
	}
	return 0
}

func trouble(what stage.Trouble) deed {
	return func(n *nemesis, _ fault) func() {
		n.arena.front.Make(what)
		return func() { n.arena.front.Make(stage.None) }
	}
}

func (n *nemesis) signal(f fault, signal syscall.Signal) {
	if err := n.arena.gate(f.target % gates).Signal(signal); err != nil {
		n.arena.t.Errorf("%v: %v", f, err)
	}
}
