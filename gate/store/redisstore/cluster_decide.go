package redisstore

import (
	"context"
	"errors"
	"strings"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/luascripts"
)

// claimTries bounds how often a decide begins anew because its claim was lost: each time
// another request has come between.
const claimTries = 3

// decideSteps is one decide on a cluster (doc.go, "Cluster"): it claims the key, charges
// the limits, reserves in the pool, and asks the slot. What it has taken is given back, in
// reverse, when a later step refuses. A step that fails, and may have been taken all the
// same, ends the call without: a claim waits out its lease, a reservation the hold's time.
type decideSteps struct {
	*Store
	names   *names
	d       *store.Decide
	at      place
	subject string // hash

	claimed  *claim
	reserved []*reservation
	limits   []store.LimitState
	lapsed   int
	looked   *store.Decided // what the slot said before it was asked to admit
	recorded bool           // the slot had admitted this id before, under another claim
}

func (s *Store) decideInSteps(ctx context.Context, n *names, d *store.Decide) (decided store.Decided, err error) {
	for range claimTries {
		p := &decideSteps{Store: s, names: n, d: d, subject: n.subject(d.Subject),
			at: place{pool: d.Pool, slot: d.Slot, retain: life(d.Retain, d.HoldTTL, d.Lease), counts: d.MaxPerSubject > 0,
				keepUnknown: d.KeepUnknown, truth: d.Truth}}
		decided, err = p.decide(ctx)
		if !errors.Is(err, errClaimLost) {
			break
		}
	}
	if errors.Is(err, errClaimLost) {
		err = &store.Error{Op: "decide", Kind: store.KindServer, Maybe: true, Err: err}
	}
	return decided, err
}

func (p *decideSteps) gated() bool { return p.d.Pool != "" }
func (p *decideSteps) books() bool { return p.gated() && p.d.Action == store.Book }

func (p *decideSteps) decide(ctx context.Context) (store.Decided, error) {
	if p.d.Key != "" {
		decided, err := p.claimKey(ctx)
		if decided != nil || err != nil {
			return p.end(ctx, decided, err)
		}
	}
	if p.claimed.adopts(p.d.ID) {
		decided, err := p.adopt(ctx)
		if decided != nil || err != nil {
			return p.end(ctx, decided, err)
		}
		// The hold is gone, and the claim goes under a new one (H22).
	}
	decided, err := p.charge(ctx)
	if decided == nil && err == nil {
		decided, err = p.admit(ctx)
	}
	return p.end(ctx, decided, err)
}

// end gives back what a request that is not admitted had taken.
func (p *decideSteps) end(ctx context.Context, decided *store.Decided, err error) (store.Decided, error) {
	if err != nil {
		var failure *store.Error
		if errors.As(err, &failure) && !failure.Maybe {
			p.giveBack(ctx)
		}
		return store.Decided{}, err
	}
	if decided.Verdict != decision.Admitted || p.recorded {
		p.giveBack(ctx)
	}
	decided.Lapsed = p.lapsed
	if len(p.limits) > 0 {
		decided.Limits = append(p.limits, decided.Limits...)
	}
	return *decided, nil
}

// giveBack is done whatever became of the caller: a client that goes away must not leave
// its key claimed.
func (p *decideSteps) giveBack(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.timeout)
	defer cancel()
	for _, r := range p.reserved {
		p.unreserve(ctx, r)
	}
	if p.claimed != nil {
		p.endClaim(ctx, p.claimed)
	}
}

// look is what the slot says before the request is charged: what it knows of the id goes
// before all that comes later. nil: the slot does not know it.
func (p *decideSteps) look(ctx context.Context) (*store.Decided, error) {
	if p.looked != nil {
		return nil, nil
	}
	verdict, decided, _, err := p.askSlotTo(ctx, slotPart{onlyLook: true})
	if err != nil {
		return nil, err
	}
	if verdict == "looked" {
		p.looked = decided
		return nil, nil
	}
	return decided, nil
}

// answer completes a verdict that another shard gave with what the slot says; the slot's
// own verdict goes before.
func (p *decideSteps) answer(ctx context.Context, decided *store.Decided) (*store.Decided, error) {
	decided.Left = -1
	if !p.gated() {
		return decided, nil
	}
	known, err := p.look(ctx)
	if known != nil || err != nil {
		return known, err
	}
	decided.Left, decided.ReleaseSeq = p.looked.Left, p.looked.ReleaseSeq
	return decided, nil
}

