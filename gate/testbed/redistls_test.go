package testbed

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"
)

func TestRedisTLSIsTrustedThroughItsOwnAuthorityOnly(t *testing.T) {
	server, other := RedisTLS(t), RedisTLS(t)
	ping := func(authority []byte) error {
		trusted := x509.NewCertPool()
		if !trusted.AppendCertsFromPEM(authority) {
			t.Fatalf("%q is no certificate", authority)
		}
		client := redis.NewClient(&redis.Options{
			Addr: server.Addr(), MaxRetries: -1, DialerRetries: 1, TLSConfig: &tls.Config{RootCAs: trusted},
		})
		defer client.Close()
		return client.Ping(t.Context()).Err()
	}
	if err := ping(server.CA()); err != nil {
		t.Error(err)
	}
	var unknown x509.UnknownAuthorityError
	if err := ping(other.CA()); !errors.As(err, &unknown) {
		t.Errorf("with another authority the error is %v, want an unknown authority", err)
	}
	w := dialWire(t, server.Addr())
	w.send("PING\r\n")
	w.expectCut() // without TLS

	server.Restart()
	if err := ping(server.CA()); err != nil {
		t.Errorf("after a restart: %v", err)
	}
}
