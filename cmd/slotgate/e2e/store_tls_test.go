package e2e

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/slotgate/slotgate/cmd/legacybooking/booking"
	"github.com/slotgate/slotgate/cmd/slotgate/e2e/stage"
	"github.com/slotgate/slotgate/gate/testbed"
)

// TestStoreTLS: `tls: true` believes the authorities that the machine trusts, in every
// topology, and no other.
func TestStoreTLS(t *testing.T) {
	server := testbed.RedisTLS(t)
	sentinels, cluster := testbed.Sentinel(t, testbed.WithTLS()), testbed.Cluster(t, testbed.WithTLS())
	backend := stage.StartBackend(t, booking.Options{Style: booking.Conditional, Lessons: 6, Seats: 1})
	lesson := 0
	for _, store := range []struct {
		topology stage.Topology
		of       *testbed.RedisServer
	}{
		{stage.Topology{Mode: "standalone", Addresses: []string{server.Addr()}}, server},
		{stage.Topology{Mode: "sentinel", Addresses: sentinels.Addrs(), Master: sentinels.MasterName()}, sentinels.Servers()[0]},
		{stage.Topology{Mode: "cluster", Addresses: cluster.Addrs()}, cluster.Nodes()[0]},
	} {
		t.Run(store.topology.Mode, func(t *testing.T) {
			config := stage.Lessons(backend.URL, store.topology.Store("tls: true", "timeout: 5s"), "", "capacity: 1", "")
			authorities := filepath.Join(t.TempDir(), "roots.pem")
			if err := os.WriteFile(authorities, store.of.CA(), 0o600); err != nil {
				t.Fatal(err)
			}

			lesson++
			stranger := stage.StartGate(t, config)
			stage.Expect(t, stage.Book(stranger.URL, lesson, "ann"), 201, "passthrough", "booked")

			t.Setenv("SSL_CERT_FILE", authorities) // where Go looks for what the machine trusts
			lesson++
			gate := stage.StartGate(t, config)
			stage.NormalAgain(t, gate)
			stage.Expect(t, stage.Book(gate.URL, lesson, "ann"), 201, "admitted", "booked")
		})
	}
}
