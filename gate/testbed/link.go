package testbed

import (
	"bufio"
	"net"
	"sync"
	"time"
)

// link is one client connection and the connection to Redis behind it.
//
// Each direction has a reader, which decides what is to happen, and a writer,
// which does it when it is due; the queue between them keeps the order.
type link struct {
	proxy      *RedisProxy
	client     net.Conn
	upstream   *net.TCPConn // set by run before anything else uses it
	toUpstream chan parcel
	toClient   chan parcel
	severed    chan struct{}
	once       sync.Once

	mu      sync.Mutex
	awaited []fate // one entry per request whose reply is not in toClient, oldest first
}

// parcel is bytes to be written at a given time, or the end of the connection.
type parcel struct {
	bytes []byte
	due   time.Time
	end   bool
	done  []*order // carried out with it
}

// queueLength is how many parcels of one direction may be under way.
const queueLength = 1024

func newLink(p *RedisProxy, client net.Conn) *link {
	return &link{
		proxy: p, client: client, severed: make(chan struct{}),
		toUpstream: make(chan parcel, queueLength), toClient: make(chan parcel, queueLength),
	}
}

// run passes bytes until either side ends, and returns when nothing of the
// link is left.
func (l *link) run() {
	defer l.sever()
	upstream, err := net.Dial("tcp", l.proxy.upstream)
	if err != nil {
		return // the client sees its connection close, as with a dead server
	}
	defer upstream.Close()
	l.upstream = upstream.(*net.TCPConn)

	var parts sync.WaitGroup
	parts.Go(l.readRequests)
	parts.Go(l.writeRequests)
	parts.Go(l.readReplies)
	parts.Go(l.writeReplies)

	<-l.severed
	l.upstream.Close()
	parts.Wait()
}

// sever ends the link; no byte reaches the client after it returns. It may be
// called at any time and more than once.
func (l *link) sever() {
	l.once.Do(func() {
		close(l.severed)
		l.client.Close()
	})
}

// readRequests ends when the client does, or with a request that a cut is to
// befall.
func (l *link) readRequests() {
	reader := bufio.NewReader(l.client)
	lost := false
	for {
		raw, args, err := readRequest(reader)
		if err != nil {
			l.send(l.toUpstream, parcel{end: true})
			return
		}
		l.proxy.note(raw, args)
		terms := l.proxy.currentTerms()
		if lost = lost || terms.dropRequests; lost {
			continue
		}
		f := l.proxy.fateOf(args)
		if f.has(cutBefore) {
			if l.await(f) {
				l.end(f)
			}
			return
		}
		if hasOwnReply(args) {
			l.await(f)
		}
		if !l.send(l.toUpstream, parcel{bytes: raw, due: time.Now().Add(terms.requestDelay)}) || f.has(cutAfter) {
			return
		}
	}
}

// writeRequests outlives the client: what it sent arrives.
func (l *link) writeRequests() {
	for {
		p, ok := l.receive(l.toUpstream)
		if !ok {
			return
		}
		if p.end {
			// Half-closing lets Redis read all of it before it sees the end.
			_ = l.upstream.CloseWrite() // it fails if the link has ended
			return
		}
		if _, err := l.upstream.Write(p.bytes); err != nil {
			l.sever()
			return
		}
	}
}

// readReplies ends when Redis does, or with a reply that is to be lost.
func (l *link) readReplies() {
	reader := bufio.NewReader(l.upstream)
	silent := false
	for {
		reply, err := readReply(reader)
		if err != nil {
			l.end(fate{})
			return
		}
		var f fate
		if !isPush(reply) {
			f = l.oldest()
		}
		if f.has(cutAfter) {
			l.end(f)
			return
		}
		terms := l.proxy.currentTerms()
		silent = silent || terms.dropReplies || f.drop
		if !silent && !l.send(l.toClient, l.parcelOf(reply, f, terms)) {
			return
		}
		if isPush(reply) {
			continue
		}
		if next := l.answered(); next.has(cutBefore) {
			l.end(next)
			return
		}
	}
}

// parcelOf makes of a reply what the client is to get.
func (l *link) parcelOf(reply []byte, f fate, terms terms) parcel {
	if l.proxy.rewrite != nil {
		reply = l.proxy.rewrite(reply)
	}
	for _, o := range f.orders {
		reply = o.change(reply)
	}
	return parcel{bytes: reply, due: time.Now().Add(terms.replyDelay), done: f.orders}
}

// end ends the link once the client has got what is on its way.
func (l *link) end(f fate) {
	delay := l.proxy.currentTerms().replyDelay
	l.send(l.toClient, parcel{end: true, due: time.Now().Add(delay), done: f.orders})
}

// writeReplies ends the link, when it is told to.
func (l *link) writeReplies() {
	defer l.sever()
	gone := false
	for {
		p, ok := l.receive(l.toClient)
		if !ok {
			return
		}
		// Told before it is done: whoever sees the fault finds the channel closed.
		for _, o := range p.done {
			close(o.done)
		}
		if p.end {
			return
		}
		// A client that left loses its replies; Redis still gets its requests.
		if !gone {
			_, err := l.client.Write(p.bytes)
			gone = err != nil
		}
	}
}

// send returns false if the link was severed before p found room.
func (l *link) send(queue chan<- parcel, p parcel) bool {
	select {
	case queue <- p:
		return true
	case <-l.severed:
		return false
	}
}

// receive returns the next parcel when it is due and may pass, false at the end of
// the link.
func (l *link) receive(queue <-chan parcel) (parcel, bool) {
	var p parcel
	select {
	case p = <-queue:
	case <-l.severed:
		return p, false
	}
	if wait := time.Until(p.due); wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-l.severed:
			return p, false
		}
	}
	for {
		frozen := l.proxy.currentTerms().frozen
		if frozen == nil {
			return p, true
		}
		select {
		case <-frozen:
		case <-l.severed:
			return p, false
		}
	}
}

// await notes a request that will be answered, or one with which the link is to
// end. It tells whether no other is awaited.
func (l *link) await(f fate) (alone bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.awaited = append(l.awaited, f)
	return len(l.awaited) == 1
}

// oldest returns the fate of the request that a reply belongs to. Messages to a
// RESP2 subscriber look like replies; with none awaited they just pass.
func (l *link) oldest() fate {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.awaited) == 0 {
		return fate{}
	}
	return l.awaited[0]
}

// answered takes out the oldest request, whose reply is on its way, and returns the
// next.
func (l *link) answered() fate {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.awaited) == 0 {
		return fate{}
	}
	l.awaited = l.awaited[1:]
	if len(l.awaited) == 0 {
		return fate{}
	}
	return l.awaited[0]
}
