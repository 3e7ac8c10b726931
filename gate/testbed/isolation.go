package testbed

// Isolate parts a master of a deployment WithProxies from the other servers: no
// sentinel and no replica reaches it, and connections that they have are closed. Its
// clients reach it as before, so once the others have elected a new master there are
// two. It suits Sentinel only: nodes of a Cluster hear of each other by other ways,
// and a replica goes on following a master that it has a connection to.
func (r *RedisServer) Isolate() {
	r.t.Helper()
	if r.hosts == direct || r.cluster {
		r.t.Fatal("testbed: Isolate needs a server of Sentinel(t, WithProxies())")
	}
	r.Set("bind", r.hosts.inner)
	if err := r.do("CLIENT", "KILL", "LADDR", r.peerAddr()).Err(); err != nil {
		r.t.Fatalf("testbed: CLIENT KILL at %s: %v", r.Addr(), err)
	}
}

// Rejoin ends Isolate.
func (r *RedisServer) Rejoin() {
	r.t.Helper()
	r.Set("bind", r.hosts.peers+" "+r.hosts.inner)
}
