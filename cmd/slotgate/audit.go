package main

import (
	"cmp"
	"context"
	"io"

	"github.com/slotgate/slotgate/gate/truth"
	"github.com/slotgate/slotgate/rules"
)

const auditHelp = `Usage: slotgate audit -c FILE [--pool POOL] [--slot SLOT] [flags]

Looks for damage in the backend's own data, in the slots that the store knows,
and lists the bookings to look into, latest first. It writes nothing anywhere. It
opens store and database itself: no gate has to run, and gates that run are not
disturbed. It needs bookings.query in the pool's capacity.

  -c FILE            the configuration that the gates use
  --set PATH=VALUE   replaces a value of it; repeatable
  --pool POOL        only this pool (all that list their bookings)
  --slot SLOT        only this slot (all that the store knows)
  --format FORMAT    table, json or csv (table)
  --rate N           slots read of the backend a second, by this command alone (the
                     pool's max_rate, shared with the gates: at 50/s an hour
                     does for 180,000 slots)

A table is SQL to be reviewed: each finding is a comment, then a SELECT of its
bookings and, where bookings.query is plain enough, a DELETE that is commented
out. csv has a line for each booking.

Damage
  overbooked                more bookings than the slot has units in all
  negative-remainder        the backend's own remainder is below zero
  subject-twice             a subject with more bookings than it was admitted for
  booked-without-admission  a booking that came past the gates
  admitted-without-booking  a confirmed hold whose subject has no booking

Exit status: 0 clean, 4 damage, 1 it could not run, was stopped (Ctrl-C: what was
found until then is printed), or could not look into some slots and found nothing.

Example: keep the SQL for whoever looks after the database
  slotgate audit -c slotgate.yaml --pool lessons > review.sql
`

func auditCommand(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	c := newComparison("audit", auditHelp)
	c.unfit = func(pool *rules.PoolConfig) string {
		switch t := pool.Capacity.Truth; {
		case t == nil:
			return noTruth
		case t.SQL == nil:
			return "audit needs a list of a slot's bookings, which only sql can give (capacity: { sql: …, bookings: { query: … } })"
		case t.Bookings == nil:
			return "audit needs a list of a slot's bookings: set bookings.query in its capacity"
		}
		return ""
	}
	return c.run(args, stdout, stderr, func() examination {
		return &auditing{out: newFindingWriter(c.format, stdout)}
	})
}

// auditing is the examination of audit.
type auditing struct {
	out reportWriter[truth.Finding, *truth.AuditReport]
}

func (a *auditing) pool(ctx context.Context, p *truth.Pool, o truth.ExamineOptions) (truth.Summary, int, error) {
	report, err := p.Audit(ctx, truth.AuditOptions{ExamineOptions: o, Row: a.out.row})
	if report == nil { // it could not begin
		return truth.Summary{}, 0, err
	}
	return report.Summary, report.Damages, cmp.Or(err, a.out.report(report))
}

func (a *auditing) end(complete bool) error { return a.out.end(complete) }
