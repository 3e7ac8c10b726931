package testbed

import (
	"net"
	"testing"
)

func TestFreePortIsBindableAndNeverGivenTwice(t *testing.T) {
	seen := make(map[int]bool)
	for range 50 {
		port := FreePort(t)
		if seen[port] {
			t.Fatalf("port %d was given twice", port)
		}
		seen[port] = true
		listener, err := net.Listen("tcp", loopback(port))
		if err != nil {
			t.Fatal(err)
		}
		listener.Close()
	}
}
