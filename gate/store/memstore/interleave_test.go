package memstore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/gate/store/storetest/interleave"
)

func TestInterleavings(t *testing.T) {
	interleave.Run(t, func(t testing.TB) interleave.Rig {
		r := &interleaveRig{}
		r.begin()
		t.Cleanup(func() { r.store.Close() })
		return r
	})
}

// interleaveRig is two gates on one store, which is put back by making anew the calls
// that led to a state.
type interleaveRig struct {
	store *Store
	clock *clock
	calls []func(r *interleaveRig)

	looked store.Looked // where the last look stood
}

func (r *interleaveRig) begin() {
	r.clock, r.looked = newClock(), store.Looked{}
	r.store = New(Options{Clock: r.clock.now})
}

// record remembers a call that is about to be made. Whoever puts the state back makes it
// again, at any time and from any goroutine, so that it must leave no result behind.
func (r *interleaveRig) record(c func(r *interleaveRig)) { r.calls = append(r.calls, c) }

// Wire is none between a gate and this store.
func (r *interleaveRig) Wire() bool { return false }

func (r *interleaveRig) Gate(int) store.Store { return &recorder{r.store, r} }

func (r *interleaveRig) Decide(gate int, d *store.Decide, _ int, _ interleave.Copy) (store.Decided, error) {
	return r.Gate(gate).Decide(context.Background(), d)
}

// recorder is the store, calls to which are remembered.
type recorder struct {
	*Store
	rig *interleaveRig
}

func (r *recorder) Decide(ctx context.Context, d *store.Decide) (store.Decided, error) {
	r.rig.record(func(r *interleaveRig) { _, _ = r.store.Decide(ctx, d) })
	return r.rig.store.Decide(ctx, d)
}

func (r *recorder) Settle(ctx context.Context, s *store.Settle) (store.Settled, error) {
	r.rig.record(func(r *interleaveRig) { _, _ = r.store.Settle(ctx, s) })
	return r.rig.store.Settle(ctx, s)
}

func (r *recorder) Slot(ctx context.Context, q store.SlotQuery) (store.Slot, error) {
	r.rig.record(func(r *interleaveRig) { _, _ = r.store.Slot(ctx, q) })
	return r.rig.store.Slot(ctx, q)
}

func (r *recorder) Touch(ctx context.Context, t *store.Touch) error {
	r.rig.record(func(r *interleaveRig) { _ = r.store.Touch(ctx, t) })
	return r.rig.store.Touch(ctx, t)
}

func (r *recorder) Resume(ctx context.Context, q store.SlotQuery, gate string) error {
	r.rig.record(func(r *interleaveRig) { _ = r.store.Resume(ctx, q, gate) })
	return r.rig.store.Resume(ctx, q, gate)
}

func (r *interleaveRig) Look(_ int, l *store.Look) (store.Looked, error) {
	r.record(func(r *interleaveRig) { r.looked, _ = r.store.Look(context.Background(), l) })
	var err error
	r.looked, err = r.store.Look(context.Background(), l)
	return r.looked, err
}

func (r *interleaveRig) Apply(_ int, t *store.Reading) (store.Applied, error) {
	apply := func(r *interleaveRig) (store.Applied, error) {
		reading := *t
		reading.Looked, r.looked = r.looked, store.Looked{}
		return r.store.Apply(context.Background(), &reading)
	}
	r.record(func(r *interleaveRig) { _, _ = apply(r) })
	return apply(r)
}

func (r *interleaveRig) Advance(d time.Duration) {
	r.record(func(r *interleaveRig) { r.clock.advance(d) })
	r.clock.advance(d)
}

func (r *interleaveRig) Restore(saved interleave.Saved) {
	_ = r.store.Close()
	r.begin()
	r.calls = slices.Clone(saved.Data.([]func(*interleaveRig)))
	for _, call := range r.calls {
		call(r)
	}
}

func (r *interleaveRig) Save(keys []*store.Decide) interleave.Saved {
	var text strings.Builder
	saved := interleave.Saved{Data: slices.Clone(r.calls)}
	for _, d := range keys {
		k := r.store.keys[shardOf(r.store.seed, keyOf(d))].find(keyOf(d), r.store.now())
		if k == nil {
			saved.Keys = append(saved.Keys, interleave.KeyState{})
			continue
		}
		saved.Keys = append(saved.Keys, interleave.KeyState{Done: k.state == keyDone, Hold: k.hold})
		fmt.Fprintf(&text, "key %s: %d of %s, hold %s, lease %d, answer %q\n", d.Key, k.state, k.owner, k.hold, r.ticks(k.lease), k.answer)
	}
	for i := range r.store.slots {
		for _, s := range r.store.slots[i].slots {
			r.describe(&text, s)
		}
	}
	saved.Digest = text.String()
	return saved
}

func (r *interleaveRig) ticks(at int64) int {
	return interleave.Ticks(time.Duration(at - r.store.now()))
}

// describe writes all that a slot knows, times as ticks from now.
func (r *interleaveRig) describe(text *strings.Builder, s *slot) {
	fmt.Fprintf(text, "slot: confirmed %d, held %d, releases %d, mark %d %v until %d, probe %q until %d, truth %d %d %d %t %t, dirty %d\n",
		s.confirmed, s.held, s.releases, s.mark.units, s.mark.pause, r.ticks(s.mark.until), s.mark.probe, r.ticks(s.mark.probeLease),
		s.truth.free, s.truth.admitted, s.truth.refunded, s.truth.verified, s.truth.failed, len(s.dirty))
	if l := r.looked; l.At != 0 {
		fmt.Fprintf(text, "look: known %t, %d open, %d admitted, %d refunded, newer %t %t, of this life %t\n",
			l.Known, l.Open, l.Admitted, l.Refunded, l.At > s.truth.applied, l.At > s.truth.touched, l.Born == s.born)
	}
	var lines []string
	for id, h := range s.holds {
		if id != h.id {
			continue
		}
		line := fmt.Sprintf("hold %s: %s, due %d, adopted %d, kept %t, doubtful %t, stands in %t", h.id, h.state, r.ticks(h.at), h.adoptions, h.kept, h.doubtful, h.standsIn)
		for _, a := range h.attempts {
			line += fmt.Sprintf("; %s answered %t, unknown %t, awaited %t until %d, seen %d", a.id, a.answered, a.unknown, a.place > 0, r.ticks(a.at), a.releases)
		}
		lines = append(lines, line)
	}
	for id, c := range s.cancels.byID {
		lines = append(lines, fmt.Sprintf("cancel %s of %s: until %d, forgotten %d, settled %t, doubt %t", id, c.hold, r.ticks(c.lease), r.ticks(c.at), c.settled, c.doubt))
	}
	slices.Sort(lines)
	text.WriteString(strings.Join(lines, "\n"))
}
