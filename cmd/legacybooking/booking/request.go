package booking

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"unicode/utf8"
)

const (
	maxBody    = 64 << 10 // bytes
	maxStudent = 255      // bytes
	maxSeats   = 1000     // of one booking, and of a lesson when created
)

// readOrder reads {"student_id": "…", "seats": 1}; seats may be left out. Other
// members are ignored. All faults are errMalformed.
func readOrder(w http.ResponseWriter, r *http.Request, lesson int64) (order, error) {
	body := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	var fields struct {
		StudentID string `json:"student_id"`
		Seats     *int64 `json:"seats"`
	}
	if body.Decode(&fields) != nil {
		return order{}, errMalformed
	}
	if _, err := body.Token(); err != io.EOF { // something behind the object
		return order{}, errMalformed
	}
	o := order{lesson: lesson, student: fields.StudentID, seats: 1}
	if fields.Seats != nil {
		o.seats = *fields.Seats
	}
	if !isStudent(o.student) {
		return order{}, errMalformed
	}
	if o.seats < 1 || o.seats > maxSeats {
		return order{}, errMalformed
	}
	return o, nil
}

// isStudent tells whether a name can be stored: PostgreSQL has no NUL in text, and
// nothing but UTF-8.
func isStudent(name string) bool {
	return name != "" && len(name) <= maxStudent && strings.IndexByte(name, 0) < 0 && utf8.ValidString(name)
}
