package booking

import "net/http"

// failure is an answer other than success. It travels as an error.
type failure struct {
	name    string // member "error" of the body
	status  int    // HTTP status, unless enveloped
	code    int    // member "code" of the envelope
	message string
}

func (f *failure) Error() string { return f.message }

var (
	errMalformed = &failure{"bad_request", http.StatusBadRequest, 4000,
		`want a JSON object with "student_id" (1 to 255 bytes of text) and optionally "seats" (1 to 1000)`}
	errSoldOut       = &failure{"sold_out", http.StatusConflict, 4001, "not enough seats left"}
	errDuplicate     = &failure{"duplicate", http.StatusConflict, 4002, "this student has booked this lesson already"}
	errUnknownLesson = &failure{"not_found", http.StatusNotFound, 4004, "no such lesson"}
	errUnknown       = &failure{"not_found", http.StatusNotFound, 4004, "no such booking"}
	errNoRoute       = &failure{"not_found", http.StatusNotFound, 4004, "nothing here answers this method and path"}
	errInternal      = &failure{"internal", http.StatusInternalServerError, 5000, "the database failed"}
	errBusy          = &failure{"busy", http.StatusServiceUnavailable, 5001, "too many bookings of this lesson at once, try again"}
)
