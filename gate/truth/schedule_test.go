package truth

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

func TestTheLeaderReportsAtItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, newBackend(6))
		at := time.Now().Add(3 * time.Hour).Truncate(time.Minute)
		b.config.Retain = 24 * time.Hour
		b.truth().Report, b.truth().ReportDir = at.Format("15:04"), t.TempDir()
		o := b.options("gate-a")
		o.Lister = b.backend
		first := b.open(o)
		o.Gate = "gate-b"
		second := b.open(o)
		b.lesson(first, "1", 2)
		b.lesson(first, "returned", 2)
		first.Start()
		synctest.Wait()
		second.Start()
		time.Sleep(2 * time.Hour) // nobody looks any more
		b.backend.cancel("returned", "returned-student-0")

		time.Sleep(time.Until(at) - time.Second)
		synctest.Wait()
		if n := len(b.meter.reported()); n != 0 {
			t.Fatalf("%d reports before the time", n)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := b.meter.reported(); len(got) != 1 || got[0] != [2]int{2, 1} {
			t.Errorf("reports %v, want one, of 2 differences and 1 damage, by the leader alone", got)
		}
		files, err := filepath.Glob(filepath.Join(b.truth().ReportDir, "*"))
		if err != nil || len(files) != 1 {
			t.Fatalf("files %q, %v, want one", files, err)
		}
		text, err := os.ReadFile(files[0])
		if err != nil {
			t.Fatal(err)
		}
		var got DailyReport
		if err := json.Unmarshal(text, &got); err != nil || got.Reconcile.Differences != 2 || got.Audit.Damages != 1 || got.Reconcile.Slots != 2 {
			t.Errorf("file %s: %v", text, err)
		}
	})
}

func TestTheNewestReportsAreKept(t *testing.T) {
	dir := t.TempDir()
	b := newBench(t, newBackend(6))
	b.truth().ReportDir = dir
	p := b.pool()
	others := []string{"lessons-2-20260101T000000Z.json", "lessons-notes.json"}
	for _, name := range others {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	day := time.Date(2026, 1, 1, 4, 30, 0, 0, time.UTC)
	for i := range keptReports + 5 {
		if _, err := p.keepReport(&DailyReport{}, day.AddDate(0, 0, i)); err != nil {
			t.Fatal(err)
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) != keptReports+len(others) {
		t.Errorf("%d files, %v, want %d", len(files), err, keptReports+len(others))
	}
	if _, err := os.Stat(filepath.Join(dir, "lessons-20260106T043000Z.json")); err != nil {
		t.Errorf("the oldest to keep: %v", err)
	}
	b.truth().ReportDir = filepath.Join(dir, "nowhere")
	if _, err := p.keepReport(&DailyReport{}, day); err == nil {
		t.Error("a folder that is not there is no error")
	}
}

func TestNextReport(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ of, now, want string }{
		{"04:30", "2026-11-29T04:29:59+01:00", "2026-11-29T04:30:00+01:00"},
		{"04:30", "2026-11-29T04:30:00+01:00", "2026-11-30T04:30:00+01:00"},
		{"23:00", "2026-12-31T23:30:00+01:00", "2027-01-01T23:00:00+01:00"},
		{"04:30", "2026-03-28T12:00:00+01:00", "2026-03-29T04:30:00+02:00"}, // summer time begins
		{"04:30", "2026-10-24T12:00:00+02:00", "2026-10-25T04:30:00+01:00"}, // and ends
	} {
		now, err := time.Parse(time.RFC3339, c.now)
		if err != nil {
			t.Fatal(err)
		}
		if got := nextReport(c.of, now.In(berlin)).Format(time.RFC3339); got != c.want {
			t.Errorf("%s after %s: %s, want %s", c.of, c.now, got, c.want)
		}
	}
}
