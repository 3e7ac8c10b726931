package testbed

import "fmt"

// hosts are the loopback addresses of one server. A server that stands alone
// needs one. Where proxies stand before several servers that know each other,
// each server is at the same port of three addresses: its proxy listens at the
// first and reaches it at the third, so that clients go through the proxy, the
// servers talk past it, and either way can be closed alone.
type hosts struct {
	peers string // where other servers reach it
	inner string // where its proxy does
}

// clientHost is where clients connect, whatever stands behind.
const clientHost = "127.0.0.1"

var (
	direct  = hosts{peers: clientHost, inner: clientHost}
	proxied = hosts{peers: "127.0.0.2", inner: "127.0.0.3"}
)

// bound lists the addresses that the server itself listens at.
func (h hosts) bound() []string {
	if h.peers == h.inner {
		return []string{h.peers}
	}
	return []string{h.peers, h.inner}
}

func (r *RedisServer) peerAddr() string { return fmt.Sprintf("%s:%d", r.hosts.peers, r.port) }
