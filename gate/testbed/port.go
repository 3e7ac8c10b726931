package testbed

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
)

// Ports are taken below the range from which the kernel picks the local ends
// of outgoing connections (32768 and up by default). Inside that range any
// client on the machine could sit on the port of a server that restarts.
const (
	lowestPort  = 10000
	highestPort = 32767
)

var ports = struct {
	sync.Mutex
	given map[int]bool
}{given: make(map[int]bool)}

// FreePort returns a TCP port on which nothing listens at 127.0.0.1. It never
// returns the same port twice in one process. Another process may still take
// it first, so a caller that binds it should be ready to ask again.
func FreePort(t testing.TB) int {
	t.Helper()
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	return port
}

func freePort() (int, error) {
	ports.Lock()
	defer ports.Unlock()
	var last error
	for range 200 {
		port := lowestPort + rand.IntN(highestPort-lowestPort+1)
		if ports.given[port] {
			continue
		}
		listener, err := net.Listen("tcp", loopback(port))
		if err != nil {
			last = err
			continue
		}
		listener.Close()
		ports.given[port] = true
		return port, nil
	}
	return 0, fmt.Errorf("testbed: no free port between %d and %d: %w", lowestPort, highestPort, last)
}

// onFreePort lets start try free ports until it succeeds on one. Between choosing
// a port and binding it another process may be faster.
func onFreePort(start func(port int) error) error {
	const attempts = 5
	for attempt := 1; ; attempt++ {
		port, err := freePort()
		if err != nil {
			return err
		}
		err = start(port)
		if err == nil || attempt == attempts {
			return err
		}
	}
}

func loopback(port int) string {
	return fmt.Sprintf("127.0.0.1:%d", port)
}
