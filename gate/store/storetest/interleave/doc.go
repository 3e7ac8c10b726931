// Package interleave checks stores exhaustively on small cases: a few requests of
// one slot through two gates, a backend that does what it was asked when it likes,
// or never, and everything that can go wrong between them, in every order.
//
// It is the design's checked models with the store itself in place of the modelled
// one: the world (the requests, what the backend has booked, what is still on the
// wire) is a small value here, the store's part is a real store, which is put back
// into any state that was found before (Rig). Explore goes breadth first over the
// pairs of both, so that a broken promise comes with one of its shortest traces.
//
//	Bookings   requests that book and cancel, retries of one key, replies that are
//	           lost, copies that come late, gates that die, holds that lapse
//	           and, with Steps, calls whose steps others come between, as on a cluster
//	Outages    a store that is away and comes back, with its data, with a replica's
//	           or with none, behind a pool that has truth
//
// After each step every promise of the design that can be told from outside is
// checked against the world, which knows what really happened (P1 to P4, T1, T2), and
// where everything has come to rest, whether store and truth agree (A1 to A4).
//
// Time moves in ticks, and nothing that a store times ends on one: the two are half a
// tick apart.
package interleave
