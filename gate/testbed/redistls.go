package testbed

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
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
	r := newRedis(t, direct)
	certificate, key := filepath.Join(r.dir, "redis.crt"), filepath.Join(r.dir, "redis.key")
	issued, err := issue()
	if err != nil {
		t.Fatalf("testbed: redis: TLS: %v", err)
	}
	authority := filepath.Join(r.dir, "ca.crt")
	for file, text := range map[string][]byte{certificate: issued.certificate, key: issued.key, authority: issued.authority} {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatalf("testbed: redis: TLS: %v", err)
		}
	}
	r.authority = issued.authority
	r.args = slices.Concat([]string{
		"--tls-cert-file", certificate, "--tls-key-file", key, "--tls-ca-cert-file", authority, "--tls-auth-clients", "no",
	}, args)
	if err := r.launch(); err != nil {
		t.Fatal(err)
	}
	return r
}

// CA returns the certificate authority of a server of RedisTLS, in PEM; nil for any
// other.
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
func issue() (issued, error) {
	until := time.Now().Add(24 * time.Hour)
	authorityKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return issued{}, err
	}
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "testbed CA"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: until,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	authorityDER, err := x509.CreateCertificate(rand.Reader, authority, authority, authorityKey.Public(), authorityKey)
	if err != nil {
		return issued{}, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return issued{}, err
	}
	server := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "testbed redis"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: until,
		IPAddresses: []net.IP{net.ParseIP(clientHost)},
		KeyUsage:    x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	serverDER, err := x509.CreateCertificate(rand.Reader, server, authority, key.Public(), authorityKey)
	if err != nil {
		return issued{}, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return issued{}, fmt.Errorf("marshal the key: %w", err)
	}
	encode := func(kind string, der []byte) []byte {
		return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	}
	return issued{
		authority:   encode("CERTIFICATE", authorityDER),
		certificate: encode("CERTIFICATE", serverDER),
		key:         encode("PRIVATE KEY", keyDER),
	}, nil
}
