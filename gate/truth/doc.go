// Package truth keeps a pool's counters after the backend's own data (design
// section 5), and says where the two differ.
//
// A Pool serves one pool that names a source. Everything it does is made of looks:
// store.Look, then a read of the source, then store.Apply. The arithmetic, and with
// it the safety, is in the store's Apply: looks may overlap, be late or be lost, by
// any number of gates. What is here only decides when to look, and is free to be
// wrong about that.
//
// # Loads
//
// A Load is a look that requests wait for. In a process there is one of a slot at a
// time, whoever asks; between gates the store's look lease lets one read and the
// others wait for the slot's watch. A source that does not tell within the time-out
// leaves the slot learned, never unlimited. A slot that the source does not have is
// remembered as missing for `hot`, for at most maxMissing slots.
//
// # Sweeps
//
// The gate that leads the pool takes the slots that are due from the store and looks
// at each. The lead is a lock with a lease in the store; Options.Lease is the longest
// that a pool is without a leader after one was killed. A look of the leader carries
// its fence. A leader that stood still past its lease stops when it notices, before
// the apply; an apply that is on its way already is refused by the fence where a new
// leader has looked at the slot since, and is harmless where none has.
//
// # Pace
//
// max_rate holds for reads of the source by all gates together: a token is a limit
// in the store, as a subject limit is (GCRA). Loads may use one period's tokens at
// once, sweeps, probes and reports a quarter of them, so that requests that wait go
// first. While the store is away nothing is read.
//
// # After a look
//
// Drift is what looks had to change; debt is units by which a slot is oversold. Where
// bookings can be listed and a look found more units than the counters knew, some
// were given back behind the gate: confirmed holds whose subject is no longer in the
// list are released, which moves no units, so that their subject may book again.
//
// # Probe
//
// A Prober looks for unanswered bookings in truth. Present: booked, at once. Absent:
// refused, but only when the backend's time to commit (A1) is over.
//
// # Reports
//
// Reconcile compares the store with truth and can repair the store; Audit looks for
// damage in truth itself and never writes anywhere. Both read pages of the store's
// slots and one slot at a time of the source, at a bounded rate. What does not agree
// is looked at again until it was compared at rest, so that traffic is not reported
// as damage. The gate that leads a pool runs both at the time of `report`.
package truth
