package main

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/slotgate/slotgate/cmd/legacybooking/booking"
)

// servedSeats is few, so that a person at a keyboard sells a lesson out.
const servedSeats = 2

// serve keeps a gate in front of a fresh API with constraints until ctx ends.
func (d *demo) serve(ctx context.Context) error {
	s, err := openStage(ctx, booking.Options{
		Style: booking.Naive, Lessons: d.size.lessons, Seats: servedSeats,
		Log: slog.New(slog.NewTextHandler(d.stderr, nil)),
	})
	if err != nil {
		return err
	}
	if err := s.addGate(servedSeats, nil); err != nil {
		_ = s.close()
		return err
	}
	fmt.Fprintf(d.stdout, `
Serving %[1]d lessons of %[2]d seats, with constraints, until Ctrl-C

  gate     %[3]s
  backend  %[4]s
  admin    %[5]s

Book; the same again is replayed; another student and key, until it is sold out:
  curl -i %[3]s/api/lessons/1/bookings -H 'Content-Type: application/json' \
    -H 'Idempotency-Key: press-0000000001' -d '{"student_id":"ann"}'
What the database says, and what the gate counts:
  curl %[4]s/api/lessons/1
  curl %[5]s/v1/slots/lessons/1
`, d.size.lessons, servedSeats, s.gate.url, s.url, s.gate.admin)
	<-ctx.Done()
	return s.close()
}
