package testbed

// Isolate parts a master of a deployment WithProxies from the other servers: no
// sentinel, replica or node reaches it, nor does it reach a node, and connections that
// they have are closed. Its clients reach it as before: so once the others have
// elected a new master there are two. It does not part a replica from its master.
// Between Isolate and Rejoin the server must not be restarted.
func (r *RedisServer) Isolate() {
	r.t.Helper()
	if r.hosts == direct {
		r.t.Fatal("testbed: Isolate needs a server of Sentinel or Cluster, WithProxies")
	}
	r.Set("bind", r.hosts.inner)
	if err := r.do("CLIENT", "KILL", "LADDR", r.peerAddr()).Err(); err != nil {
		r.t.Fatalf("testbed: CLIENT KILL at %s: %v", r.Addr(), err)
	}
	r.part(true)
}

// Rejoin ends Isolate.
func (r *RedisServer) Rejoin() {
	r.t.Helper()
	r.Set("bind", r.hosts.peers+" "+r.hosts.inner)
	r.part(false)
}

func (r *RedisServer) part(isolated bool) {
	if r.seat != nil {
		r.seat.bus.part(r.seat.source, isolated)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.isolated = isolated
}
