package booking

import (
	"fmt"
	"net/http"
	"testing"
)

// isPaid reads what the API says of a student's booking.
func isPaid(t *testing.T, s *Server, lesson int, student string) any {
	t.Helper()
	got := ask(t, s, "GET", fmt.Sprintf("/api/lessons/%d/students/%s", lesson, student), "")
	got.wants(t, http.StatusOK, "")
	return got.body.Data["paid"]
}

func TestAPaymentIsNotedOnce(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, database string) {
		s := open(t, Options{Database: database, Lessons: 1, Seats: 2})
		location := book(t, s, 1, "ann").header.Get("Location")
		book(t, s, 1, "bob")
		if isPaid(t, s, 1, "ann") != false {
			t.Error("a new booking is paid")
		}
		for range 2 {
			got := ask(t, s, "POST", location+"/payment", "")
			got.wants(t, http.StatusOK, "")
			if fmt.Sprintf("/api/bookings/%v", got.body.Data["booking_id"]) != location {
				t.Errorf("paid for %v, want %s", got.body.Data, location)
			}
		}
		if ann, bob := isPaid(t, s, 1, "ann"), isPaid(t, s, 1, "bob"); ann != true || bob != false {
			t.Errorf("paid: ann %v and bob %v, want ann alone", ann, bob)
		}
		ask(t, s, "DELETE", location, "").wants(t, http.StatusOK, "")
		ask(t, s, "POST", location+"/payment", "").wants(t, http.StatusNotFound, "not_found")
		if stats := s.Stats(); stats.Requests.Pay != 3 || stats.Answers["internal"] != 0 {
			t.Errorf("stats are %+v, want 3 payments asked", stats)
		}
		if l := readLedger(t, s, 1); l.remain != 1 || l.bookings != 1 {
			t.Errorf("ledger is %+v, want bob's booking", l)
		}
	})
}

func TestBookingsAreListed(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, database string) {
		s := open(t, Options{Database: database, Lessons: 2, Seats: 5})
		list := func(lesson int) []any {
			t.Helper()
			got := ask(t, s, "GET", fmt.Sprintf("/api/lessons/%d/bookings", lesson), "")
			got.wants(t, http.StatusOK, "")
			places, isList := got.body.Data["bookings"].([]any)
			if !isList {
				t.Errorf("data is %v, want a list", got.body.Data)
			}
			return places
		}
		if places := list(1); len(places) != 0 {
			t.Errorf("bookings are %v, want none", places)
		}
		first := book(t, s, 1, "ann")
		ask(t, s, "POST", "/api/lessons/1/bookings", `{"student_id":"Ünï 名","seats":2}`).wants(t, http.StatusCreated, "")
		book(t, s, 2, "ann")
		places := list(1)
		if len(places) != 2 {
			t.Fatalf("bookings are %v, want two", places)
		}
		ann, other := places[0].(map[string]any), places[1].(map[string]any)
		if ann["student_id"] != "ann" || ann["booking_id"] != first.body.Data["booking_id"] || ann["lesson_id"] != 1.0 || ann["seats"] != 1.0 || ann["paid"] != false {
			t.Errorf("the first booking is %v", ann)
		}
		if other["student_id"] != "Ünï 名" || other["seats"] != 2.0 {
			t.Errorf("the second booking is %v", other)
		}
	})
}

func TestAStudentIsFoundByNameExactly(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, database string) {
		s := open(t, Options{Database: database, Lessons: 1, Seats: 5})
		book(t, s, 1, "a/b é")
		got := ask(t, s, "GET", "/api/lessons/1/students/a%2Fb%20%C3%A9", "")
		got.wants(t, http.StatusOK, "")
		if got.body.Data["student_id"] != "a/b é" {
			t.Errorf("found %v", got.body.Data)
		}
		for _, other := range []string{"A%2Fb%20%C3%A9", "a%2Fb%20e", "a"} {
			ask(t, s, "GET", "/api/lessons/1/students/"+other, "").wants(t, http.StatusNotFound, "not_found")
			ask(t, s, "DELETE", "/api/lessons/1/students/"+other, "").wants(t, http.StatusNotFound, "not_found")
		}
		ask(t, s, "DELETE", "/api/lessons/1/students/a%2Fb%20%C3%A9", "").wants(t, http.StatusOK, "")
		ask(t, s, "DELETE", "/api/lessons/1/students/a%2Fb%20%C3%A9", "").wants(t, http.StatusNotFound, "not_found")
		if l := readLedger(t, s, 1); l.remain != 5 || l.bookings != 0 || s.Stats().Cancellations != 1 {
			t.Errorf("ledger is %+v after %d cancellations, want all free after one", l, s.Stats().Cancellations)
		}
	})
}

func TestMySQLBindsByPosition(t *testing.T) {
	query, args := mysql{}.bind("UPDATE t SET a = a + $2 WHERE b = $1 AND c > $2 AND d = '?'", []any{"one", 2})
	if want := "UPDATE t SET a = a + ? WHERE b = ? AND c > ? AND d = '?'"; query != want || fmt.Sprint(args) != "[2 one 2]" {
		t.Errorf("%s with %v, want %s with [2 one 2]", query, args, want)
	}
}
