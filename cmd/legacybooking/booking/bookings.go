package booking

import "context"

// placeData is a booking as the lists show it.
type placeData struct {
	bookingData
	Seats int64 `json:"seats"`
	Paid  bool  `json:"paid"`
}

// bookingsOf lists the bookings of a lesson, oldest first.
func (s *Server) bookingsOf(ctx context.Context, lesson int64) ([]placeData, error) {
	var one int
	found, err := s.database.row(ctx, "SELECT 1 FROM lesson_slot WHERE slot_id = $1", []any{lesson}, &one)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, errUnknownLesson
	}
	return s.places(ctx, "slot_id = $1", lesson)
}

// bookingBy returns the booking that a student has of a lesson, the oldest one where
// there are several.
func (s *Server) bookingBy(ctx context.Context, lesson int64, student string) (placeData, error) {
	places, err := s.places(ctx, "slot_id = $1 AND student_id = $2", lesson, student)
	if err != nil {
		return placeData{}, err
	}
	if len(places) == 0 {
		return placeData{}, errUnknown
	}
	return places[0], nil
}

func (s *Server) places(ctx context.Context, where string, args ...any) ([]placeData, error) {
	rows, err := s.database.rows(ctx, `SELECT id, slot_id, student_id, seats, paid_at IS NOT NULL
		FROM lesson_booking WHERE `+where+" ORDER BY id", args)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	places := []placeData{} // an empty list is [], not null
	for rows.Next() {
		var p placeData
		if err := rows.Scan(&p.BookingID, &p.LessonID, &p.StudentID, &p.Seats, &p.Paid); err != nil {
			return nil, err
		}
		places = append(places, p)
	}
	return places, rows.Err()
}
