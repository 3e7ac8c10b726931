package truth

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/gate/truth/source"
	"github.com/slotgate/slotgate/rules"
)

func (b *bench) audit(p *Pool) *AuditReport {
	b.Helper()
	o := AuditOptions{}
	o.Rate = rules.Rate{Count: 100_000, Per: time.Second}
	r, err := p.Audit(b.Context(), o)
	if err != nil {
		b.Fatal(err)
	}
	return r
}

func TestAuditFindsExactlyTheDamage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, newBackend(6))
		b.config.OnePerSubject = true
		b.truth().Lag = time.Second
		b.truth().SQL.Driver = "sqlite"
		b.truth().Bookings = &rules.BookingsConfig{Query: "SELECT id, student_id, created_at FROM booking WHERE slot_id = ?"}
		o := b.options("gate-a")
		o.Lister = b.backend
		p := b.open(o)

		b.backend.book("half-sold", "before-1", "before-2") // before there was a gate
		time.Sleep(time.Hour)
		b.lesson(p, "half-sold", 3)
		b.lesson(p, "right", 6)

		b.lesson(p, "over", 6) // 1: a total that was lowered
		b.backend.setTotal("over", 4)
		b.lesson(p, "below", 2) // 2: a remainder that was counted down too often
		b.backend.remain("below", -1)
		b.lesson(p, "twice", 2) // 3
		time.Sleep(time.Second)
		b.backend.book("twice", "twice-student-1")
		b.lesson(p, "dodged", 2) // 4: a way around the gate
		time.Sleep(time.Second)
		b.backend.book("dodged", "dodger-1", "dodger-2")
		b.lesson(p, "returned", 2) // 5
		b.backend.cancel("returned", "returned-student-1")
		time.Sleep(time.Minute)

		got := b.audit(p)
		var have []string
		for _, f := range got.Findings {
			ids := ""
			for _, row := range f.Bookings {
				ids += " " + row.Subject
			}
			have = append(have, f.Slot+" "+string(f.Kind)+ids)
		}
		slices.Sort(have)
		want := []string{
			"below negative-remainder below-student-1",
			"dodged booked-without-admission dodger-2 dodger-1",
			"over overbooked over-student-5 over-student-4",
			"returned admitted-without-booking",
			"twice subject-twice twice-student-1",
		}
		if !slices.Equal(have, want) {
			t.Errorf("found\n %q, want\n %q", have, want)
		}
		if got.Damages != 5 || got.Slots != 7 || got.Failed != 0 || got.Partial != 0 {
			t.Errorf("report %+v", got)
		}
		for _, f := range got.Findings {
			if f.Kind == BookedWithoutAdmission && (f.Units != 2 || !strings.Contains(f.SQL, "slot_id = 'dodged'")) {
				t.Errorf("dodged: %d units, SQL %q", f.Units, f.SQL)
			}
		}
	})
}

func TestAuditDoesNotTakeABookingUnderWayForDamage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, newBackend(6))
		b.truth().Lag = 500 * time.Millisecond
		o := b.options("gate-a")
		o.Lister = b.backend
		p := b.open(o)
		b.lesson(p, "1", 1)
		done := make(chan struct{})
		go func() {
			defer close(done)
			for i := range 200 {
				subject := "walk-in-" + string(rune('a'+i%26))
				d, got := b.decide("1", subject)
				b.backend.book("1", subject)
				time.Sleep(20 * time.Millisecond)
				b.settle(settlement(&d, &got, rules.Booked))
				b.backend.cancel("1", subject) // and cancelled through the gate
				_, _ = b.store.Release(t.Context(), b.query("1"), got.Hold)
				time.Sleep(5 * time.Millisecond)
				p.Load(t.Context(), "1")
			}
		}()
		for range 3 {
			if got := b.audit(p); got.Damages != 0 {
				t.Errorf("found %+v", got.Findings)
			}
		}
		<-done
	})
}

// A gate that passed a booking through while the store was away has lag to say so.
func TestABookingIsWithoutAdmissionOnlyAfterLag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, newBackend(6))
		b.truth().Lag = 5 * time.Second
		o := b.options("gate-a")
		o.Lister = b.backend
		p := b.open(o)
		b.lesson(p, "1", 1)
		time.Sleep(time.Minute)
		b.backend.book("1", "walk-in")
		for want := range 2 {
			if got := b.audit(p); got.Damages != want {
				t.Errorf("%d damages, want %d: %+v", got.Damages, want, got.Findings)
			}
			time.Sleep(b.truth().Lag + time.Second)
		}
	})
}

