package booking

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

func TestEachStyleAnswersAlike(t *testing.T) {
	withEachStyle(t, func(t *testing.T, options Options) {
		options.Lessons, options.Seats = 2, 2
		s := open(t, options)

		first := book(t, s, 1, "ann")
		first.wants(t, http.StatusCreated, "")
		id := first.body.Data["booking_id"]
		if want := fmt.Sprintf("/api/bookings/%v", id); first.header.Get("Location") != want {
			t.Errorf("Location is %q, want %q", first.header.Get("Location"), want)
		}
		if first.body.Data["lesson_id"] != 1.0 || first.body.Data["student_id"] != "ann" {
			t.Errorf("data is %v, want lesson 1 and student ann", first.body.Data)
		}
		other := book(t, s, 2, "ann")
		other.wants(t, http.StatusCreated, "")
		if a, b := first.header.Get("Set-Cookie"), other.header.Get("Set-Cookie"); a == "" || a == b {
			t.Errorf("sessions are %q and %q, want two different ones", a, b)
		}

		again := book(t, s, 1, "ann")
		again.wants(t, http.StatusConflict, "duplicate")
		if again.body.Data["booking_id"] != id || again.header.Get("Set-Cookie") != "" {
			t.Errorf("duplicate names booking %v with headers %v, want %v and no session", again.body.Data["booking_id"], again.header, id)
		}

		book(t, s, 1, "bob").wants(t, http.StatusCreated, "")
		book(t, s, 1, "cid").wants(t, http.StatusConflict, "sold_out")
		book(t, s, 1, "bob").wants(t, http.StatusConflict, "duplicate") // though nothing is left
		book(t, s, 3, "ann").wants(t, http.StatusNotFound, "not_found")

		lesson := ask(t, s, "GET", "/api/lessons/1", "")
		if data := lesson.body.Data; lesson.status != http.StatusOK || data["lesson_id"] != 1.0 || data["remain"] != 0.0 || data["booked"] != 2.0 {
			t.Errorf("lesson is %d %v, want remain 0 and booked 2", lesson.status, data)
		}
		ask(t, s, "GET", "/api/lessons/3", "").wants(t, http.StatusNotFound, "not_found")

		stats := s.Stats()
		if stats.Requests.Book != 7 || stats.Requests.Lesson != 2 || stats.Bookings != 3 {
			t.Errorf("stats are %+v, want 7 bookings asked, 3 made, 2 lessons read", stats)
		}
		for name, want := range map[string]int64{"ok": 4, "duplicate": 2, "sold_out": 1, "not_found": 2} {
			if stats.Answers[name] != want {
				t.Errorf("%d answers %q, want %d", stats.Answers[name], name, want)
			}
		}
		if stats.LockWaits != 0 || stats.Conflicts.Constraint+stats.Conflicts.Version+stats.Conflicts.Serialization != 0 {
			t.Errorf("lock waits and conflicts of requests one by one: %+v", stats)
		}
		if stats.InFlight.Now != 0 || stats.InFlight.Max != 1 || stats.InFlight.MaxPerLesson != 1 {
			t.Errorf("in flight %+v, want at most 1", stats.InFlight)
		}
	})
}

func TestSeveralSeatsAreTakenTogetherOrNotAtAll(t *testing.T) {
	withEachStyle(t, func(t *testing.T, options Options) {
		options.Lessons, options.Seats = 1, 5
		s := open(t, options)
		order := func(student string, seats int) reply {
			return ask(t, s, "POST", "/api/lessons/1/bookings", fmt.Sprintf(`{"student_id":%q,"seats":%d}`, student, seats))
		}
		group := order("group", 3)
		group.wants(t, http.StatusCreated, "")
		order("crowd", 3).wants(t, http.StatusConflict, "sold_out")
		if l := readLedger(t, s, 1); l.remain != 2 || l.seats != 3 {
			t.Errorf("ledger is %+v, want 2 left and 3 taken", l)
		}
		order("pair", 2).wants(t, http.StatusCreated, "")

		ask(t, s, "DELETE", group.header.Get("Location"), "").wants(t, http.StatusOK, "")
		ask(t, s, "DELETE", group.header.Get("Location"), "").wants(t, http.StatusNotFound, "not_found")
		if l := readLedger(t, s, 1); l.remain != 3 || l.seats != 2 || s.Stats().Cancellations != 1 {
			t.Errorf("after a cancellation the ledger is %+v with %d cancellations, want 3 left, 2 taken, 1", l, s.Stats().Cancellations)
		}
		order("group", 3).wants(t, http.StatusCreated, "")
	})
}

