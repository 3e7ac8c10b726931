package booking

import (
	"context"
	"slices"
	"testing"
)

func TestSalesShowWhatWentWrong(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, database string) {
		// Two requests of one student are both past their read before either writes.
		both := make(chan struct{})
		arrived := make(chan struct{}, 2)
		s := open(t, Options{Database: database, NoConstraints: true, Lessons: 2, Seats: 1, BeforeWrite: func() {
			arrived <- struct{}{}
			<-both
		}})
		answers := make(chan reply, 2)
		for range 2 {
			go func() { answers <- book(t, s, 2, "ann") }()
		}
		for range 2 {
			<-arrived
		}
		close(both)
		for range 2 {
			(<-answers).wants(t, 201, "")
		}
		before := s.Stats()
		got, err := s.Sales(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		want := []Sale{{Lesson: 1, Remain: 1}, {Lesson: 2, Remain: -1, Seats: 2, Bookings: 2, Students: 1}}
		if !slices.Equal(got, want) {
			t.Errorf("sales are %+v, want %+v", got, want)
		}
		if s.Stats().Statements != before.Statements {
			t.Error("the instrument counts itself")
		}
	})
}

func TestSalesEndWithTheirContext(t *testing.T) {
	s := open(t, Options{Lessons: 1})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if sales, err := s.Sales(ended); err == nil {
		t.Errorf("read %+v", sales)
	}
}
