package truth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"
)

const (
	// keptReports is how many files of a pool are kept, the newest.
	keptReports = 30
	// clockStep is the longest sleep until a report: somebody may set the clock, and
	// days are not all equally long.
	clockStep = time.Minute
)

// DailyReport is the content of a report file.
type DailyReport struct {
	Reconcile *Report      `json:"reconcile"`
	Audit     *AuditReport `json:"audit"` // null without bookings.query
}

// reportDaily reports at the time of `report`, local time, where this gate leads then.
// A failure is logged; the next day is another.
func (p *Pool) reportDaily() {
	if p.truth.Report == "" {
		return
	}
	for at := nextReport(p.truth.Report, time.Now()); ; {
		wait := time.Until(at.Round(0)) // by the wall clock
		if wait > 0 {
			if sleep(p.ctx, min(wait, clockStep)) != nil {
				return
			}
			continue
		}
		if p.Leads() {
			if err := p.report(p.ctx); err != nil && p.ctx.Err() == nil {
				p.log.Error("the scheduled report could not be made; the next one is tried tomorrow", "error", err)
			}
		}
		at = nextReport(p.truth.Report, time.Now())
	}
}

// nextReport is the first time after now whose clock shows of, such as 04:30. A time
// that a day does not have, as summer time begins, is one hour off on that day.
func nextReport(of string, now time.Time) time.Time {
	clock, err := time.Parse("15:04", of)
	if err != nil {
		panic("truth: capacity's report is validated with the configuration: " + err.Error())
	}
	for day := 0; ; day++ {
		at := time.Date(now.Year(), now.Month(), now.Day()+day, clock.Hour(), clock.Minute(), 0, 0, now.Location())
		if at.After(now) {
			return at
		}
	}
}

// report compares the pool with truth, audits truth where its bookings can be listed,
// writes both to a file and sums them up in one log line.
func (p *Pool) report(ctx context.Context) error {
	began := time.Now()
	var daily DailyReport
	var err error
	if daily.Reconcile, err = p.Reconcile(ctx, ReconcileOptions{}); err != nil {
		return fmt.Errorf("reconcile: %w", err)
	}
	damage := 0
	if p.lister != nil {
		if daily.Audit, err = p.Audit(ctx, AuditOptions{}); err != nil {
			return fmt.Errorf("audit: %w", err)
		}
		damage = daily.Audit.Damages
	}
	p.meter.Report(p.name, daily.Reconcile.Differences, damage)
	file, err := p.keepReport(&daily, began)
	p.log.Info("compared the pool with truth", "slots", daily.Reconcile.Slots, "differences", daily.Reconcile.Differences,
		"damage", damage, "failed", daily.Reconcile.Failed, "took", time.Since(began).Round(time.Millisecond).String(), "file", file)
	return err
}

// keepReport writes a report to report_dir, if there is one, and removes the oldest.
func (p *Pool) keepReport(daily *DailyReport, at time.Time) (file string, err error) {
	dir := p.truth.ReportDir
	if dir == "" {
		return "", nil
	}
	file = filepath.Join(dir, p.name+"-"+at.UTC().Format(reportTime)+".json")
	if err := writeReport(file, daily); err != nil {
		return "", err
	}
	return file, rotateReports(dir, p.name)
}

const reportTime = "20060102T150405Z"

// writeReport writes a file that is there whole or not at all.
func writeReport(file string, daily *DailyReport) (err error) {
	temporary, err := os.CreateTemp(filepath.Dir(file), ".report-*")
	if err != nil {
		return fmt.Errorf("report_dir: %w", err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(temporary.Name())
		}
	}()
	encoder := json.NewEncoder(temporary)
	encoder.SetIndent("", "  ")
	if err := errors.Join(encoder.Encode(daily), temporary.Close()); err != nil {
		return err
	}
	return os.Rename(temporary.Name(), file)
}

// rotateReports removes all but the newest files of a pool. Others in the folder are
// left alone.
func rotateReports(dir, pool string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	own := regexp.MustCompile(`^` + regexp.QuoteMeta(pool) + `-\d{8}T\d{6}Z\.json$`)
	var names []string
	for _, e := range entries {
		if own.MatchString(e.Name()) {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	var failed []error
	for _, name := range names[:max(0, len(names)-keptReports)] {
		failed = append(failed, os.Remove(filepath.Join(dir, name)))
	}
	return errors.Join(failed...)
}
