package redisstore

import (
	"crypto/tls"
	"crypto/x509"
	"testing"
	"time"

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
