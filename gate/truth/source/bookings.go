package source

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"time"
)

// maxBookings bounds the list of one slot.
const maxBookings = 100_000

// sqlBookings is a sqlSource that also lists bookings.
type sqlBookings struct {
	*sqlSource
	list *statement
}

func (s *sqlBookings) Bookings(ctx context.Context, slot string) ([]Booking, error) {
	if !spellable(slot) {
		return nil, nil
	}
	var bookings []Booking
	err := s.look(ctx, func(l *look) error {
		rows, err := l.query(s.list, slot)
		if err != nil || rows == nil {
			return err
		}
		defer rows.Close()
		if bookings, err = scanBookings(rows); err != nil {
			return fmt.Errorf("%s: %w", s.list.setting, err)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("truth: %w", err)
	}
	return bookings, nil
}

func (s *sqlBookings) Booked(ctx context.Context, slot, subject string) (bool, error) {
	bookings, err := s.Bookings(ctx, slot)
	for _, b := range bookings {
		if b.Subject == subject {
			return true, nil
		}
	}
	return false, err
}

func scanBookings(rows *sql.Rows) ([]Booking, error) {
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	if len(columns) != 2 && len(columns) != 3 {
		return nil, fmt.Errorf("gives %d columns: want id, subject and, if there is a third, when it was made", len(columns))
	}
	var bookings []Booking
	var id, subject, at any
	into := []any{&id, &subject, &at}[:len(columns)]
	for rows.Next() {
		if len(bookings) == maxBookings {
			return nil, fmt.Errorf("gives more than %d bookings of one slot", maxBookings)
		}
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		made, err := moment(at)
		if err != nil {
			return nil, err
		}
		bookings = append(bookings, Booking{ID: spelling(id), Subject: spelling(subject), At: made})
	}
	return bookings, rows.Err()
}

// spelling is a column's value as the API would write it; NULL is empty.
func spelling(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case []byte:
		return string(v)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return fmt.Sprint(value)
}

// moments are the ways in which databases without a type for it write a time.
var moments = []string{
	time.RFC3339Nano, "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999", "2006-01-02",
}

// moment reads a column's value as a time: text without a zone as UTC, a number as
// Unix seconds. NULL is the zero time.
func moment(value any) (time.Time, error) {
	var text string
	switch v := value.(type) {
	case nil:
		return time.Time{}, nil
	case time.Time:
		return v, nil
	case int64:
		return time.Unix(v, 0), nil
	case []byte:
		text = string(v)
	case string:
		text = v
	}
	for _, layout := range moments {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("the third column, when a booking was made, has %.40q, which is no time", fmt.Sprint(printable(value)))
}
