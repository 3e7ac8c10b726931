package redisstore

import (
	"context"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// topologyCheck is how old a gate's view of a cluster may grow when nothing fails.
const topologyCheck = 5 * time.Second

// buffer is the size of a connection's two, in bytes: a call and its reply fit, and longer
// ones pass in parts. With the library's own a connection takes 64 KiB, and a gate that has
// seen every node of a cluster as master keeps over a hundred.
const buffer = 4 << 10

// batchBuffer is that of a connection for calls that go together, to write: a batch passes
// in few parts.
const batchBuffer = 64 << 10

// firstShare is the first attempt's part of a call's time.
func firstShare(timeout time.Duration) time.Duration { return timeout * 2 / 5 }

// clients returns those of first and second attempts.
func (s *Store) clients(o Options) (first, fresh redis.UniversalClient) {
	if o.Mode == Cluster {
		return s.cluster(o.cluster(o.PoolSize), firstShare(o.Timeout)), s.cluster(o.freshCluster(), 0)
	}
	direct, again := o.direct(o.PoolSize), o.freshDirect()
	direct.OnConnect, again.OnConnect = s.greet(s.server), s.greet(s.server)
	if s.sentinels != nil {
		direct.Dialer, again.Dialer = lazily(s.sentinels.connect), lazily(s.sentinels.connect)
	}
	client := redis.NewClient(direct)
	newBatcher(client, firstShare(o.Timeout))
	return client, redis.NewClient(again)
}

func (o Options) direct(size int) *redis.Options {
	network := "tcp"
	if o.Addresses[0] != "" && o.Addresses[0][0] == '/' {
		network = "unix"
	}
	return &redis.Options{
		Network: network, Addr: o.Addresses[0],
		Username: o.Username, Password: o.Password, DB: o.DB, Dialer: lazily(o.dialer()),
		// Scripts are repeated by us, once and marked, or not at all.
		MaxRetries: -1, DialerRetries: 1,
		ContextTimeoutEnabled: true,
		DialTimeout:           firstShare(o.Timeout), PoolTimeout: firstShare(o.Timeout),
		ReadTimeout: o.Timeout, WriteTimeout: o.Timeout,
		PoolSize: size, MaxActiveConns: size, ReadBufferSize: buffer, WriteBufferSize: buffer,
		PipelineReadBufferSize: 4 * buffer, PipelineWriteBufferSize: batchBuffer,
		// Both are asked for when a connection opens, and are errors on Redis 7 and
		// on servers that speak its protocol.
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		Protocol:                 2,
	}
}

// freshDirect dials for every call: a connection is too old as soon as it is back
// in the pool, and hardly any waits there.
func (o Options) freshDirect() *redis.Options {
	fresh := o.direct(o.freshPool())
	fresh.ConnMaxLifetime, fresh.MaxIdleConns = time.Nanosecond, 1
	return fresh
}

func (o Options) freshPool() int { return max(1, o.PoolSize/4) }

// cluster is direct for each node.
func (o Options) cluster(size int) *redis.ClusterOptions {
	direct := o.direct(size)
	return &redis.ClusterOptions{
		// Each client appends the nodes that it finds to this: none may find room there.
		Addrs:    slices.Clip(slices.Clone(o.Addresses)),
		Username: direct.Username, Password: direct.Password, Dialer: direct.Dialer,
		// Redirections only: scripts opt out of the rest (type once).
		MaxRedirects: 3, MinRetryBackoff: 5 * time.Millisecond, MaxRetryBackoff: 20 * time.Millisecond,
		MaxRetries: direct.MaxRetries, DialerRetries: direct.DialerRetries,
		ContextTimeoutEnabled: direct.ContextTimeoutEnabled,
		DialTimeout:           direct.DialTimeout, PoolTimeout: direct.PoolTimeout,
		ReadTimeout: direct.ReadTimeout, WriteTimeout: direct.WriteTimeout,
		PoolSize: direct.PoolSize, MaxActiveConns: direct.MaxActiveConns,
		ReadBufferSize: direct.ReadBufferSize, WriteBufferSize: direct.WriteBufferSize,
		PipelineReadBufferSize: direct.PipelineReadBufferSize, PipelineWriteBufferSize: direct.PipelineWriteBufferSize,
		DisableIdentity: direct.DisableIdentity, MaintNotificationsConfig: direct.MaintNotificationsConfig,
		Protocol:                   direct.Protocol,
		ClusterStateReloadInterval: topologyCheck,
		// Else the library asks for the list of commands, and sends PING to every node.
		DisableRoutingPolicies: true,
	}
}

func (o Options) freshCluster() *redis.ClusterOptions {
	fresh := o.cluster(o.freshPool())
	fresh.ConnMaxLifetime, fresh.MaxIdleConns = time.Nanosecond, 1
	return fresh
}

// cluster returns a client whose scripts share pipelines to each node, with a time for each
// attempt, or do not, for 0.
func (s *Store) cluster(o *redis.ClusterOptions, attempt time.Duration) *redis.ClusterClient {
	o.NewClient = func(node *redis.Options) *redis.Client {
		one := s.runs.at(node.Addr)
		node.OnConnect = s.greet(one)
		client := redis.NewClient(node)
		client.AddHook(&nodeHook{store: s, server: one, client: client})
		if attempt > 0 {
			newBatcher(client, attempt)
		}
		return client
	}
	cluster := redis.NewClusterClient(o)
	cluster.OnNewNode(func(client *redis.Client) { // the library has finished it by then
		s.runs.at(client.Options().Addr).reachedBy(client)
	})
	return cluster
}

// greet asks a new connection for the server's run before anything else is sent.
func (s *Store) greet(one *server) func(context.Context, *redis.Conn) error {
	return func(ctx context.Context, cn *redis.Conn) error { return s.greetRun(ctx, one, cn) }
}

// once is a command that the library must not repeat.
type once struct {
	*redis.Cmd
	shared bool // whether it may be sent with others (batcher)
}

// NoRetry opts out.
func (once) NoRetry() bool { return true }

// nodeHook tells the scripts that are sent to one node of a cluster the run of its
// shard.
type nodeHook struct {
	store  *Store
	server *server
	client *redis.Client
}

// DialHook is part of redis.Hook.
func (h *nodeHook) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook is part of redis.Hook.
func (h *nodeHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if err := h.address(ctx, cmd); err != nil {
			return err
		}
		err := next(ctx, cmd)
		h.heed(err)
		return err
	}
}

// ProcessPipelineHook is part of redis.Hook.
func (h *nodeHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			if err := h.address(ctx, cmd); err != nil {
				for _, cmd := range cmds {
					cmd.SetErr(err)
				}
				return err
			}
		}
		err := next(ctx, cmds)
		for _, cmd := range cmds {
			h.heed(cmd.Err())
		}
		return err
	}
}

// address makes a script's last argument that of the node.
func (h *nodeHook) address(ctx context.Context, cmd redis.Cmder) error {
	args := cmd.Args()
	word, ok := args[len(args)-1].(*runWord)
	if !ok {
		return nil
	}
	word.server = h.server
	return h.store.known(ctx, h.server, h.client)
}

// heed has a node asked again which no longer serves what it served.
func (h *nodeHook) heed(err error) {
	if _, moved := redis.IsMovedError(err); moved || err != nil && redis.IsReadOnlyError(err) {
		h.server.doubt.Store(true)
	}
}