// charge asks the limits of subject and client.
func (p *decideSteps) charge(ctx context.Context) (*store.Decided, error) {
	d := p.d
	type limit struct {
		name    string
		key     string
		limit   store.Limit
		verdict decision.Verdict
	}
	var limits []limit
	if !d.SubjectLimit.IsZero() && p.subject != "" {
		limits = append(limits, limit{"subject", p.keys.SubjectLimit(d.Rule, p.subject), d.SubjectLimit, decision.LimitedSubject})
	}
	if !d.ClientLimit.IsZero() && d.Client.IsValid() {
		limits = append(limits, limit{"client", p.keys.ClientLimit(d.Rule, p.names.client(d.Client.Unmap().String())), d.ClientLimit, decision.LimitedClient})
	}
	if d.Charged || len(limits) == 0 {
		return nil, nil
	}
	if d.Key == "" && p.gated() {
		// Its claim would have told whether this is the first call of this id.
		if known, err := p.look(ctx); known != nil || err != nil {
			return known, err
		}
	}
	for _, l := range limits {
		raw, err := p.run(ctx, &call{op: "decide", script: luascripts.Charge,
			keys: []string{l.key, p.keys.LimitTombstone(l.key, p.nextCall())},
			args: appendLimit([]any{d.ID}, l.limit)})
		if err != nil {
			return nil, err
		}
		r := newReply("decide", raw, 4)
		passes := r.flag()
		p.limits = append(p.limits, store.LimitState{Name: l.name, Limit: l.limit, Remaining: int(r.count()), Reset: r.millis()})
		retry := r.millis()
		if err := r.end(); err != nil {
			return nil, err
		}
		if !passes {
			return p.answer(ctx, &store.Decided{Verdict: l.verdict, RetryAfter: retry})
		}
	}
	return nil, nil
}

// admit asks the slot to take a new hold, or to note a cancel.
func (p *decideSteps) admit(ctx context.Context) (*store.Decided, error) {
	if !p.gated() {
		return &store.Decided{Verdict: decision.Admitted, Left: -1}, nil
	}
	full, err := p.reserve(ctx, p.d.ID, p.d.MaxPerSubject)
	if err != nil {
		return nil, err
	}
	if err := p.enlist(ctx, p.at); err != nil {
		return nil, err
	}
	_, decided, told, err := p.askSlotTo(ctx, slotPart{subjectFull: full})
	if err != nil {
		return nil, err
	}
	p.note(ctx, told)
	if decided.Adopted {
		// It goes under another hold of its subject, which counts already.
		for _, r := range p.reserved {
			p.unreserve(ctx, r)
		}
		if p.claimed != nil {
			// A claim that could not be moved leads there by way of the attempt (decide_adopt.lua).
			_ = p.moveClaim(ctx, decided.Hold)
		}
	}
	return decided, nil
}

// adopt asks the slot to let the request go on under the hold of its key; nil where that
// is gone.
func (p *decideSteps) adopt(ctx context.Context) (*store.Decided, error) {
	if _, err := p.reserve(ctx, p.claimed.hold, 0); err != nil {
		return nil, err
	}
	verdict, decided, told, err := p.askSlotTo(ctx, slotPart{under: p.claimed.hold})
	if err != nil {
		return nil, err
	}
	p.note(ctx, told)
	switch verdict {
	case "booked":
		return p.completeBooked(ctx, decided)
	case "hold_gone":
		p.looked, p.reserved = decided, nil // the note has taken it out of the pool
		return nil, p.moveClaim(ctx, p.d.ID)
	}
	p.reserved = nil // its hold counts as the slot has told
	return decided, nil
}

// note carries what the slot told to the pool. It is not waited for beyond the call: what
// was reserved stands for the hold's time.
func (p *decideSteps) note(ctx context.Context, t news) { _ = p.carryNotes(ctx, "decide", p.at, t) }

// slotPart is what a slot is told besides the request.
type slotPart struct {
	key         string // short hash
	under       string // the hold that the claim goes under
	subjectFull bool
	onlyLook    bool
}

// askSlotTo runs decide's part of the slot. The verdict is its word; decided.Verdict is
// not set for the words that only a cluster knows (luascripts/decide.lua).
func (p *decideSteps) askSlotTo(ctx context.Context, part slotPart) (verdict string, decided *store.Decided, t news, err error) {
	d := *p.d
	if d.Key != "" {
		part.key = shorten(p.names.key(d.Group, d.Partition, d.Key))
	}
	d.Key, d.SubjectLimit, d.ClientLimit = "", store.Limit{}, store.Limit{}
	c := p.encodeDecide(p.names, &d, part)
	reply, t, err := p.askSlot(ctx, c, p.at)
	if err != nil {
		return "", nil, news{}, err
	}
	text, _ := reply.(string)
	verdict, rest, _ := strings.Cut(text, "|")
	switch verdict {
	case "looked", "booked", "hold_gone":
		reply = decision.Gone.String() + "|" + rest
	case "recorded":
		reply = decision.Admitted.String() + "|" + rest
	}
	got, err := decodeDecided(p.names, reply, p.d)
	if err != nil {
		return "", nil, news{}, err
	}
	p.lapsed += got.Lapsed
	p.recorded = verdict == "recorded" && !c.resent
	return verdict, &got, t, nil
}
