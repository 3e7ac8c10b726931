package redisstore

import (
	"context"
	"errors"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/luascripts"
)

var errClaimLost = errors.New("the claim on the key was taken over before the slot had answered")

// claim is an idempotency key that one call of a request has made its own, with the hold
// that the request goes under.
type claim struct {
	record string
	call   string
	hold   string // "" where none is taken
	// What the key goes back to: the owner it had, "" none, the hold of that, and the state.
	owner, ownerHold, state string
}

// adopts reports that the request is to go on under another's hold.
func (c *claim) adopts(id string) bool { return c != nil && c.hold != "" && c.hold != id }

// claimKey claims the request's key. It returns a verdict where there is one already.
func (p *decideSteps) claimKey(ctx context.Context) (*store.Decided, error) {
	verdict, decided, err := p.askKey(ctx, false)
	if err != nil {
		return nil, err
	}
	if verdict == "known" {
		known, err := p.look(ctx)
		if known != nil || err != nil {
			return known, err
		}
		if verdict, decided, err = p.askKey(ctx, true); err != nil {
			return nil, err
		}
	}
	switch {
	case verdict == "claimed":
		return nil, nil
	case decided.Verdict == decision.Answered, decided.Verdict == decision.Gone:
		decided.Left = -1
		return decided, nil
	}
	return p.answer(ctx, decided)
}

// askKey asks the key's record; unknown says that the slot does not know this id.
func (p *decideSteps) askKey(ctx context.Context, unknown bool) (verdict string, decided *store.Decided, err error) {
	d := p.d
	c := &claim{record: p.record(), call: p.nextCall()}
	ask := &call{op: "decide", script: luascripts.Claim,
		keys: []string{c.record, p.keys.Answer(c.record, d.Await), p.keys.KeyTombstone(c.record, d.ID), p.keys.KeyTombstone(c.record, c.call)},
		args: []any{d.ID, c.call, millis(d.Lease), millis(d.KeyTTL), p.names.scope(d.Scope), flag(d.BareReplay),
			encodeFingerprint(d.Fingerprint), flag(d.RetryUnknown), millis(d.Wait), flag(d.Await != ""),
			flag(p.gated()), flag(d.Action == store.Book), flag(unknown)}}
	raw, err := p.run(ctx, ask)
	if err != nil {
		return "", nil, err
	}
	r := newReply("decide", raw, 9)
	verdict = r.text()
	c.hold = r.text()
	decided = &store.Decided{Owner: r.text(), MayReplay: r.flag()}
	answer := r.text()
	decided.RetryAfter = r.millis()
	c.owner, c.ownerHold, c.state = r.text(), r.text(), r.text()
	switch verdict {
	case "claimed":
		p.claimed = c
	case "known":
	default:
		decided.Verdict = r.parseVerdict(verdict)
	}
	if decided.Verdict == decision.Replay || decided.Verdict == decision.Answered {
		decided.Answer = []byte(answer)
	}
	return verdict, decided, r.end()
}

func (p *decideSteps) record() string {
	return p.keys.KeyRecord(p.names.key(p.d.Group, p.d.Partition, p.d.Key))
}

// moveClaim writes a hold into the claim: the request's own id as a new one, before that is
// taken (H22), or the hold of its subject that it goes on under.
func (p *decideSteps) moveClaim(ctx context.Context, hold string) error {
	c := p.claimed
	raw, err := p.run(ctx, &call{op: "decide", script: luascripts.ClaimHold, keys: []string{c.record}, args: []any{p.d.ID, c.call, hold}})
	if err != nil {
		return err
	}
	r := newReply("decide", []any{raw}, 1)
	ours := r.flag()
	if err := r.end(); err != nil {
		return err
	}
	if !ours {
		p.claimed = nil
		return errClaimLost
	}
	c.hold = hold
	return nil
}

// completeBooked is for a key whose hold turned out to be booked (H21): nothing is
// forwarded.
func (p *decideSteps) completeBooked(ctx context.Context, decided *store.Decided) (*store.Decided, error) {
	c, d := p.claimed, p.d
	raw, err := p.run(ctx, &call{op: "decide", script: luascripts.ClaimBooked, keys: []string{c.record},
		args: []any{d.ID, c.call, millis(d.KeyTTL), p.names.scope(d.Scope), flag(d.BareReplay)}})
	if err != nil {
		return nil, err
	}
	p.claimed, p.reserved = nil, nil
	r := newReply("decide", raw, 3)
	verdict := r.text()
	if r.err == nil && verdict == "" {
		return nil, errClaimLost
	}
	decided.Verdict, decided.Hold = r.parseVerdict(verdict), ""
	decided.MayReplay = r.flag()
	if answer := r.text(); decided.Verdict == decision.Replay {
		decided.Answer = []byte(answer)
	}
	return decided, r.end()
}

// endClaim gives a claim back. One that stays is waited out by its lease.
func (p *decideSteps) endClaim(ctx context.Context, c *claim) {
	_, _ = p.run(ctx, &call{op: "decide", script: luascripts.ClaimEnd,
		keys: []string{c.record}, args: []any{p.d.ID, c.call, c.owner, c.ownerHold, c.state}})
}
