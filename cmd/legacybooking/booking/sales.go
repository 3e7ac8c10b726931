package booking

import (
	"context"
	"fmt"
)

// Sale is what the database says of one lesson.
type Sale struct {
	Lesson   int64
	Remain   int64 // seats left; below 0 if sold twice
	Seats    int64 // of all bookings
	Bookings int64
	Students int64 // distinct; fewer than Bookings if one is booked twice
}

// Sales reads all lessons, in the order of their ids. It is an instrument and
// not counted in Stats.
func (s *Server) Sales(ctx context.Context) ([]Sale, error) {
	rows, err := s.database.pool.QueryContext(ctx, `SELECT l.slot_id, l.remain, COALESCE(SUM(b.seats), 0),
		COUNT(b.id), COUNT(DISTINCT b.student_id)
		FROM lesson_slot l LEFT JOIN lesson_booking b ON b.slot_id = l.slot_id
		GROUP BY l.slot_id, l.remain ORDER BY l.slot_id`)
	if err != nil {
		return nil, fmt.Errorf("booking: sales: %w", err)
	}
	defer rows.Close()
	var sales []Sale
	for rows.Next() {
		var sale Sale
		if err := rows.Scan(&sale.Lesson, &sale.Remain, &sale.Seats, &sale.Bookings, &sale.Students); err != nil {
			return nil, fmt.Errorf("booking: sales: %w", err)
		}
		sales = append(sales, sale)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("booking: sales: %w", err)
	}
	return sales, nil
}
