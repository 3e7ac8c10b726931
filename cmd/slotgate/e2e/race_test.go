//go:build race

package e2e

// buildFlags: the program is built like its tests.
var buildFlags = []string{"-race"}

// rssGrowth bounds what 10,000 slots, subjects and keys may add to the process; the
// race detector multiplies it.
const rssGrowth = 512 << 20
