package truth

import (
	"context"
	"errors"

	"github.com/slotgate/slotgate/gate/store"
)

// ReconcileOptions say what to compare and what to do about it.
type ReconcileOptions struct {
	ExamineOptions
	// Repair makes the store agree: a look is applied, holds are released. The
	// backend is never written to.
	Repair bool
	// Row takes each slot's differences as they are found, one call at a time; its
	// error ends the run. nil: they are in the report, at most MaxRows.
	Row func(Difference) error
}

// MaxRows bounds the rows that a report keeps.
const MaxRows = 10000

// Report is what a reconcile found.
type Report struct {
	Summary
	Differences int          `json:"differences"`
	Repaired    int          `json:"repaired"`
	ByKind      map[Kind]int `json:"by_kind"`
	// Rows are the differences, in no order, at most MaxRows of them; nil where
	// Options.Row took them.
	Rows []Difference `json:"rows"`
}

// Reconcile compares the slots that the store knows with truth. Its memory does not
// grow with the number of slots. A failure of the store ends it: the report then
// covers what was compared until then.
func (p *Pool) Reconcile(ctx context.Context, o ReconcileOptions) (*Report, error) {
	x := newExaminer(p, &o.ExamineOptions)
	r := &Report{ByKind: map[Kind]int{}}
	if o.Row == nil {
		r.Rows = []Difference{}
	}
	err := examine(ctx, x, o.Slot, (*observation).differences, func(ctx context.Context, seen *observation, found []Difference) error {
		if o.Repair {
			if err := x.repair(ctx, seen, found); err != nil {
				return err
			}
		}
		for _, d := range found {
			if err := r.add(d, o.Row); err != nil {
				return err
			}
		}
		return nil
	})
	r.Summary = x.summary
	return r, err
}

func (r *Report) add(d Difference, row func(Difference) error) error {
	r.Differences++
	r.ByKind[d.Kind]++
	if d.Repaired {
		r.Repaired++
	}
	if row != nil {
		return row(d)
	}
	if len(r.Rows) < MaxRows {
		r.Rows = append(r.Rows, d)
	}
	return nil
}

// repair makes the store agree about a slot, and notes what it repaired. Holds are
// released first: that moves no units, the look after it does. A slot whose source
// fails, or that was looked at by somebody else meanwhile, stays unrepaired; so does a
// hold whose subject may only be written otherwise in the list.
func (x *examiner) repair(ctx context.Context, seen *observation, found []Difference) error {
	p, slot := x.pool, seen.after.Slot
	for i := range found {
		if found[i].Hold == "" || found[i].Kind != HeldTwice && !p.known(seen.booked) {
			continue
		}
		_, err := p.store.Release(ctx, p.query(slot), found[i].Hold)
		if err != nil && !errors.Is(err, store.ErrNoHold) {
			return err
		}
		found[i].Repaired = true
	}
	l := &look{pool: p, slot: slot, force: true}
	if err := x.take(ctx); err != nil {
		return err
	}
	defer x.give()
	asked, looked, err := l.begin(ctx)
	if err != nil || looked.Busy > 0 {
		return err
	}
	s, err := l.finish(ctx, asked, looked)
	if err != nil {
		return err
	}
	done := s.result == LookMissing || s.result == LookApplied
	for i := range found {
		if found[i].Hold == "" && found[i].Kind != Oversold {
			found[i].Repaired = done
		}
	}
	return nil
}
