package testbed

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"
)

// Recording is a growing list of requests as they came through a proxy.
type Recording struct {
	proxy    *RedisProxy
	command  []string
	requests [][]byte // guarded by proxy.mu
}

// HoldCopy keeps a copy of every such request from now on, byte for byte. The
// requests themselves go their way.
func (p *RedisProxy) HoldCopy(command string) *Recording {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := &Recording{proxy: p, command: strings.Fields(command)}
	p.recordings = append(p.recordings, r)
	return r
}

// Len returns how many requests have been recorded.
func (r *Recording) Len() int {
	r.proxy.mu.Lock()
	defer r.proxy.mu.Unlock()
	return len(r.requests)
}

// Replay sends a late copy of every recorded request, oldest first, to Redis
// itself over a connection of its own (database 0, no AUTH), and returns the
// raw replies. An error reply ends it and is returned as an error: a copy that
// Redis refused proves nothing. The recording stays and may be replayed again.
func (r *Recording) Replay(ctx context.Context) ([][]byte, error) {
	r.proxy.mu.Lock()
	requests := slices.Clone(r.requests)
	r.proxy.mu.Unlock()

	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", r.proxy.upstream)
	if err != nil {
		return nil, fmt.Errorf("testbed: replay: %w", err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()

	reader := bufio.NewReader(conn)
	var replies [][]byte
	for i, request := range requests {
		if _, err := conn.Write(request); err != nil {
			return replies, fmt.Errorf("testbed: replay of copy %d of %d: %w", i+1, len(requests), err)
		}
		reply, err := readReply(reader)
		if err != nil {
			return replies, fmt.Errorf("testbed: replay of copy %d of %d: %w", i+1, len(requests), err)
		}
		if isError(reply) {
			return replies, fmt.Errorf("testbed: replay of copy %d of %d: Redis answered %q",
				i+1, len(requests), bytes.TrimSpace(reply))
		}
		replies = append(replies, reply)
	}
	return replies, nil
}
