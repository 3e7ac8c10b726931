package booking

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
)

func (s *Server) newRoutes() *http.ServeMux {
	routes := http.NewServeMux()
	routes.HandleFunc("POST /api/lessons/{lesson}/bookings", s.handleBook)
	routes.HandleFunc("POST /api/bookings/{booking}/payment", s.handlePay)
	routes.HandleFunc("DELETE /api/bookings/{booking}", s.handleCancel)
	routes.HandleFunc("DELETE /api/lessons/{lesson}/students/{student}", s.handleCancelStudent)
	routes.HandleFunc("GET /api/lessons/{lesson}", s.handleLesson)
	routes.HandleFunc("GET /api/lessons/{lesson}/bookings", s.handleBookings)
	routes.HandleFunc("GET /api/lessons/{lesson}/students/{student}", s.handleStudent)
	routes.HandleFunc("GET /_stats", s.handleStats)
	routes.HandleFunc("POST /_reset", s.handleReset)
	routes.HandleFunc("/", s.handleOther)
	return routes
}

type bookingData struct {
	BookingID int64  `json:"booking_id"`
	LessonID  int64  `json:"lesson_id"`
	StudentID string `json:"student_id"`
}

type lessonData struct {
	LessonID int64 `json:"lesson_id"`
	Remain   int64 `json:"remain"` // seats left; below 0 if sold twice
	Booked   int64 `json:"booked"` // seats of all bookings
}

func (s *Server) handleBook(w http.ResponseWriter, r *http.Request) {
	s.stats.count(func(stats *Stats) { stats.Requests.Book++ })
	lesson, err := parseID(r.PathValue("lesson"))
	if err != nil {
		s.fail(w, errUnknownLesson, nil)
		return
	}
	o, err := readOrder(w, r, lesson)
	if err != nil {
		s.fail(w, err, nil)
		return
	}
	booked, err := s.book(context.WithoutCancel(r.Context()), o)
	switch {
	case err == nil:
		w.Header().Set("Location", fmt.Sprintf("/api/bookings/%d", booked.BookingID))
		setSession(w)
		s.succeed(w, http.StatusCreated, booked)
	case booked.BookingID != 0:
		s.fail(w, err, booked)
	default:
		s.fail(w, err, nil)
	}
}

// book takes the seats and returns the booking, also the earlier one of a
// duplicate if it is known. The work counts as in flight until it returns,
// which is before a client can hear of it.
func (s *Server) book(ctx context.Context, o order) (bookingData, error) {
	defer s.stats.begin(o.lesson)()
	booking := bookingData{LessonID: o.lesson, StudentID: o.student}
	id, err := s.take(ctx, o)
	if errors.Is(err, errSoldOut) || errors.Is(err, errDuplicate) {
		// A student who has a seat hears so even if it was the last one.
		earlier, found, lookupErr := s.database.bookingOf(ctx, o)
		if lookupErr != nil {
			return booking, lookupErr
		}
		if found {
			id, err = earlier, errDuplicate
		}
		booking.BookingID = id
		return booking, err
	}
	if err != nil {
		return booking, err
	}
	s.stats.count(func(stats *Stats) { stats.Bookings++ })
	s.linger()
	booking.BookingID = id
	return booking, nil
}

func (s *Server) handleCancel(w http.ResponseWriter, r *http.Request) {
	s.stats.count(func(stats *Stats) { stats.Requests.Cancel++ })
	id, err := parseID(r.PathValue("booking"))
	if err != nil {
		s.fail(w, errUnknown, nil)
		return
	}
	s.cancel(w, r, id)
}

// handleCancelStudent cancels by who has booked what.
func (s *Server) handleCancelStudent(w http.ResponseWriter, r *http.Request) {
	s.stats.count(func(stats *Stats) { stats.Requests.Cancel++ })
	place, err := s.findPlace(r)
	if err != nil {
		s.fail(w, err, nil)
		return
	}
	s.cancel(w, r, place.BookingID)
}

