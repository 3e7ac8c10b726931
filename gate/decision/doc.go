// Package decision is the vocabulary of the gate and the pure step from a store's
// verdict to the answer a client gets. It does no I/O and takes no clock.
//
// A store says a Verdict (what the atomic script found), the journey turns it
// into a Decision (the word in Gate-Decision), and a Decision has a status, a
// title and a retry rule. Holds pass through HoldState; the transitions are in
// the package documentation of gate/store.
package decision
