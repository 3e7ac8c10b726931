// Package gate is the journey of one gated request. Gate.Serve reads from top to
// bottom as the journey goes:
//
//	match → read → extract → decide (one store call) → forward → classify →
//	settle (one store call) → answer
//
// with side rooms for waiting (a twin is running, the slot is full of requests)
// and for going on without the store. A request of a rule in shadow does not go this
// way: it passes the gate by, and Shadow goes beside it. It knows neither fasthttp nor Redis: the
// edge hands in a Request and writes the Reply, the Backend forwards, the
// store.Store decides.
//
// # Clock
//
// Assumption A2: a gate sends the first byte to the backend only while a monotonic
// clock, started before decide was sent, leaves the upstream time-out and a
// settlement of the lease. If not, the attempt is settled as never sent and
// decided again.
package gate