func TestWhatTheAPICannotRead(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, database string) {
		s := open(t, Options{Database: database, Lessons: 1, Seats: 5})
		for _, body := range []string{
			"", "null", "7", "[]", "{", `{"student_id":""}`, `{"student_id":7}`, `{"student_id":null}`,
			`{"student_id":"a\u0000b"}`, `{"student_id":"` + strings.Repeat("a", maxStudent+1) + `"}`,
			`{"student_id":"a","seats":0}`, `{"student_id":"a","seats":-1}`, `{"student_id":"a","seats":1001}`,
			`{"student_id":"a","seats":1.5}`, `{"student_id":"a","seats":"1"}`, `{"student_id":"a","seats":99999999999999999999}`,
			`{"student_id":"a"} {}`, `{"student_id":"a"}x`, `{"student_id":"a","pad":"` + strings.Repeat("x", maxBody) + `"}`,
		} {
			got := ask(t, s, "POST", "/api/lessons/1/bookings", body)
			if got.status != http.StatusBadRequest || got.body.Error != "bad_request" {
				t.Errorf("body %.40q gives %d %q, want 400 bad_request", body, got.status, got.body.Error)
			}
		}
		for _, target := range []string{
			"POST /api/lessons/x/bookings", "POST /api/lessons/01/bookings", "POST /api/lessons/+1/bookings",
			"POST /api/lessons/-1/bookings", "POST /api/lessons/99999999999999999999/bookings", "POST /api/lessons/%00/bookings",
			"GET /api/lessons/x", "GET /api/lessons/01", "DELETE /api/bookings/x", "DELETE /api/bookings/1",
			"POST /api/bookings/x/payment", "POST /api/bookings/1/payment", "GET /api/bookings/1/payment",
			"GET /api/lessons/x/bookings", "GET /api/lessons/2/bookings", "POST /api/lessons/1/students/ann",
			"GET /api/lessons/x/students/ann", "GET /api/lessons/1/students/ann", "GET /api/lessons/1/students/%00", "GET /api/lessons/1/students/%ff",
			"DELETE /api/lessons/x/students/ann", "DELETE /api/lessons/1/students/ann", "DELETE /api/lessons/1/students/%00",
			"GET /", "PUT /api/lessons/1", "POST /_stats",
		} {
			method, path, _ := strings.Cut(target, " ")
			ask(t, s, method, path, `{"student_id":"a"}`).wants(t, http.StatusNotFound, "not_found")
		}
		// Odd, but readable: any text is a name.
		for i, student := range []string{`"; DROP TABLE lesson_slot; --`, "Ünïcödé 名", " ", strings.Repeat("a", maxStudent)} {
			got := ask(t, s, "POST", "/api/lessons/1/bookings", fmt.Sprintf(`{"student_id":%q,"extra":%d}`, student, i))
			got.wants(t, http.StatusCreated, "")
			if got.body.Data["student_id"] != student {
				t.Errorf("booked for %q, want %q", got.body.Data["student_id"], student)
			}
		}
		if l := readLedger(t, s, 1); l.bookings != 4 || l.remain != 1 {
			t.Errorf("ledger is %+v, want the 4 readable bookings only", l)
		}
	})
}

func TestEnvelopeSaysItInTheBody(t *testing.T) {
	s := open(t, Options{Envelope: true, Style: Optimistic, Lessons: 1, Seats: 1})
	wants := func(got reply, code int) {
		t.Helper()
		if got.status != http.StatusOK || got.body.Code == nil || *got.body.Code != code || got.body.Message == "" || got.body.Error != "" {
			t.Errorf("answer is %d with %+v, want 200 with code %d", got.status, got.body, code)
		}
	}
	booked := book(t, s, 1, "ann")
	wants(booked, 0)
	if booked.body.Data["booking_id"] != 1.0 || booked.header.Get("Set-Cookie") == "" {
		t.Errorf("data is %v with headers %v, want booking 1 and a session", booked.body.Data, booked.header)
	}
	wants(book(t, s, 1, "bob"), 4001)
	wants(book(t, s, 1, "ann"), 4002)
	wants(book(t, s, 2, "ann"), 4004)
	wants(ask(t, s, "DELETE", "/api/bookings/9", ""), 4004)
	wants(ask(t, s, "GET", "/nowhere", ""), 4004)
	wants(ask(t, s, "POST", "/api/lessons/1/bookings", "{"), 4000)
	wants(ask(t, s, "GET", "/api/lessons/1", ""), 0)
	wants(ask(t, s, "DELETE", "/api/bookings/1", ""), 0)
}

func TestResetStartsAgain(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, database string) {
		s := open(t, Options{Database: database, Lessons: 2, Seats: 1})
		book(t, s, 1, "ann").wants(t, http.StatusCreated, "")
		if got := ask(t, s, "POST", "/_reset", ""); got.status != http.StatusOK {
			t.Fatalf("reset gives %d", got.status)
		}
		if l := readLedger(t, s, 1); l.remain != 1 || l.bookings != 0 {
			t.Errorf("ledger is %+v, want a lesson as new", l)
		}
		if stats := s.Stats(); stats.Bookings != 0 || stats.Requests.Book != 0 || stats.Statements != 0 || len(stats.Answers) != 0 {
			t.Errorf("stats are %+v, want zeros", stats)
		}
		book(t, s, 1, "ann").wants(t, http.StatusCreated, "")
	})
}
