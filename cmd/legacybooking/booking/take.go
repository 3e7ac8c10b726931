package booking

import "context"

// order is one request for seats of a lesson.
type order struct {
	lesson  int64
	student string
	seats   int64
}

// optimisticTries is how often the optimistic style reads and writes before it
// gives up.
const optimisticTries = 3

// take books the order and returns the id of the booking. Every style either
// takes all seats and notes the booking, or does nothing and returns a failure.
func (s *Server) take(ctx context.Context, o order) (int64, error) {
	switch s.options.Style {
	case Conditional:
		return s.takeConditional(ctx, o)
	case Optimistic:
		return s.takeOptimistic(ctx, o)
	case RowLock:
		return s.takeRowLock(ctx, o)
	default:
		return s.takeNaive(ctx, o)
	}
}

// takeNaive decides on what it read a while ago. Whatever other requests wrote
// meanwhile is only noticed by the database's constraints.
func (s *Server) takeNaive(ctx context.Context, o order) (id int64, err error) {
	remain, _, err := s.readLesson(ctx, o)
	if err != nil {
		return 0, err
	}
	if remain < o.seats {
		return 0, errSoldOut
	}
	s.work()
	err = s.database.transact(ctx, func(tx *transaction) error {
		found, err := tx.updateLesson(ctx, "remain = remain - $2, version = version + 1",
			"slot_id = $1", []any{o.lesson}, o.seats)
		if err != nil {
			return err
		}
		if !found {
			return errUnknownLesson
		}
		id, err = tx.insertBooking(ctx, o)
		return err
	})
	return id, err
}

// takeConditional lets the UPDATE itself decide. The row stays locked to the
// end, so the look for a booking of this student cannot be overtaken.
func (s *Server) takeConditional(ctx context.Context, o order) (id int64, err error) {
	err = s.database.transact(ctx, func(tx *transaction) error {
		taken, err := tx.updateLesson(ctx, "remain = remain - $2, version = version + 1",
			"slot_id = $1 AND remain >= $2", []any{o.lesson, o.seats})
		if err != nil {
			return err
		}
		if !taken {
			return tx.whyNone(ctx, o.lesson)
		}
		s.work()
		if err := tx.notBookedYet(ctx, o); err != nil {
			return err
		}
		id, err = tx.insertBooking(ctx, o)
		return err
	})
	return id, err
}

// takeOptimistic writes only if nothing has changed since it read. A change of
// any kind raises the version, so what it read about the student holds too.
func (s *Server) takeOptimistic(ctx context.Context, o order) (int64, error) {
	for range optimisticTries {
		remain, version, err := s.readLesson(ctx, o)
		if err != nil {
			return 0, err
		}
		if remain < o.seats {
			return 0, errSoldOut
		}
		s.work()
		var id int64
		unchanged := false
		err = s.database.transact(ctx, func(tx *transaction) (err error) {
			unchanged, err = tx.updateLesson(ctx, "remain = remain - $3, version = version + 1",
				"slot_id = $1 AND version = $2", []any{o.lesson, version}, o.seats)
			if err != nil || !unchanged {
				return err
			}
			id, err = tx.insertBooking(ctx, o)
			return err
		})
		if err != nil || unchanged {
			return id, err
		}
		s.stats.versionConflict()
	}
	return 0, errBusy
}

// takeRowLock reads, decides and writes while it holds the row.
func (s *Server) takeRowLock(ctx context.Context, o order) (id int64, err error) {
	err = s.database.transact(ctx, func(tx *transaction) error {
		if err := tx.lockLesson(ctx, "slot_id = $1", o.lesson); err != nil {
			return err
		}
		var remain int64
		found, err := tx.row(ctx, "SELECT remain FROM lesson_slot WHERE slot_id = $1"+tx.engine.forUpdate(),
			[]any{o.lesson}, &remain)
		if err != nil {
			return err
		}
		if !found {
			return errUnknownLesson
		}
		if err := tx.notBookedYet(ctx, o); err != nil {
			return err
		}
		if remain < o.seats {
			return errSoldOut
		}
		s.work()
		if _, err := tx.exec(ctx, "UPDATE lesson_slot SET remain = remain - $2, version = version + 1 WHERE slot_id = $1",
			o.lesson, o.seats); err != nil {
			return err
		}
		id, err = tx.insertBooking(ctx, o)
		return err
	})
	return id, err
}

// readLesson returns the state that the naive and optimistic styles decide on.
// The version is read before the bookings: a booking that comes in between
// changes the version, so nobody can be booked on a look that missed it.
func (s *Server) readLesson(ctx context.Context, o order) (remain, version int64, err error) {
	found, err := s.database.row(ctx, "SELECT remain, version FROM lesson_slot WHERE slot_id = $1",
		[]any{o.lesson}, &remain, &version)
	if err != nil {
		return 0, 0, err
	}
	if !found {
		return 0, 0, errUnknownLesson
	}
	return remain, version, s.database.notBookedYet(ctx, o)
}

// bookingOf returns the id of the student's booking, false if there is none.
func (s statements) bookingOf(ctx context.Context, o order) (id int64, found bool, err error) {
	found, err = s.row(ctx, "SELECT id FROM lesson_booking WHERE slot_id = $1 AND student_id = $2 ORDER BY id LIMIT 1",
		[]any{o.lesson, o.student}, &id)
	return id, found, err
}

func (s statements) notBookedYet(ctx context.Context, o order) error {
	_, found, err := s.bookingOf(ctx, o)
	if err == nil && found {
		return errDuplicate
	}
	return err
}

// whyNone tells a lesson without seats from no lesson.
func (s statements) whyNone(ctx context.Context, lesson int64) error {
	var one int
	found, err := s.row(ctx, "SELECT 1 FROM lesson_slot WHERE slot_id = $1", []any{lesson}, &one)
	if err != nil {
		return err
	}
	if !found {
		return errUnknownLesson
	}
	return errSoldOut
}

func (t *transaction) insertBooking(ctx context.Context, o order) (id int64, err error) {
	return t.engine.insert(ctx, t.statements, "INSERT INTO lesson_booking (slot_id, student_id, seats) VALUES ($1, $2, $3)",
		[]any{o.lesson, o.student, o.seats})
}
