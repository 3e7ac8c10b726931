package booking

import "context"

// giveBack removes a booking and returns its seats to the lesson.
func (s *Server) giveBack(ctx context.Context, id int64) error {
	var lesson, seats int64
	found, err := s.database.row(ctx, "SELECT slot_id, seats FROM lesson_booking WHERE id = $1", []any{id}, &lesson, &seats)
	if err != nil {
		return err
	}
	if !found {
		return errUnknown
	}
	return s.database.transact(ctx, func(tx *transaction) error {
		// The lesson first, as when booking: the other order would deadlock
		// with a booking by the same student.
		if _, err := tx.updateLesson(ctx, "remain = remain + $2, version = version + 1",
			"slot_id = $1", []any{lesson}, seats); err != nil {
			return err
		}
		removed, err := tx.exec(ctx, "DELETE FROM lesson_booking WHERE id = $1", id)
		if err == nil && removed == 0 {
			return errUnknown // another cancellation was faster
		}
		return err
	})
}
