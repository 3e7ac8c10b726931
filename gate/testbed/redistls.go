package testbed

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// RedisTLS starts a Redis that speaks TLS and nothing else. Its certificate is good
// for 127.0.0.1 and comes from a certificate authority of its own, whose key is
// thrown away; CA returns that authority. Clients need no certificate unless args
// say "--tls-auth-clients", "yes".
func RedisTLS(t testing.TB, args ...string) *RedisServer {
	t.Helper()
	r := newRedis(t, direct, args...)
	r.secure(issue(t))
	if err := r.launch(); err != nil {
		t.Fatal(err)
	}
	return r
}

// WithTLS has all servers speak TLS and nothing else, as RedisTLS, also with each
// other, sentinels included. They have one authority: the CA of any of them. It does not
// go with WithProxies, which read what passes.
func WithTLS() Option {
	return func(o *topology) { o.tls = true }
}

// secure gives a server that has not been started its certificate.
func (r *RedisServer) secure(c *issued) {
	r.t.Helper()
	file := func(name string, text []byte) string {
		path := filepath.Join(r.dir, name)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			r.t.Fatalf("testbed: redis: TLS: %v", err)
		}
		return path
	}
	r.authority = c.authority
	r.args = slices.Concat([]string{
		"--tls-cert-file", file("redis.crt", c.certificate), "--tls-key-file", file("redis.key", c.key),
		"--tls-ca-cert-file", file("ca.crt", c.authority), "--tls-auth-clients", "no",
		"--tls-replication", "yes", "--tls-cluster", "yes",
	}, r.args)
}

// CA returns the certificate authority of a server of RedisTLS or WithTLS, in PEM; nil
// for any other.
func (r *RedisServer) CA() []byte { return slices.Clone(r.authority) }

// tlsConfig returns how to speak to the server: nil without TLS.
func (r *RedisServer) tlsConfig() *tls.Config {
	if r.authority == nil {
		return nil
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(r.authority)
	return &tls.Config{RootCAs: trusted, ServerName: clientHost}
}

// issued is a server certificate with its key and who signed it, all in PEM.
type issued struct{ authority, certificate, key []byte }

// issue makes a certificate authority and lets it sign a certificate for 127.0.0.1.
func issue(t testing.TB) *issued {
	t.Helper()
	must := func(err error) {
		if err != nil {
			t.Fatalf("testbed: redis: TLS: %v", err)
		}
	}
	until := time.Now().Add(24 * time.Hour)
	authorityKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(err)
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "testbed CA"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: until,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	authorityDER, err := x509.CreateCertificate(rand.Reader, authority, authority, authorityKey.Public(), authorityKey)
	must(err)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(err)
	server := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "testbed redis"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: until,
		IPAddresses: []net.IP{net.ParseIP(clientHost)},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		// The nodes of a cluster show it to each other.
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	serverDER, err := x509.CreateCertificate(rand.Reader, server, authority, key.Public(), authorityKey)
	must(err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	must(err)
	encode := func(kind string, der []byte) []byte {
		return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	}
	return &issued{
		authority:   encode("CERTIFICATE", authorityDER),
		certificate: encode("CERTIFICATE", serverDER),
		key:         encode("PRIVATE KEY", keyDER),
	}
}
