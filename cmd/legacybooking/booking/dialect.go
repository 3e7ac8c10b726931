package booking

import "context"

// returning is SQL as PostgreSQL and SQLite share it.
type returning struct{}

func (returning) bind(query string, args []any) (string, []any) { return query, args }

func (returning) addLesson() string {
	return "INSERT INTO lesson_slot (slot_id, remain) VALUES ($1, $2) ON CONFLICT (slot_id) DO NOTHING"
}

func (returning) insert(ctx context.Context, s statements, query string, args []any) (id int64, err error) {
	_, err = s.row(ctx, query+" RETURNING id", args, &id)
	return id, err
}
