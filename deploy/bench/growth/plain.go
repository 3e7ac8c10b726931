package growth

import (
	"context"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/slotgate/slotgate/deploy/bench/rig"
)

// value is about as long as what one of our keys holds.
var value = strings.Repeat("x", 400)

// A script as short as one can be that reads and writes.
var getAndSet = redis.NewScript(`redis.call('GET', KEYS[1]) redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])`)

// plain is a Redis with strings, all with a time to live as all of ours have.
type plain struct {
	server  *rig.Redis
	strings int
	made    int // calls, each of another string
}

// newPlain fills it with n strings.
func newPlain(ctx context.Context, r *rig.Rig, n int) (*plain, error) {
	server, err := r.Redis(ctx)
	if err != nil {
		return nil, err
	}
	err = inBatches(ctx, server.Client, n, func(p redis.Pipeliner, i int) { p.Set(ctx, stringName(i), value, retain) })
	if err == nil {
		err = getAndSet.Load(ctx, server.Client).Err()
	}
	if err != nil {
		server.Stop()
		return nil, err
	}
	return &plain{server: server, strings: n}, nil
}

// calls makes n calls.
func (p *plain) calls(ctx context.Context, n int) error {
	from := p.made
	p.made += n
	return each(n, func(i int) error {
		key := stringName((from + i) * stride % p.strings)
		err := getAndSet.EvalSha(ctx, p.server.Client, []string{key}, value, retain.Milliseconds()).Err()
		if err == redis.Nil {
			return nil // the script returns nothing
		}
		return err
	})
}

func stringName(i int) string { return fmt.Sprintf("string-%d", i) }
