package testbed

import "time"

// terms are what a proxy does to everything that passes, until told otherwise.
type terms struct {
	requestDelay time.Duration
	replyDelay   time.Duration
	dropRequests bool
	dropReplies  bool
	frozen       chan struct{} // closed by Thaw; nil while all passes
}

// DelayRequests lets every request reach Redis d after it came. One whose
// client has left meanwhile still arrives, as it may on a real network.
func (p *RedisProxy) DelayRequests(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.terms.requestDelay = d
}

// DelayReplies lets every reply reach the client d after Redis sent it.
func (p *RedisProxy) DelayReplies(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.terms.replyDelay = d
}

// DropReplies with true throws away every reply that comes, or whose request
// came, until it is called with false; connections stay open meanwhile: a network
// that is cut in one direction. A connection that lost a reply stays silent for
// good: its next reply would be taken for the lost one.
func (p *RedisProxy) DropReplies(drop bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.terms.dropReplies = drop
}

// DropRequests does the same in the other direction: requests that come are thrown
// away, and a connection that lost one passes none for good. New connections are
// accepted meanwhile. With both directions dropped nothing passes at all.
func (p *RedisProxy) DropRequests(drop bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.terms.dropRequests = drop
}

// Freeze stops both directions: connections stay open, new ones are accepted, and
// nothing passes, ends of connections included, until Thaw. What was on its way when
// it is called may still arrive.
func (p *RedisProxy) Freeze() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.terms.frozen == nil {
		p.terms.frozen = make(chan struct{})
	}
}

// Thaw ends Freeze and delivers what has come meanwhile, in order.
func (p *RedisProxy) Thaw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.terms.frozen != nil {
		close(p.terms.frozen)
		p.terms.frozen = nil
	}
}

func (p *RedisProxy) currentTerms() terms {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.terms
}
