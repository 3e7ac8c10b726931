package main

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// A gate sells all the while. What goes on is not reported; what was planted is found,
// repaired and gone.
func TestReconcileAndAuditBesideAGateThatSells(t *testing.T) {
	s := compareSale(t, 19)
	end := s.traffic(8)
	for range 3 {
		if found, _ := s.compared(compareClean, "reconcile"); found != nil {
			t.Errorf("reconcile takes traffic for %q", found)
		}
		if found, _ := s.compared(compareClean, "audit"); found != nil {
			t.Errorf("audit takes traffic for %q", found)
		}
	}

	s.books(14, "ann", http.StatusCreated)
	s.books(18, "ann", http.StatusCreated)
	s.behind("UPDATE lesson_booking SET student_id = 'hidden' WHERE slot_id = 18") // else the API refuses the next
	s.books(18, "ann", http.StatusCreated)
	s.behind("UPDATE lesson_booking SET student_id = 'ann' WHERE slot_id = 18")
	s.books(19, "ann", http.StatusCreated)
	s.behind("UPDATE lesson_slot SET remain = 0 WHERE slot_id = 15")
	s.books(15, "ann", http.StatusConflict)
	s.behind("UPDATE lesson_slot SET remain = 'many' WHERE slot_id = 16")
	if status, _, _ := call(t, "POST", s.gate.admin+"/v1/slots/lessons/16/resync"); status == http.StatusOK {
		t.Error("a look at many seats tells their number")
	}
	s.behind(fmt.Sprintf(`
UPDATE lesson_slot SET remain = remain - 1 WHERE slot_id = 11;
UPDATE lesson_slot SET remain = remain + 2 WHERE slot_id = 12;
DELETE FROM lesson_slot WHERE slot_id = 13;
DELETE FROM lesson_booking WHERE slot_id = 14;
UPDATE lesson_slot SET remain = %d WHERE slot_id IN (14, 15, 16);
UPDATE lesson_slot SET remain = remain - 1 WHERE slot_id = 19;
INSERT INTO lesson_booking (slot_id, student_id) VALUES (19, 'zed');`, comparedSeats))

	planted := []string{
		"11 available-too-high", "12 available-too-low", "13 slot-missing", "14 available-too-low", "14 hold-without-booking",
		"15 marked-full", "16 unverified", "18 held-twice", "19 available-too-high",
	}
	damage := []string{"14 admitted-without-booking", "18 subject-twice", "19 booked-without-admission"}
	if found, _ := s.compared(compareFound, "audit"); !slices.Equal(found, damage) {
		t.Errorf("audit finds\n %q, want\n %q", found, damage)
	}
	if found, repaired := s.compared(compareFound, "reconcile"); !slices.Equal(found, planted) || repaired != 0 {
		t.Errorf("reconcile finds\n %q, want\n %q", found, planted)
	}
	if found, repaired := s.compared(compareFound, "reconcile", "--repair"); !slices.Equal(found, planted) || repaired != len(planted) {
		t.Errorf("reconcile repairs %d of\n %q, want\n %q", repaired, found, planted)
	}
	if found, _ := s.compared(compareClean, "reconcile"); found != nil {
		t.Errorf("after the repair there is %q", found)
	}
	s.books(14, "ann", http.StatusCreated)
	if done := end(); done < 50 {
		t.Errorf("only %d bookings went on meanwhile", done)
	}

	// What the backend alone can put right stays.
	s.behind("UPDATE lesson_slot SET remain = -1 WHERE slot_id = 17")
	s.compared(compareFound, "reconcile", "--repair")
	if found, _ := s.compared(compareFound, "reconcile"); !slices.Equal(found, []string{"17 oversold"}) {
		t.Errorf("of an oversold lesson there is %q", found)
	}
}

// onWrite calls f before the first write.
type onWrite struct {
	bytes.Buffer
	f func() error
}

func (w *onWrite) Write(p []byte) (int, error) {
	if w.f != nil {
		err := w.f()
		if w.f = nil; err != nil {
			return 0, err
		}
	}
	return w.Buffer.Write(p)
}

func TestASignalEndsAComparisonWithWhatItHas(t *testing.T) {
	s := compareSale(t, 20)
	s.behind("UPDATE lesson_slot SET remain = 5; INSERT INTO lesson_booking (slot_id, student_id) SELECT slot_id, 'ann' FROM lesson_slot")
	for _, format := range []string{"table", "csv"} {
		stdout := &onWrite{f: func() error { return syscall.Kill(os.Getpid(), syscall.SIGINT) }}
		var stderr bytes.Buffer
		// Two seconds for all of them; the signal comes with the first.
		status := run([]string{"reconcile", "-c", s.config, "--rate", "20", "--format", format}, nil, stdout, &stderr)
		if status != compareFailed || stderr.String() != "slotgate reconcile: stopped by a signal; the report is of what was compared until then\n" {
			t.Errorf("%s: ended with %d: %s", format, status, &stderr)
		}
		if rows := strings.Count(stdout.String(), "available-too-high"); rows < 1 || rows > 20 {
			t.Errorf("%s: %d rows, want some:\n%s", format, rows, stdout)
		}
		if format == "table" && !regexp.MustCompile(`\npool lessons: slots compared 1?\d, differences \d`).MatchString(stdout.String()) {
			t.Errorf("no summary of what was compared:\n%s", stdout)
		}
	}
}

func TestAComparisonEndsWhereItCannotBeWritten(t *testing.T) {
	s := compareSale(t, 2)
	s.behind("UPDATE lesson_slot SET remain = -1")
	for _, command := range []string{"reconcile", "audit"} {
		for _, format := range reportFormats {
			var stderr bytes.Buffer
			stdout := &onWrite{f: func() error { return errors.New("no space left") }}
			status := run([]string{command, "-c", s.config, "--format", format, "--rate", "1000"}, nil, stdout, &stderr)
			if want := fmt.Sprintf("slotgate %s: no space left\n", command); status != compareFailed || stderr.String() != want {
				t.Errorf("%s as %s: ended with %d, %q", command, format, status, &stderr)
			}
		}
	}
}
