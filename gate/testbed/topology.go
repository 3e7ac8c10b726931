package testbed

import (
	"testing"
	"time"
)

// Option changes how Sentinel or Cluster sets its servers up.
type Option func(*topology)

// topology is what a Sentinel deployment or a Cluster is built from.
type topology struct {
	downAfter       time.Duration
	failoverTimeout time.Duration
	hosts           hosts
	args            []string // of every server that holds data
	tls             bool
	certificate     *issued // of every server, with tls
}

// DownAfter sets how long a server is silent before the others call it down:
// Sentinel's down-after-milliseconds (1 s without this option), a Cluster's
// cluster-node-timeout (1.5 s).
func DownAfter(d time.Duration) Option {
	return func(o *topology) { o.downAfter = d }
}

// FailoverTimeout sets Sentinel's failover-timeout, 5 s without this option. No
// second failover is tried within twice that time. A Cluster has no such setting.
func FailoverTimeout(d time.Duration) Option {
	return func(o *topology) { o.failoverTimeout = d }
}

// MinReplicas lets a master write only while at least one replica has confirmed
// what it got within the last second: min-replicas-to-write 1 and
// min-replicas-max-lag 1. Replicas confirm once a second, so a machine under load
// may see NOREPLICAS now and then without any fault.
func MinReplicas() Option {
	return ServerArgs("--min-replicas-to-write", "1", "--min-replicas-max-lag", "1")
}

// ServerArgs appends to the command line of every server that holds data.
func ServerArgs(args ...string) Option {
	return func(o *topology) { o.args = append(o.args, args...) }
}

// WithProxies puts a RedisProxy before every server, sentinels included. All
// addresses that clients get, from this package or from a server, are those of the
// proxies; the servers talk to each other past them (at 127.0.0.2).
func WithProxies() Option {
	return func(o *topology) { o.hosts = proxied }
}

func newTopology(t testing.TB, downAfter time.Duration, options []Option) topology {
	t.Helper()
	o := topology{
		downAfter: downAfter, failoverTimeout: 5 * time.Second, hosts: direct,
		// What was acknowledged survives a kill: the system keeps the file.
		args: []string{"--appendonly", "yes", "--appendfsync", "no", "--protected-mode", "no"},
	}
	for _, option := range options {
		option(&o)
	}
	if o.tls && o.hosts != direct {
		t.Fatal("testbed: WithTLS does not go with WithProxies, which read what passes")
	}
	if o.tls {
		o.certificate = issue(t)
	}
	return o
}

// newServer prepares a server that launch starts.
func (o *topology) newServer(t testing.TB, args ...string) *RedisServer {
	t.Helper()
	r := newRedis(t, o.hosts, args...)
	if o.tls {
		r.secure(o.certificate)
	}
	return r
}
