package redisstore

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/gate/store/seal"
	"github.com/slotgate/slotgate/luascripts"
)

var _ store.Store = (*Store)(nil)

// Mode is how the servers of a store work together.
type Mode string

const (
	Standalone Mode = "standalone" // one server
	Sentinel   Mode = "sentinel"   // one server at a time, which sentinels name
	Cluster    Mode = "cluster"    // shards, each with a master
)

// Options say where Redis is and how long to wait for it. Zero values stand for
// the defaults in brackets.
type Options struct {
	Mode Mode // [Standalone]
	// Addresses are host:port: of the server, which may also be the path of a unix
	// socket, of the sentinels, or of some of the cluster's nodes [127.0.0.1:6379].
	Addresses  []string
	MasterName string // what the sentinels call the server
	Username   string
	Password   string
	DB         int
	TLS        *tls.Config // nil: plain

	Prefix string // of every key: letters, digits and -._~: [slotgate]
	// Secret keys the hashes in names; all gates of a store need the same. Empty:
	// made once and shared through the store.
	Secret string
	// EncryptKey, 32 bytes in base64, seals stored answers, and the texts of subjects and
	// references (package seal). EncryptOldKeys are still read. Empty: as they are.
	EncryptKey     string
	EncryptOldKeys []string

	Timeout  time.Duration // of one call, its retry included [250ms]
	PoolSize int           // connections for first attempts, beside the few of batches [64]; retries have a quarter of it

	Logger *slog.Logger // [slog.Default()]
	// Observe is told of every call when it ends: what it was, how long it took and
	// what became of it. It is called from many goroutines.
	Observe func(op string, took time.Duration, err error)
}

// Store is safe for concurrent use.
type Store struct {
	timeout time.Duration
	keys    luascripts.Keys
	none    string // keys.None()
	channel string // keys.Channel()
	slots   slotNames
	log     *slog.Logger
	observe func(op string, took time.Duration, err error)

	runs runs

	client    redis.UniversalClient // first attempts, and notices
	fresh     redis.UniversalClient // second attempts: never reuses a connection
	server    *server               // the only one; nil on a cluster
	sentinels *sentinels            // nil unless they name that
	reloads   reloads

	secret     secret
	sealer     sealer
	watches    *watches
	runWatches *watches   // runwatch.go
	clerk      *clerk     // cluster_clerk.go
	enlisted   *enlisted  // cluster_index.go
	unfinished unfinished // cluster_settle.go
	unclaimed  unclaimed  // cluster_touch.go
	closed     atomic.Bool
	stop       context.CancelFunc
	stopped    chan struct{} // closed when the listener has ended

	// ahead is how many milliseconds the store's clock is moved; tests only.
	ahead atomic.Int64

	instance string // names this process's calls
	calls    atomic.Uint64
}

// Open prepares a store and returns without waiting for Redis, which may be away:
// calls fail until it is there. The error is about the options only.
func Open(ctx context.Context, o Options) (*Store, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	keys, err := seal.New(o.EncryptKey, o.EncryptOldKeys)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	quiet.Do(func() { redis.SetLogger(library{o.Logger}) })
	listening, stop := context.WithCancel(context.WithoutCancel(ctx))
	names := luascripts.Keys{Prefix: o.Prefix}
	s := &Store{
		timeout: o.Timeout,
		keys:    names,
		none:    names.None(),
		channel: names.Channel(),
		log:     o.Logger,
		observe: o.Observe,
		watches: newWatches(), runWatches: newWatches(),
		stop: stop, stopped: make(chan struct{}),
		instance: rand.Text()[:12],
	}
	if o.Mode != Cluster {
		s.server = s.runs.at("")
	}
	if o.Mode == Sentinel {
		s.sentinels = newSentinels(o)
	}
	s.client, s.fresh = s.clients(o)
	if o.Mode == Cluster {
		s.reload() // so that no call need do it in its time
	}
	s.clerk, s.enlisted = newClerk(), newEnlisted(s.WatchRun())
	s.secret.configure(o.Secret)
	s.sealer.keys = keys
	go func() {
		defer close(s.stopped)
		var background sync.WaitGroup
		background.Go(func() { s.watchRun(listening) })
		if s.sharded() {
			background.Go(func() { s.keepPlanning(listening) })
			background.Go(func() { s.keepShipping(listening) })
		}
		if s.sentinels != nil {
			background.Go(func() { s.sentinels.follow(listening) })
		}
		s.listen(listening)
		background.Wait()
	}()
	return s, nil
}

func (o Options) withDefaults() (Options, error) {
	if o.Mode == "" {
		o.Mode = Standalone
	}
	switch {
	case o.Mode != Standalone && o.Mode != Sentinel && o.Mode != Cluster:
		return o, fmt.Errorf("store mode %q: use standalone, sentinel or cluster", o.Mode)
	case o.Mode == Sentinel && o.MasterName == "":
		return o, errors.New("store master name is missing: sentinels are asked for a master by its name")
	case o.Mode == Cluster && o.DB != 0:
		return o, fmt.Errorf("store db %d: a cluster has only db 0", o.DB)
	}
	if len(o.Addresses) == 0 {
		o.Addresses = []string{"127.0.0.1:6379"}
	}
	if o.Prefix == "" {
		o.Prefix = "slotgate"
	}
	for i := range len(o.Prefix) {
		if c := o.Prefix[i]; c != ':' && luascripts.Encode(string(c)) != string(c) {
			return o, fmt.Errorf("store prefix %q: %q is not allowed; use letters, digits and any of -._~: instead", o.Prefix, c)
		}
	}
	if o.Timeout == 0 {
		o.Timeout = 250 * time.Millisecond
	}
	if o.Timeout < 5*time.Millisecond {
		return o, fmt.Errorf("store timeout %v is too short for a call and its retry; use 5ms or more", o.Timeout)
	}
	if o.PoolSize == 0 {
		o.PoolSize = 64
	}
	if o.PoolSize < 0 || o.DB < 0 {
		return o, errors.New("store pool size and db must not be negative")
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Observe == nil {
		o.Observe = func(string, time.Duration, error) {}
	}
	return o, nil
}

// library takes the client library's own lines, which it writes for every dial that
// fails and for the whole process: they go to the first store's log, at debug level.
type library struct{ log *slog.Logger }

var quiet sync.Once

func (l library) Printf(ctx context.Context, format string, args ...any) {
	if l.log.Enabled(ctx, slog.LevelDebug) {
		l.log.DebugContext(ctx, fmt.Sprintf(format, args...))
	}
}

// Ping checks that Redis answers.
func (s *Store) Ping(ctx context.Context) error {
	return s.try(ctx, "ping", func(ctx context.Context, client redis.UniversalClient, _ bool) error {
		return client.Ping(ctx).Err()
	})
}

// Close ends all watches and connections. Calls that run fail.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		<-s.stopped
		return nil
	}
	s.stop()
	err := errors.Join(s.client.Close(), s.fresh.Close())
	if s.sentinels != nil {
		err = errors.Join(err, s.sentinels.close())
	}
	<-s.stopped
	s.watches.end()
	return err
}

// nextCall names one call of this process, for the tombstone that keeps its own
// copies out, and no later call of the same id.
func (s *Store) nextCall() string {
	return s.instance + "." + strconv.FormatUint(s.calls.Add(1), 36)
}
