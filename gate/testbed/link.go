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
	proxy    *RedisProxy
	client   net.Conn
	upstream *net.TCPConn // set by run before anything else uses it
	severed  chan struct{}
	once     sync.Once

	mu      sync.Mutex
	awaited []fate // one entry per unanswered request, oldest first
}

// parcel is bytes to be written at a given time.
type parcel struct {
	bytes []byte
	due   time.Time
	cuts  []*cut // if any: instead of bytes, the end of the connection
}

// queueLength is how many parcels of one direction may be under way.
const queueLength = 1024

func newLink(p *RedisProxy, client net.Conn) *link {
	return &link{proxy: p, client: client, severed: make(chan struct{})}
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

	toUpstream := make(chan parcel, queueLength)
	toClient := make(chan parcel, queueLength)
	var parts sync.WaitGroup
	parts.Go(func() { l.readRequests(toUpstream) })
	parts.Go(func() { l.writeRequests(toUpstream) })
	parts.Go(func() { l.readReplies(toClient) })
	parts.Go(func() { l.writeReplies(toClient) })

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

// readRequests ends when the client does, or after a request whose reply is to
// be lost.
func (l *link) readRequests(toUpstream chan<- parcel) {
	reader := bufio.NewReader(l.client)
	for {
		raw, args, err := readRequest(reader)
		if err != nil {
			close(toUpstream)
			return
		}
		f, delay := l.proxy.noteRequest(raw, args)
		if hasOwnReply(args) {
			l.await(f)
		}
		if !l.send(toUpstream, parcel{bytes: raw, due: time.Now().Add(delay)}) || len(f.cuts) > 0 {
			return
		}
	}
}

// writeRequests outlives the client: what it sent arrives.
func (l *link) writeRequests(toUpstream <-chan parcel) {
	for {
		p, ok := l.receive(toUpstream)
		if !ok {
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
func (l *link) readReplies(toClient chan<- parcel) {
	defer close(toClient)
	reader := bufio.NewReader(l.upstream)
	silent := false
	for {
		reply, err := readReply(reader)
		if err != nil {
			return
		}
		var f fate
		if !isPush(reply) {
			f = l.answered()
		}
		if l.proxy.rewrite != nil {
			reply = l.proxy.rewrite(reply)
		}
		dropped, delay := l.proxy.replyTerms()
		silent = silent || dropped || f.drop
		due := time.Now().Add(delay)
		switch {
		case len(f.cuts) > 0:
			l.send(toClient, parcel{cuts: f.cuts, due: due})
			return
		case !silent:
			if !l.send(toClient, parcel{bytes: reply, due: due}) {
				return
			}
		}
	}
}

// writeReplies ends the link: when all is written, or at a cut.
func (l *link) writeReplies(toClient <-chan parcel) {
	defer l.sever()
	gone := false
	for {
		p, ok := l.receive(toClient)
		if !ok {
			return
		}
		if len(p.cuts) > 0 {
			// Told before it is done: whoever sees the connection end finds
			// the channel closed.
			for _, c := range p.cuts {
				close(c.done)
			}
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

// receive returns the next parcel when it is due, false at the end of the
// queue or of the link.
func (l *link) receive(queue <-chan parcel) (parcel, bool) {
	var p parcel
	var ok bool
	select {
	case p, ok = <-queue:
	case <-l.severed:
	}
	if !ok {
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
	return p, true
}

// await notes that the request about to be sent will be answered.
func (l *link) await(f fate) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.awaited = append(l.awaited, f)
}

// answered returns the fate of the oldest unanswered request. Messages to a
// RESP2 subscriber look like replies; with none awaited they just pass.
func (l *link) answered() fate {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.awaited) == 0 {
		return fate{}
	}
	f := l.awaited[0]
	l.awaited = l.awaited[1:]
	return f
}
