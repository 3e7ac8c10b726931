// Package degrade is how the gate goes on without its store: a breaker around
// the store's calls, the limits of what is passed through meanwhile, and the
// settlements that wait for the store to come back. A store that comes back with
// other data is told again what it was told last.
package degrade
