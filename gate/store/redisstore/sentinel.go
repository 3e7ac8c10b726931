package redisstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// sentinels know which server is the master. They are asked whenever a connection is
// opened, all at once, and followed for changes: a connection to a server that is the
// master no more is closed at once, before more is written there that will be lost.
//
// The client library's own way asks one sentinel until that fails, so that one which
// hangs, or is cut off with an old master, is believed.
type sentinels struct {
	name    string        // of the master, as they call it
	timeout time.Duration // of a question
	dial    func(ctx context.Context, network, address string) (net.Conn, error)
	clients []*redis.SentinelClient

	mu     sync.Mutex
	asking *answer // the question under way
	master string  // as last answered
	links  map[*link]struct{}
}

// answer is what all who ask at the same time get.
type answer struct {
	done   chan struct{}
	master string
	err    error
}

func newSentinels(o Options) *sentinels {
	s := &sentinels{name: o.MasterName, timeout: firstShare(o.Timeout), dial: o.dialer(), links: make(map[*link]struct{})}
	for _, address := range o.Addresses {
		direct := o.direct(2)
		direct.Addr, direct.DB, direct.Dialer = address, 0, lazily(s.dial)
		direct.Username, direct.Password = "", ""
		direct.OnConnect = func(ctx context.Context, cn *redis.Conn) error { return login(ctx, cn, o.Username, o.Password) }
		s.clients = append(s.clients, redis.NewSentinelClient(direct))
	}
	return s
}

// login gives a sentinel that wants a password the servers' one.
func login(ctx context.Context, cn *redis.Conn, username, password string) error {
	err := cn.Ping(ctx).Err()
	switch {
	case code(err) != "NOAUTH" || password == "":
		return err
	case username != "":
		return cn.AuthACL(ctx, username, password).Err()
	}
	return cn.Auth(ctx, password).Err()
}

// connect opens a connection to the master.
func (s *sentinels) connect(ctx context.Context, _, _ string) (net.Conn, error) {
	address, err := s.find(ctx)
	if err != nil {
		return nil, err
	}
	connection, err := s.dial(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	l := &link{Conn: connection, to: address, of: s}
	s.mu.Lock()
	s.links[l] = struct{}{}
	stale := s.master != address
	s.mu.Unlock()
	if stale {
		l.Close()
		return nil, fmt.Errorf("%s is the master no more", address)
	}
	if plain, ok := connection.(syscall.Conn); ok {
		return checkedLink{l, plain}, nil
	}
	return l, nil
}

// find asks who the master is.
func (s *sentinels) find(ctx context.Context) (string, error) {
	s.mu.Lock()
	question := s.asking
	if question == nil {
		question = &answer{done: make(chan struct{})}
		s.asking = question
		go s.ask(question)
	}
	s.mu.Unlock()
	select {
	case <-question.done:
		return question.master, question.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// vote is what one sentinel says; epoch counts the failovers it knows of.
type vote struct {
	master string
	epoch  int64
	err    error
}

// ask takes the word of whoever knows of the latest failover, once most sentinels have
// answered, or all that will; those that hang are not waited for.
func (s *sentinels) ask(question *answer) {
	ctx, cancel := context.WithTimeout(context.Background(), s.timeout)
	defer cancel()
	votes := make(chan vote, len(s.clients))
	for _, client := range s.clients {
		go func() { votes <- s.poll(ctx, client) }()
	}
	latest, answered := vote{epoch: -1}, 0
	var failures []error
	enough := len(s.clients)/2 + 1
	patience := time.After(s.timeout / 2)
	for heard := 0; heard < len(s.clients) && answered < enough; {
		select {
		case <-patience:
			enough = 1
		case v := <-votes:
			heard++
			if v.err != nil {
				failures = append(failures, v.err)
				continue
			}
			answered++
			if v.epoch > latest.epoch {
				latest = v
			}
		}
	}
	question.master = latest.master
	if answered == 0 {
		question.err = fmt.Errorf("no sentinel names the master %q: %w", s.name, errors.Join(failures...))
	}
	s.answered(question)
}

// poll asks one sentinel. The epoch comes first: were it newer than the address, an old
// address would be believed.
func (s *sentinels) poll(ctx context.Context, client *redis.SentinelClient) vote {
	view, err := client.Master(ctx, s.name).Result()
	if err != nil {
		return vote{err: err}
	}
	address, err := client.GetMasterAddrByName(ctx, s.name).Result()
	if err != nil {
		return vote{err: err}
	}
	epoch, err := strconv.ParseInt(view["config-epoch"], 10, 64)
	if err != nil || len(address) != 2 {
		return vote{err: fmt.Errorf("a sentinel says %.100q and %.100q of its master", view["config-epoch"], address)}
	}
	return vote{master: net.JoinHostPort(address[0], address[1]), epoch: epoch}
}

// answered ends a question and the connections to other servers.
func (s *sentinels) answered(question *answer) {
	var stale []*link
	s.mu.Lock()
	s.asking = nil
	if question.err == nil && question.master != s.master {
		s.master = question.master
		for l := range s.links {
			if l.to != s.master {
				stale = append(stale, l)
			}
		}
	}
	s.mu.Unlock()
	close(question.done)
	for _, l := range stale {
		l.Close()
	}
}

// follow asks again whenever a sentinel says that a failover goes on, until ctx ends.
func (s *sentinels) follow(ctx context.Context) {
	var all sync.WaitGroup
	for _, client := range s.clients {
		all.Go(func() {
			keepHearing(ctx, func() bool { return s.hear(ctx, client) })
		})
	}
	all.Wait()
}

// hear listens to one sentinel until the connection ends, and reports whether it was
// ever subscribed.
func (s *sentinels) hear(ctx context.Context, client *redis.SentinelClient) (heard bool) {
	subscription := client.Subscribe(ctx, "+switch-master", "+promoted-slave", "+config-update-from")
	defer subscription.Close()
	defer context.AfterFunc(ctx, func() { subscription.Close() })()
	for {
		if _, err := nextMessage(ctx, subscription); err != nil {
			return heard
		}
		heard = true
		_, _ = s.find(ctx) // which notes the answer
	}
}

// close ends the sentinels' connections.
func (s *sentinels) close() error {
	var failed []error
	for _, client := range s.clients {
		failed = append(failed, client.Close())
	}
	return errors.Join(failed...)
}

// link is a connection to the server that was the master when it was opened.
type link struct {
	net.Conn
	to string
	of *sentinels
}

// Close may be called twice.
func (l *link) Close() error {
	l.of.mu.Lock()
	delete(l.of.links, l)
	l.of.mu.Unlock()
	return l.Conn.Close()
}

// checkedLink is a link that the library can look at before it uses it again.
type checkedLink struct {
	*link
	syscall.Conn
}
