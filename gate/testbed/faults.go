package testbed

import (
	"slices"
	"strings"
	"time"
)

// fate is what is to befall the reply of one request.
type fate struct {
	cuts []*cut // orders to lose it together with the connection
	drop bool
}

// cut is one order to lose a reply.
type cut struct {
	command []string
	after   int // matching requests still to come, the doomed one included
	done    chan struct{}
}

// CutAfter loses the reply of the n-th such command from now on, 1 being the
// next: Redis gets the request, its whole reply is read, then the connection
// is closed before a byte of that reply reaches the client. Replies of earlier
// requests in the same pipeline arrive; requests behind it never reach Redis.
// The channel is closed when it has happened, so that a test can prove it did.
// Subscribe commands have no reply of their own and are never cut.
func (p *RedisProxy) CutAfter(command string, n int) <-chan struct{} {
	p.t.Helper()
	c := &cut{command: strings.Fields(command), after: n, done: make(chan struct{})}
	if n < 1 || len(c.command) == 0 {
		p.t.Fatalf("testbed: CutAfter(%q, %d): want a command and n >= 1", command, n)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cuts = append(p.cuts, c)
	return c.done
}

// DelayRequests lets every request reach Redis d after it came. One whose
// client has left meanwhile still arrives, as it may on a real network.
func (p *RedisProxy) DelayRequests(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requestDelay = d
}

// DelayReplies lets every reply reach the client d after Redis sent it.
func (p *RedisProxy) DelayReplies(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.replyDelay = d
}

// DropReplies with true throws away every reply that comes, or whose request
// came, until it is called with false; connections stay open meanwhile. A
// connection that lost a reply stays silent for good: its next reply would be
// taken for the lost one.
func (p *RedisProxy) DropReplies(drop bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dropReplies = drop
}

// Requests returns how many requests with this first word have come, whether
// or not a fault befell them.
func (p *RedisProxy) Requests(name string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.requests[strings.ToUpper(name)]
}

// noteRequest counts and records a request and returns the fate of its reply
// and its own delay.
func (p *RedisProxy) noteRequest(raw []byte, args []string) (fate, time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(args) > 0 {
		p.requests[strings.ToUpper(args[0])]++
	}
	for _, recording := range p.recordings {
		if matches(recording.command, args) {
			recording.requests = append(recording.requests, raw)
		}
	}
	f := fate{drop: p.dropReplies}
	if hasOwnReply(args) {
		f.cuts = p.dueCuts(args)
	}
	return f, p.requestDelay
}

// dueCuts counts a request against every order and takes out those that are
// due: usually none, several if they meet. The caller holds p.mu.
func (p *RedisProxy) dueCuts(args []string) []*cut {
	var due []*cut
	p.cuts = slices.DeleteFunc(p.cuts, func(c *cut) bool {
		if matches(c.command, args) {
			c.after--
		}
		if c.after > 0 {
			return false
		}
		due = append(due, c)
		return true
	})
	return due
}

// replyTerms returns whether replies are lost now, and their delay.
func (p *RedisProxy) replyTerms() (dropped bool, delay time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dropReplies, p.replyDelay
}

// matches tells whether args begin with the words of command.
func matches(command, args []string) bool {
	if len(args) < len(command) {
		return false
	}
	for i, word := range command {
		if !strings.EqualFold(word, args[i]) {
			return false
		}
	}
	return true
}

// hasOwnReply tells whether Redis answers a command with a value in the order
// of requests. Subscriptions are confirmed by messages instead.
func hasOwnReply(args []string) bool {
	return len(args) > 0 && !strings.HasSuffix(strings.ToUpper(args[0]), "SUBSCRIBE")
}
