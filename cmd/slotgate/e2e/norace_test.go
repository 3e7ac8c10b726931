//go:build !race

package e2e

var buildFlags []string

// rssGrowth bounds what 10,000 slots, subjects and keys may add to the process.
const rssGrowth = 64 << 20
