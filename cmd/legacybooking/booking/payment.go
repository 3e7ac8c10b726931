package booking

import "context"

// pay notes that a booking is paid. Paying again changes nothing and is no error.
func (s *Server) pay(ctx context.Context, id int64) error {
	return s.database.transact(ctx, func(tx *transaction) error {
		changed, err := tx.exec(ctx, "UPDATE lesson_booking SET paid_at = CURRENT_TIMESTAMP WHERE id = $1 AND paid_at IS NULL", id)
		if err != nil || changed == 1 {
			return err
		}
		var one int
		found, err := tx.row(ctx, "SELECT 1 FROM lesson_booking WHERE id = $1", []any{id}, &one)
		if err == nil && !found {
			err = errUnknown
		}
		return err
	})
}
