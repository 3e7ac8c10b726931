// Package compare runs the gate and its peers under the same load and sets their
// figures side by side.
//
// A Scenario is one kind of traffic, a Contender something that serves it. A round
// takes each contender of each scenario once, in an order that moves on by one with
// each round, with fresh processes and an empty store. What counts is the ratio of
// medians within one run: contenders, load and backend share the machine's cores, so
// figures of two machines, or of two runs, say nothing about each other.
//
// A measurement during which foreign processes took more CPU than Options.Foreign is
// discarded and repeated in a later round.
package compare
