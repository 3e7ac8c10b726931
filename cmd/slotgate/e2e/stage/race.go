//go:build race

package stage

// Race tells whether tests and program run under the race detector.
const Race = true