// A hold that lapsed was an admission: an order that is paid late, or an answer that never
// came. Its booking is no way around the gate.
func TestABookingWhoseHoldLapsedWasAdmitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, newBackend(6))
		o := b.options("gate-a")
		o.Lister = b.backend
		p := b.open(o)
		b.lesson(p, "1", 1)
		time.Sleep(time.Minute)
		d, got := b.decide("1", "unanswered")
		b.backend.book("1", "unanswered")
		b.settle(settlement(&d, &got, rules.Unknown))
		time.Sleep(2 * b.config.HoldTTL)
		p.Load(t.Context(), "1")
		if s := b.slot("1"); s.Confirmed != 1 || s.Held != 0 {
			t.Fatalf("%d confirmed, %d held, want the unanswered hold lapsed", s.Confirmed, s.Held)
		}
		if got := b.audit(p); got.Damages != 0 {
			t.Errorf("found %+v", got.Findings)
		}

		b.backend.book("1", "walk-in")
		time.Sleep(time.Minute)
		if got := b.audit(p); got.Damages != 1 || len(got.Findings[0].Bookings) != 1 || got.Findings[0].Subject != "walk-in" {
			t.Errorf("found %+v, want the walk-in", got.Findings)
		}
	})
}

// One lapsed hold stands for one booking.
func TestALapsedHoldCoversOneBooking(t *testing.T) {
	at := func(second int) time.Time { return time.Unix(int64(1_700_000_000+second), 0) }
	entry := func(hold string, second int, from, to decision.HoldState) store.Entry {
		return store.Entry{Hold: hold, Time: at(second), From: from, To: to}
	}
	o := &observation{now: at(3600), lag: time.Second, holdTTL: 20 * time.Second}
	o.readLedger([]store.Entry{ // newest first
		entry("settled-late", 45, decision.Lapsed, decision.Confirmed),
		entry("settled-late", 44, decision.HoldUnknown, decision.Lapsed),
		entry("late", 40, decision.Pending, decision.Lapsed),
		entry("early", 35, decision.HoldUnknown, decision.Lapsed),
		entry("late", 20, decision.NoHold, decision.Held),
		entry("settled-late", 12, decision.NoHold, decision.Held),
		entry("early", 10, decision.NoHold, decision.Held),
		entry("known", 1, decision.NoHold, decision.Held),
	})
	if !o.since.Equal(at(1)) {
		t.Errorf("known since %v, want the oldest entry's time", o.since)
	}
	var covered []int
	for _, second := range []int{50, 41, 25, 22, 9, 5} { // latest first, as damage asks
		if o.coveredByLapse(at(second)) {
			covered = append(covered, second)
		}
	}
	if want := []int{41, 25}; !slices.Equal(covered, want) {
		t.Errorf("covered %v, want %v", covered, want)
	}
}

func TestAuditNeedsAList(t *testing.T) {
	b := newBench(t, newBackend(6))
	if _, err := b.pool().Audit(t.Context(), AuditOptions{}); err == nil || !strings.Contains(err.Error(), "bookings.query") {
		t.Errorf("error %v, want one that says what to set", err)
	}
}

func TestWithoutOnePerSubjectTwoAdmissionsAreTwoBookings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, newBackend(6))
		o := b.options("gate-a")
		o.Lister = b.backend
		p := b.open(o)
		b.lesson(p, "1", 1)
		b.sell("1", "ann", "ann")
		time.Sleep(time.Minute)
		if got := b.audit(p); got.Damages != 0 {
			t.Errorf("found %+v", got.Findings)
		}
		b.backend.book("1", "ann")
		time.Sleep(time.Minute)
		got := b.audit(p)
		if got.Damages != 1 || got.Findings[0].Kind != SubjectTwice || len(got.Findings[0].Bookings) != 1 {
			t.Errorf("found %+v, want ann's third booking", got.Findings)
		}
	})
}

func TestTheLatestBookingComesFirst(t *testing.T) {
	at := time.Unix(1_700_000_000, 0)
	got := latestFirst([]source.Booking{{ID: "9", At: at}, {ID: "10", At: at}, {ID: "1", At: at.Add(time.Second)}, {ID: "2"}})
	var ids []string
	for _, b := range got {
		ids = append(ids, b.ID)
	}
	if want := []string{"1", "10", "9", "2"}; !slices.Equal(ids, want) {
		t.Errorf("order %q, want %q", ids, want)
	}
}