func (s *Server) cancel(w http.ResponseWriter, r *http.Request, id int64) {
	if err := s.giveBack(context.WithoutCancel(r.Context()), id); err != nil {
		s.fail(w, err, nil)
		return
	}
	s.stats.count(func(stats *Stats) { stats.Cancellations++ })
	s.succeed(w, http.StatusOK, map[string]int64{"booking_id": id})
}

func (s *Server) handlePay(w http.ResponseWriter, r *http.Request) {
	s.stats.count(func(stats *Stats) { stats.Requests.Pay++ })
	id, err := parseID(r.PathValue("booking"))
	if err != nil {
		s.fail(w, errUnknown, nil)
		return
	}
	if err := s.pay(context.WithoutCancel(r.Context()), id); err != nil {
		s.fail(w, err, nil)
		return
	}
	s.succeed(w, http.StatusOK, map[string]int64{"booking_id": id})
}

// handleBookings lists a lesson's bookings.
func (s *Server) handleBookings(w http.ResponseWriter, r *http.Request) {
	s.stats.count(func(stats *Stats) { stats.Requests.Bookings++ })
	lesson, err := parseID(r.PathValue("lesson"))
	if err != nil {
		s.fail(w, errUnknownLesson, nil)
		return
	}
	places, err := s.bookingsOf(context.WithoutCancel(r.Context()), lesson)
	if err != nil {
		s.fail(w, err, nil)
		return
	}
	s.succeed(w, http.StatusOK, map[string][]placeData{"bookings": places})
}

// handleStudent tells whether a student has a lesson: with the booking, or 404.
func (s *Server) handleStudent(w http.ResponseWriter, r *http.Request) {
	s.stats.count(func(stats *Stats) { stats.Requests.Bookings++ })
	place, err := s.findPlace(r)
	if err != nil {
		s.fail(w, err, nil)
		return
	}
	s.succeed(w, http.StatusOK, place)
}

// findPlace reads the booking that the path names by lesson and student.
func (s *Server) findPlace(r *http.Request) (placeData, error) {
	lesson, err := parseID(r.PathValue("lesson"))
	student := r.PathValue("student")
	if err != nil || !isStudent(student) {
		return placeData{}, errUnknown
	}
	return s.bookingBy(context.WithoutCancel(r.Context()), lesson, student)
}

func (s *Server) handleLesson(w http.ResponseWriter, r *http.Request) {
	s.stats.count(func(stats *Stats) { stats.Requests.Lesson++ })
	id, err := parseID(r.PathValue("lesson"))
	if err != nil {
		s.fail(w, errUnknownLesson, nil)
		return
	}
	lesson := lessonData{LessonID: id}
	found, err := s.database.row(context.WithoutCancel(r.Context()), `SELECT remain,
		(SELECT COALESCE(SUM(seats), 0) FROM lesson_booking WHERE slot_id = $1)
		FROM lesson_slot WHERE slot_id = $1`, []any{id}, &lesson.Remain, &lesson.Booked)
	if err == nil && !found {
		err = errUnknownLesson
	}
	if err != nil {
		s.fail(w, err, nil)
		return
	}
	s.succeed(w, http.StatusOK, lesson)
}

func (s *Server) handleStats(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, s.Stats())
}

func (s *Server) handleReset(w http.ResponseWriter, r *http.Request) {
	if err := s.Reset(context.WithoutCancel(r.Context())); err != nil {
		s.fail(w, err, nil)
		return
	}
	writeJSON(w, http.StatusOK, s.Stats())
}

func (s *Server) handleOther(w http.ResponseWriter, _ *http.Request) {
	s.stats.count(func(stats *Stats) { stats.Requests.Other++ })
	s.fail(w, errNoRoute, nil)
}

// parseID takes the one way in which this API writes an id: digits without a
// leading zero or sign.
func parseID(text string) (int64, error) {
	id, err := strconv.ParseInt(text, 10, 64)
	if err == nil && strconv.FormatInt(id, 10) != text {
		return 0, strconv.ErrSyntax
	}
	return id, err
}
