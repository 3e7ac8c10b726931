package redisstore

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"testing"
	"time"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/gate/testbed"
)

// trusting holds the authority of a server.
func trusting(server *testbed.RedisServer) *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(server.CA())
	return pool
}

// A server is believed by the name that it was addressed by.
func TestTLS(t *testing.T) {
	server := testbed.RedisTLS(t)
	with := func(config *tls.Config) func(*Options) {
		return func(o *Options) { o.TLS, o.Secret = config, "configured" }
	}
	trusted := trusting(server)
	s := openStore(t, server.Addr(), with(&tls.Config{RootCAs: trusted}))
	if _, err := admitted(s, booking(1)); err != nil {
		t.Fatal(err)
	}
	for name, config := range map[string]*tls.Config{
		"no TLS":             nil,
		"unknown authority":  {},
		"another name":       {RootCAs: trusted, ServerName: "redis.example"},
		"too old a protocol": {RootCAs: trusted, MaxVersion: tls.VersionTLS11},
	} {
		t.Run(name, func(t *testing.T) {
			failure := fails(t, openStore(t, server.Addr(), with(config)))
			if name == "no TLS" { // what was sent was taken for the beginning of TLS
				expectFailure(t, failure, store.KindConnection, true)
			} else {
				expectFailure(t, failure, store.KindConnection, false)
			}
		})
	}
}

// A handshake that hangs ends with the call.
func TestATLSHandshakeThatHangs(t *testing.T) {
	server := testbed.RedisTLS(t)
	server.Freeze()
	defer server.Resume()
	s := openStore(t, server.Addr(), quick, func(o *Options) { o.TLS = &tls.Config{RootCAs: trusting(server)} })
	start := time.Now()
	if failure := fails(t, s); failure.Kind != store.KindTimeout {
		t.Errorf("failure %v", failure)
	}
	if took := time.Since(start); took > s.timeout+grace {
		t.Errorf("it took %v", took)
	}
}

// Sentinels and the servers that they lead to are spoken to by TLS, before and after a
// failover, and believed by the same authority.
func TestTLSOnSentinel(t *testing.T) {
	deployment := testbed.Sentinel(t, testbed.WithTLS())
	overTLS(t, bySentinel(deployment), deployment.Servers()[0], func() { deployment.Failover() })
}

// So are the nodes of a cluster, also those that clients are only told of.
func TestTLSOnACluster(t *testing.T) {
	cluster := testbed.Cluster(t, testbed.WithTLS())
	one := func(o *Options) {
		byCluster(cluster)(o)
		o.Addresses = o.Addresses[:1]
	}
	overTLS(t, one, cluster.Nodes()[0], func() { cluster.Failover(cluster.Nodes()[1]) })
}

// overTLS books on many slots before and after a failover, and fails if a store that does
// not know the authority, or speaks without TLS, does not fail.
func overTLS(t *testing.T, topology func(*Options), server *testbed.RedisServer, failover func()) {
	with := func(config *tls.Config) func(*Options) {
		return func(o *Options) { o.TLS, o.Secret = config, "configured" }
	}
	s := openStore(t, "", topology, with(&tls.Config{RootCAs: trusting(server)}))
	book := func(first int64) {
		t.Helper()
		for n := range int64(20) {
			d := at(fmt.Sprint("slot ", first+n), first+n)
			eventually(t, "a booking", func() bool {
				got, err := s.Decide(t.Context(), d)
				return err == nil && got.Verdict == decision.Admitted
			})
		}
	}
	book(0)
	failover()
	book(100)
	for name, config := range map[string]*tls.Config{"no TLS": nil, "unknown authority": {}} {
		t.Run(name, func(t *testing.T) {
			failure := fails(t, openStore(t, "", topology, with(config)))
			// Without TLS, what was sent may be taken for its beginning.
			expectFailure(t, failure, store.KindConnection, config == nil && failure.Maybe)
		})
	}
}
