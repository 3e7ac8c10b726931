// Package stage is what tests of the whole product share: the built slotgate
// program as a process (Gate), the sample legacy API over a real database
// (Backend), configurations, clients and storms of them.
//
// Everything listens on 127.0.0.1 and ends with the test. Methods that can fail
// the test must be called from the test's own goroutine, as testing.T asks.
package stage
