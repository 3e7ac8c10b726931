package main

import (
	"cmp"
	"context"
	"io"

	"github.com/slotgate/slotgate/gate/truth"
	"github.com/slotgate/slotgate/rules"
)

const reconcileHelp = `Usage: slotgate reconcile -c FILE [--pool POOL] [--slot SLOT] [--repair] [flags]

Compares what the store counts with what the backend's own data says, slot by
slot, and prints where they differ. It opens both itself: no gate has to run, and
gates that run are not disturbed. What differs is looked at again until nothing
moved meanwhile, so that bookings under way are not taken for differences.

  -c FILE            the configuration that the gates use
  --set PATH=VALUE   replaces a value of it; repeatable
  --pool POOL        only this pool (all whose capacity comes from truth)
  --slot SLOT        only this slot (all that the store knows)
  --repair           makes the store agree; the backend is never written to
  --format FORMAT    table, json or csv (table)
  --rate N           slots read of the backend a second, by this command alone (the
                     pool's max_rate, shared with the gates: at 50/s an hour
                     does for 180,000 slots)

Differences
  available-too-high       the store would sell units that are not there
  available-too-low        the store refuses units that are there
  capacity-differs         the store counts against another total
  marked-full              the slot is marked full and has units
  unverified               there is a value, and the store does not trust its own
  slot-missing             the backend does not have the slot
  oversold                 less than nothing is left: see slotgate audit
  hold-without-booking     a confirmed hold whose subject has no booking
  unknown-without-booking  a hold kept as unknown whose subject has no booking
  held-twice               a subject with a second hold (one_per_subject)

Exit status: 0 no differences; 4 differences, those that were repaired too: the
next run is to find none. 1 it could not run, was stopped (Ctrl-C: what was found
until then is printed), or could not compare some slots and found nothing.

Example: what is wrong with pool lessons, then make the store right
  slotgate reconcile -c slotgate.yaml --pool lessons
  slotgate reconcile -c slotgate.yaml --pool lessons --repair
`

func reconcileCommand(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	c := newComparison("reconcile", reconcileHelp)
	c.unfit = func(pool *rules.PoolConfig) string {
		if pool.Capacity.Truth == nil {
			return noTruth
		}
		return ""
	}
	repair := c.flags.Bool("repair", false, "")
	return c.run(args, stdout, stderr, func() examination {
		return &reconciliation{repair: *repair, out: newDifferenceWriter(c.format, stdout)}
	})
}

// reconciliation is the examination of reconcile.
type reconciliation struct {
	repair bool
	out    reportWriter[truth.Difference, *truth.Report]
}

func (r *reconciliation) pool(ctx context.Context, p *truth.Pool, o truth.ExamineOptions) (truth.Summary, int, error) {
	report, err := p.Reconcile(ctx, truth.ReconcileOptions{ExamineOptions: o, Repair: r.repair, Row: r.out.row})
	return report.Summary, report.Differences, cmp.Or(err, r.out.report(report))
}

func (r *reconciliation) end(complete bool) error { return r.out.end(complete) }
