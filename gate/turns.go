package gate

import (
	"context"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/slotgate/slotgate/gate/decision"
)

const (
	// maxDeciding is how many requests are read and decided at the same moment. The others
	// wait: each that runs delays the replies of the store to those ahead of it, and of
	// thousands who come at once most are told by what one of the first learns.
	maxDeciding = 512
	// turnWait is how long one waits for its turn.
	turnWait = 2 * time.Second
)

// turns are handed out in the order of coming.
type turns struct{ *semaphore.Weighted }

func newTurns() turns { return turns{semaphore.NewWeighted(maxDeciding)} }

// take waits for a turn; false when that took too long.
func (t turns) take() bool {
	if t.TryAcquire(1) {
		return true
	}
	ctx, cancel := context.WithTimeout(context.Background(), turnWait)
	defer cancel()
	return t.Acquire(ctx, 1) == nil
}

// takeTurn is the answer to a request that found no turn. A turn lasts until the store has
// answered for the first time, or the request is refused before.
func (j *journey) takeTurn() *Reply {
	if j.turn = j.gate.turns.take(); !j.turn {
		return j.refuse(decision.DecisionBusy, "Too many requests came at the same moment.", time.Second)
	}
	return nil
}

// endTurn may be called twice.
func (j *journey) endTurn() {
	if j.turn {
		j.turn = false
		j.gate.turns.Release(1)
	}
}
