package upstream

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/slotgate/slotgate/rules"
)

// Options describe the backend. Zero durations and counts get the defaults of
// the configuration file.
type Options struct {
	// URL is http://host[:port], https://host[:port] or unix:/path.
	URL string
	// ConnectTimeout bounds getting a connection: waiting for a free one, dialing
	// and the TLS handshake together.
	ConnectTimeout time.Duration
	// Timeout of a streamed exchange: until the answer's head, and before that for each
	// write of a long request.
	// A gated exchange brings its own deadline.
	Timeout time.Duration
	// IdleTimeout is how long a streamed answer, or a tunnel, may be silent.
	IdleTimeout time.Duration
	// MaxConnections bounds the connections in use at once: so many for gated, as
	// many for other traffic, and as many for tunnels.
	MaxConnections int
	// KeepAlive is how long a connection may lie idle and still be used.
	KeepAlive time.Duration
	Breaker   rules.BackendBreaker
	// MaxHeader bounds the head of an answer, in bytes; default 64 KiB.
	MaxHeader int
	// TLS is used with an https URL; nil verifies against the system's roots.
	TLS *tls.Config
	// Budget bounds the memory of buffered answers; nil does not.
	Budget Budget
	// Observe, if set, is told of every exchange; it must not block.
	Observe func(Exchange)
}

// Budget counts bytes held in memory. It is safe for concurrent use.
type Budget interface {
	// Take reserves n bytes, or reserves nothing and returns false.
	Take(n int64) bool
	Give(n int64)
}

// Exchange is what one request did at the backend.
type Exchange struct {
	Gated  bool
	Reused bool          // an idle connection served
	Took   time.Duration // until the answer was complete; streamed: until its head
	Err    error         // a *gate.BackendError, or nil
}

// Client exchanges requests for answers with one backend. It is safe for
// concurrent use.
type Client struct {
	target  target
	dialer  net.Dialer
	connect time.Duration
	timeout time.Duration
	idle    time.Duration
	gated   *pool
	open    *pool // ungated
	tunnels *pool
	breaker *breaker
	readers readers
	texts   rules.Texts // of answers' heads
	budget  Budget
	observe func(Exchange)
}

// New checks the options. It does not connect.
func New(o Options) (*Client, error) {
	t, err := parseTarget(o.URL, o.TLS)
	if err != nil {
		return nil, err
	}
	orDefault(&o.ConnectTimeout, time.Second)
	orDefault(&o.Timeout, 5*time.Second)
	orDefault(&o.IdleTimeout, time.Minute)
	orDefault(&o.KeepAlive, 4*time.Second)
	orDefault(&o.MaxConnections, 512)
	orDefault(&o.MaxHeader, 64<<10)
	if o.Budget == nil {
		o.Budget = unlimited{}
	}
	c := &Client{
		target:  t,
		connect: o.ConnectTimeout,
		timeout: o.Timeout,
		idle:    o.IdleTimeout,
		breaker: newBreaker(o.Breaker),
		budget:  o.Budget,
		observe: o.Observe,
	}
	c.readers.longest = o.MaxHeader
	c.gated = newPool(c.dial, o.MaxConnections, o.KeepAlive)
	c.open = newPool(c.dial, o.MaxConnections, o.KeepAlive)
	c.tunnels = newPool(c.dial, o.MaxConnections, o.KeepAlive)
	return c, nil
}

// Close closes the idle connections; those in use are closed when their exchange
// ends. It may be called twice.
func (c *Client) Close() {
	c.gated.close()
	c.open.close()
}

func orDefault[T time.Duration | int](v *T, d T) {
	if *v <= 0 {
		*v = d
	}
}

type unlimited struct{}

func (unlimited) Take(int64) bool { return true }
func (unlimited) Give(int64)      {}

// target is where connections go.
type target struct {
	network, address string
	authority        string      // for requests that came without a Host
	tls              *tls.Config // nil: plain
}

func parseTarget(raw string, tlsConfig *tls.Config) (target, error) {
	if path, ok := strings.CutPrefix(raw, "unix:"); ok {
		if !strings.HasPrefix(path, "/") {
			return target{}, fmt.Errorf("upstream.url %q: write unix: and an absolute path", raw)
		}
		return target{network: "unix", address: path, authority: "localhost"}, nil
	}
	u, err := url.Parse(raw)
	if err != nil {
		return target{}, fmt.Errorf("upstream.url: %w", err)
	}
	var port string
	switch u.Scheme {
	case "http":
		port = "80"
	case "https":
		port = "443"
	default:
		return target{}, fmt.Errorf("upstream.url %q: the scheme must be http, https or unix", raw)
	}
	if u.Hostname() == "" {
		return target{}, fmt.Errorf("upstream.url %q: the host is missing", raw)
	}
	if u.User != nil || (u.Path != "" && u.Path != "/") || u.RawQuery != "" || u.Fragment != "" {
		return target{}, errors.New("upstream.url: only scheme, host and port are allowed; paths are forwarded as sent")
	}
	if p := u.Port(); p != "" {
		port = p
	}
	t := target{network: "tcp", address: net.JoinHostPort(u.Hostname(), port), authority: u.Host}
	if u.Scheme == "https" {
		t.tls = &tls.Config{}
		if tlsConfig != nil {
			t.tls = tlsConfig.Clone()
		}
		if t.tls.ServerName == "" {
			t.tls.ServerName = u.Hostname()
		}
		t.tls.NextProtos = []string{"http/1.1"}
	}
	return t, nil
}
