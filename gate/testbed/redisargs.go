package testbed

import (
	"slices"
	"strings"
)

// ACLUser returns arguments for Redis that create a user, from a line as in a Redis
// ACL file without its leading "user": "gate on >secret ~sg:* -@all +evalsha". The
// default user stays as it is; a second line "default off" shuts it out (and with it
// this package, beyond starting, killing and freezing the server).
func ACLUser(line string) []string {
	return slices.Insert(strings.Fields(line), 0, "--user")
}

// MaxMemory returns arguments for Redis that limit its memory, for example
// "64mb", and say what it does then: the policy "noeviction" refuses writes (OOM).
func MaxMemory(limit, policy string) []string {
	return []string{"--maxmemory", limit, "--maxmemory-policy", policy}
}
