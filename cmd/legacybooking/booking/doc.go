// Package booking is a small booking API of the kind that cannot be changed: a
// table of lessons with the seats left in each, a table of bookings, and one of
// four common ways to take a seat. It is what a gate is put in front of, and
// what it is measured against.
//
// How a seat is taken is the Style:
//
//	naive        read the seats left, decide in the application, write
//	conditional  UPDATE … SET remain = remain - 1 WHERE remain > 0
//	optimistic   as naive, but the write names the version that was read; three tries
//	rowlock      SELECT … FOR UPDATE, decide, write
//
// With its constraints (CHECK remain >= 0, UNIQUE slot and student) the
// database refuses what the naive style gets wrong. Without them the naive
// style sells seats twice and books students twice as soon as two requests
// meet. The other styles hold the row or its version while they decide, so
// they stay right, and pay in lock waits or retries, which Stats counts.
//
// Work once begun is finished even if the client leaves: transactions are not
// tied to the request's context, as in most servers of this kind.
package booking
