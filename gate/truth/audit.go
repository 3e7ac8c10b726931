package truth

import (
	"context"
	"fmt"
)

// AuditOptions say what to audit.
type AuditOptions struct {
	ExamineOptions
	// Row takes each finding as it is made, one call at a time; its error ends the
	// run. nil: they are in the report, at most MaxRows.
	Row func(Finding) error
}

// AuditReport is what an audit found.
type AuditReport struct {
	Summary
	Damages int            `json:"damages"`
	ByKind  map[Damage]int `json:"by_kind"`
	// Findings are in no order, at most MaxRows of them; nil where Options.Row took
	// them.
	Findings []Finding `json:"findings"`
}

// Audit looks for damage in truth, in the slots that the store knows. It writes
// nothing, neither to the store nor to the backend. It needs a Lister.
func (p *Pool) Audit(ctx context.Context, o AuditOptions) (*AuditReport, error) {
	if p.lister == nil {
		return nil, fmt.Errorf("pool %s: audit needs the bookings of a slot: set capacity's bookings.query", p.name)
	}
	x := newExaminer(p, &o.ExamineOptions)
	x.holds, x.dated = shownHolds, true
	r := &AuditReport{ByKind: map[Damage]int{}}
	if o.Row == nil {
		r.Findings = []Finding{}
	}
	err := examine(ctx, x, o.Slot, (*observation).damage, func(_ context.Context, _ *observation, found []Finding) error {
		for _, f := range together(found) {
			if len(f.Bookings) > 0 {
				f.SQL = reviewSQL(p.truth, &f)
			}
			if err := r.add(f, o.Row); err != nil {
				return err
			}
		}
		return nil
	})
	r.Summary = x.summary
	return r, err
}

func (r *AuditReport) add(f Finding, row func(Finding) error) error {
	r.Damages++
	r.ByKind[f.Kind]++
	if row != nil {
		return row(f)
	}
	if len(r.Findings) < MaxRows {
		r.Findings = append(r.Findings, f)
	}
	return nil
}

// together makes one finding of a slot's bookings without admission.
func together(found []Finding) []Finding {
	var all []Finding
	unadmitted := -1
	for _, f := range found {
		switch {
		case f.Kind != BookedWithoutAdmission:
			all = append(all, f)
		case unadmitted < 0:
			unadmitted = len(all)
			all = append(all, f)
		default:
			one := &all[unadmitted]
			one.Units++
			one.Subject = "" // of several
			one.Bookings = append(one.Bookings, f.Bookings...)
		}
	}
	return all
}
