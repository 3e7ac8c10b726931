package testbed

import (
	"slices"
	"strings"
)

// order is a fault that is to befall one request, chosen by counting.
type order struct {
	fault   fault
	command []string
	after   int // matching requests still to come, the chosen one included
	change  func(reply []byte) []byte
	done    chan struct{}
}

// fault is what an order does. Where several befall one request a cut wins, and all
// of them count as done.
type fault int

const (
	cutBefore fault = iota // the request and the connection are lost
	cutAfter               // the reply and the connection are lost
	corrupt                // the reply is changed
)

// fate is what is to befall one request.
type fate struct {
	orders []*order // of one kind if one of them is cutBefore
	drop   bool     // its reply, in silence
}

// has tells whether any of the orders is of a kind.
func (f fate) has(kind fault) bool {
	return slices.ContainsFunc(f.orders, func(o *order) bool { return o.fault == kind })
}

// CutAfter loses the reply of the n-th such command from now on, 1 being the
// next: Redis gets the request, its whole reply is read, then the connection
// is closed before a byte of that reply reaches the client. Replies of earlier
// requests in the same pipeline arrive; requests behind it never reach Redis.
// The channel is closed when it has happened, so that a test can prove it did.
// Subscribe commands have no reply of their own and are never cut.
func (p *RedisProxy) CutAfter(command string, n int) <-chan struct{} {
	p.t.Helper()
	return p.order(&order{fault: cutAfter}, command, n)
}

// CutBefore loses the n-th such command itself, 1 being the next: the connection
// is closed instead of passing it on. Replies of earlier requests in the same
// pipeline arrive; neither it nor what is behind it reaches Redis. For other
// orders it does not count as a request.
func (p *RedisProxy) CutBefore(command string, n int) <-chan struct{} {
	p.t.Helper()
	return p.order(&order{fault: cutBefore}, command, n)
}

// Corrupt lets change alter the reply of the n-th such command, 1 being the next.
// change gets all bytes of the reply, which are its own, and returns what the
// client gets instead; Flip makes a simple one. Subscribe commands have no reply of
// their own and are left alone.
func (p *RedisProxy) Corrupt(command string, n int, change func(reply []byte) []byte) <-chan struct{} {
	p.t.Helper()
	return p.order(&order{fault: corrupt, change: change}, command, n)
}

// Flip inverts all bits of one byte: that at index at, counted around the end and
// from it if negative.
func Flip(at int) func(reply []byte) []byte {
	return func(reply []byte) []byte {
		i := at % len(reply)
		if i < 0 {
			i += len(reply)
		}
		reply[i] ^= 0xff
		return reply
	}
}

func (p *RedisProxy) order(o *order, command string, n int) <-chan struct{} {
	p.t.Helper()
	o.command, o.after, o.done = strings.Fields(command), n, make(chan struct{})
	if n < 1 || len(o.command) == 0 {
		p.t.Fatalf("testbed: a fault of request %d of %q: want a command and n >= 1", n, command)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.orders = append(p.orders, o)
	return o.done
}

// Requests returns how many requests with this first word have come, whether
// or not a fault befell them.
func (p *RedisProxy) Requests(name string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.requests[strings.ToUpper(name)]
}

// note counts and records a request.
func (p *RedisProxy) note(raw []byte, args []string) {
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
}

// fateOf counts a request against the orders and returns what is to befall it.
func (p *RedisProxy) fateOf(args []string) fate {
	p.mu.Lock()
	defer p.mu.Unlock()
	lost := p.due(args, func(o *order) bool { return o.fault == cutBefore })
	if len(lost) > 0 {
		return fate{orders: lost}
	}
	f := fate{drop: p.terms.dropReplies}
	if hasOwnReply(args) {
		f.orders = p.due(args, func(o *order) bool { return o.fault != cutBefore })
	}
	return f
}

// due counts a request against the orders it concerns and takes out those that are
// due: usually none, several if they meet. The caller holds p.mu.
func (p *RedisProxy) due(args []string, concerns func(*order) bool) []*order {
	var due []*order
	p.orders = slices.DeleteFunc(p.orders, func(o *order) bool {
		if !concerns(o) || !matches(o.command, args) {
			return false
		}
		o.after--
		if o.after > 0 {
			return false
		}
		due = append(due, o)
		return true
	})
	return due
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
