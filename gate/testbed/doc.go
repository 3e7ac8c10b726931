// Package testbed starts the real programs that tests run against, and breaks
// the wire between them on purpose.
//
//	Redis          a redis-server of the test's own: killed, frozen, restarted at will
//	RedisTLS       the same behind TLS, with a certificate authority of its own
//	Sentinel       a master, two replicas and three sentinels
//	Cluster        six nodes: three masters, each with a replica
//	Proxy          a TCP proxy in front of Redis that loses, delays, changes and copies chosen commands
//	Postgres       a fresh PostgreSQL database, on a server shared by the test binary
//	MariaDB        a fresh MariaDB database, likewise
//	Nginx          an nginx as reverse proxy before a backend of the test
//	FreePort       a loopback port that nobody listens on
//
// Everything listens on the loopback only, at 127.0.0.1 and, where servers need a way
// past their proxies, at other addresses of 127.0.0.0/8 (hosts.go, bus.go); it keeps
// its files in a temporary folder and ends with the test: by t.Cleanup when the test
// returns, and by the kernel's parent-death signal when the test binary is killed (what
// stays then is a temporary folder, as with t.TempDir). A program that is not installed
// fails the test with the command that installs it; nothing is ever skipped.
//
// The package needs Linux (waitid, parent-death signal), and Redis 7 for Sentinel and
// Cluster. Methods that can fail the test must be called from the test's own goroutine,
// as testing.T asks.
package testbed
