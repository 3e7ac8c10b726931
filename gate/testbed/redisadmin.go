package testbed

import (
	"context"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Set changes settings of the running server (CONFIG SET), given as names and values,
// for example "maxmemory", "1mb". A restart forgets them.
func (r *RedisServer) Set(settings ...string) {
	r.t.Helper()
	args := []any{"CONFIG", "SET"}
	for _, word := range settings {
		args = append(args, word)
	}
	if err := r.do(args...).Err(); err != nil {
		r.t.Fatalf("testbed: CONFIG SET %v at %s: %v", settings, r.Addr(), err)
	}
}

// SetUser changes what a user may do (ACL SETUSER), from a line as for ACLUser: "gate
// -evalsha" takes one command from it, at once and on open connections too.
func (r *RedisServer) SetUser(line string) {
	r.t.Helper()
	args := []any{"ACL", "SETUSER"}
	for _, word := range strings.Fields(line) {
		args = append(args, word)
	}
	if err := r.do(args...).Err(); err != nil {
		r.t.Fatalf("testbed: ACL SETUSER %s at %s: %v", line, r.Addr(), err)
	}
}

// Flush deletes all data of the server, as an operator might. Its replicas
// follow; cached scripts stay.
func (r *RedisServer) Flush() {
	r.t.Helper()
	// A master that a failover has just made waits for replicas, where it must have some.
	err := await(func() error { return r.do("FLUSHALL").Err() })
	if err != nil {
		r.t.Fatalf("testbed: FLUSHALL at %s: %v", r.Addr(), err)
	}
}

// FlushScripts empties the script cache. Replicas keep theirs.
func (r *RedisServer) FlushScripts() {
	r.t.Helper()
	if err := r.do("SCRIPT", "FLUSH").Err(); err != nil {
		r.t.Fatalf("testbed: SCRIPT FLUSH at %s: %v", r.Addr(), err)
	}
}

// info returns the fields of one section of INFO.
func (r *RedisServer) info(section string) (map[string]string, error) {
	return infoFields(r.do("INFO", section).Text())
}

// infoFields reads lines of "name:value".
func infoFields(text string, err error) (map[string]string, error) {
	found := make(map[string]string)
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			found[name] = value
		}
	}
	return found, err
}

// commandTimeout is how long a running server may take to answer this package.
const commandTimeout = 5 * time.Second

// do sends one command over a connection of its own, past any proxy.
func (r *RedisServer) do(args ...any) *redis.Cmd {
	client := redis.NewClient(&redis.Options{
		Addr: r.DirectAddr(), Protocol: 2, MaxRetries: -1, DialerRetries: 1,
		TLSConfig: r.tlsConfig(), DialTimeout: commandTimeout, ReadTimeout: commandTimeout, DisableIdentity: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	defer client.Close()
	return client.Do(context.Background(), args...)
}
