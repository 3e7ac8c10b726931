package redisstore

import (
	"context"
	"io"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/testbed"
	"github.com/slotgate/slotgate/luascripts"
)

// deaf has the first attempts at a script run, and their replies lost.
type deaf struct{ script *luascripts.Script }

func (h deaf) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h deaf) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (h deaf) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if args := cmd.Args(); err == nil && len(args) > 1 && (args[1] == h.script.SHA1 || args[1] == h.script.Source) {
			err = io.EOF
			cmd.SetErr(err)
		}
		return err
	}
}

// A reservation whose reply was lost is made again, and given back like any other when the
// slot refuses.
func TestClusterAReservationMadeTwiceIsGivenBack(t *testing.T) {
	w := newShardWorld(t, testbed.Cluster(t), "reserved-twice")
	atRest(w.one, w.other)
	w.decide(w.other, w.request(1, "b")) // the unit
	w.one.client.AddHook(deaf{luascripts.Reserve})
	for n, s := range []*Store{w.one, w.other} {
		d := w.request(2+n, "a")
		d.MaxPerSubject = 1
		if got := w.decide(s, d); got.Verdict != decision.SoldOut {
			t.Errorf("request %d: %s, want sold_out", n+1, got.Verdict)
		}
	}
}
