package truth

import (
	"context"
	"errors"
	"time"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

// urgency tells who goes first where max_rate leaves no room for all.
type urgency uint8

const (
	inBackground urgency = iota // sweeps, probes, reports
	awaited                     // a request waits for it
)

// pace bounds the reads of a source by all gates together. Its tokens are the
// store's: a guard's decide with a subject limit and nothing else, which leaves no
// trace but the limit's.
type pace struct {
	store Store
	// ask holds the questions, by urgency. The limit is one bucket; they differ in
	// its depth. No rule can have this name, a colon is not allowed in one.
	ask [2]store.Decide
}

func newPace(s Store, pool string, rate rules.Rate) pace {
	p := pace{store: s}
	for who, burst := range map[urgency]int{inBackground: max(1, rate.Count/4), awaited: rate.Count} {
		p.ask[who] = store.Decide{
			Rule: "truth:" + pool, Subject: "looks",
			SubjectLimit: store.Limit{Count: rate.Count, Per: rate.Per, Burst: burst},
		}
	}
	return p
}

// errPaced: no token would come before the context's deadline.
var errPaced = errors.New("max_rate leaves no room for a look in time")

// take waits for a token. It returns errPaced at once when none can come in time.
func (p *pace) take(ctx context.Context, who urgency) error {
	for {
		d := p.ask[who]
		if d.SubjectLimit.IsZero() {
			return ctx.Err()
		}
		d.ID = newID()
		got, err := p.store.Decide(ctx, &d)
		if err != nil {
			return err
		}
		if got.Verdict != decision.LimitedSubject {
			return nil
		}
		wait := max(got.RetryAfter, time.Millisecond)
		if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < wait {
			return errPaced
		}
		if err := sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// sleep waits for d or the context's end.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
