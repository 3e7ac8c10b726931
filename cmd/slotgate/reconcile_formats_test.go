package main

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/slotgate/slotgate/gate/truth"
)

func difference(slot string, inStore, inTruth int64) truth.Difference {
	return truth.Difference{Pool: "lessons", Slot: slot, Kind: truth.AvailableTooHigh, Store: &inStore, Truth: &inTruth, Difference: inStore - inTruth}
}

func reportOf(pool string, differences int) *truth.Report {
	began := time.Date(2026, 9, 1, 4, 30, 0, 0, time.UTC)
	return &truth.Report{
		Summary:     truth.Summary{Pool: pool, Started: began, Ended: began.Add(1500 * time.Millisecond), Slots: 5},
		Differences: differences, ByKind: map[truth.Kind]int{truth.AvailableTooHigh: differences},
	}
}

// What is streamed reads as the reports that it was made of, whatever has how many rows.
func TestJSONOfReportsIsThatOfEachWithItsRows(t *testing.T) {
	for _, counts := range [][]int{nil, {0}, {1}, {3, 0, 2}, {0, 0}} {
		var out bytes.Buffer
		w := newDifferenceWriter("json", &out)
		want := []truth.Report{}
		for _, n := range counts {
			report := reportOf("lessons", n)
			written := *report // has no rows, which the writer was given
			report.Rows = []truth.Difference{}
			for i := range n {
				report.Rows = append(report.Rows, difference(strings.Repeat("<é\n>", i), 3, 2))
				if err := w.row(report.Rows[i]); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.report(&written); err != nil {
				t.Fatal(err)
			}
			want = append(want, *report)
		}
		if err := w.end(counts != nil); err != nil {
			t.Fatal(err)
		}
		var got struct {
			Reports  []truth.Report `json:"reports"`
			Complete bool           `json:"complete"`
		}
		decoder := json.NewDecoder(&out)
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&got); err != nil {
			t.Fatalf("%v: %v", counts, err)
		}
		if !reflect.DeepEqual(got.Reports, want) || got.Complete != (counts != nil) {
			t.Errorf("%v: got\n %+v, want\n %+v", counts, got, want)
		}
	}
}

// Many rows take no memory: those before are written when the next ones come.
func TestReportsAreWrittenAsTheyAreFound(t *testing.T) {
	for _, format := range reportFormats {
		var out bytes.Buffer
		w := newDifferenceWriter(format, &out)
		for range 1000 {
			if err := w.row(difference("lesson-7", 3, 2)); err != nil {
				t.Fatal(err)
			}
		}
		if rows := strings.Count(out.String(), "lesson-7"); rows < 900 {
			t.Errorf("%s: %d of 1000 rows are written", format, rows)
		}
	}
}

func TestTableOfDifferences(t *testing.T) {
	var out bytes.Buffer
	w := newDifferenceWriter("table", &out)
	hold := truth.Difference{Pool: "lessons", Slot: "\x1b[2J", Kind: truth.HoldWithoutBooking, Difference: 2, Hold: "HOLD", Subject: "a b", Repaired: true}
	report := reportOf("lessons", 1)
	report.ByKind[truth.HoldWithoutBooking], report.Repaired, report.Partial, report.Failed = 1, 1, 2, 1
	for _, err := range []error{w.row(difference("7", 3, -1)), w.row(hold), w.report(report), w.report(reportOf("seats", 0)), w.end(true)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	const want = `
POOL             SLOT             KIND                     STORE  TRUTH DIFFERENCE  REPAIRED HOLD                         SUBJECT
lessons          7                available-too-high           3     -1         +4  no       -                            -
lessons          "\x1b[2J"        hold-without-booking         -      -         +2  yes      HOLD                         "a b"
pool lessons: slots compared 5, failed 1, with more holds than were compared 2, differences 1 (available-too-high 1, hold-without-booking 1), repaired 1, took 1.5s
pool seats: slots compared 5, differences 0, repaired 0, took 1.5s
`
	if got := "\n" + out.String(); got != want {
		t.Errorf("got%s\nwant%s", got, want)
	}
}

func TestAComparisonTellsOneLine(t *testing.T) {
	var out bytes.Buffer
	newComparison("audit", "").tell(&out, "failed to connect:\n\t127.0.0.1:1 \x1b[2J\u2028refused")
	if want := "slotgate audit: failed to connect: 127.0.0.1:1 [2J refused\n"; out.String() != want {
		t.Errorf("told %q, want %q", &out, want)
	}
}
