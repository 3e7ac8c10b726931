package gate

import (
	"context"

	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/rules"
)

// Truth is what the backend's own data says of the slots of the pools that name a
// source. It is safe for concurrent use.
type Truth interface {
	// Load looks at a slot and gives the store what it found, or waits for somebody
	// else's look. It returns within the pool's truth timeout.
	Load(ctx context.Context, pool, slot string) Loaded
	// Probe finds out whether an unanswered booking was made after all, and settles
	// it. It does not wait, and keeps nothing of s but the texts in it.
	Probe(s *store.Settle)
}

// Loaded is how a load ended.
type Loaded uint8

const (
	// LoadFailed: truth does not tell; go on as where capacity is not known.
	LoadFailed Loaded = iota
	// LoadDone: ask the store again.
	LoadDone
	// LoadMissing: there is no such slot.
	LoadMissing
	// LoadAway: the store did not answer, and said of the slot that truth must be
	// looked at first. It has not been: go on as without the store.
	LoadAway
)

// maxLoads bounds the loads that one request asks for.
const maxLoads = 3

// load answers a Load verdict, so that the store can be asked again. A slot that
// truth does not have is left to the backend, which will say so: nothing is held and
// the slot leaves no trace; a key is still deduped. errAway: the store does not answer.
func (j *journey) load(d *store.Decide) error {
	loaded := LoadFailed
	if j.loads++; j.book.Truth != nil && j.loads <= maxLoads {
		loaded = j.book.Truth.Load(context.Background(), d.Pool, d.Slot)
	}
	switch loaded {
	case LoadFailed:
		d.Blind = true
	case LoadMissing:
		d.Pool, j.missing = "", true
	case LoadAway:
		return errAway
	case LoadDone:
	}
	return nil
}

// noteStranger looks at how a request for a slot ended that truth does not have. One
// that is booked after all has another name there, such as 7 for 007, and passes
// ungated.
func (j *journey) noteStranger(outcome rules.Outcome) {
	if !j.missing || outcome != rules.Booked {
		return
	}
	j.gate.strangers.Do(func() {
		j.gate.log.Warn("the backend booked a slot that the pool's truth does not have, so it was not gated: do they spell it alike? A rule whose backend reads numbers wants slot: { from: …, as: integer }",
			"rule", j.match.Rule.Name, "slot", j.facts.Slot)
	})
}
