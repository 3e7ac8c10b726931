//go:build !linux

package edge

// pollGone is nothing elsewhere: only a connection that is closed both ways is
// noticed.
const pollGone = 0
