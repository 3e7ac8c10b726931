//go:build race

package rules

// raceGarbage is what the race detector adds to a count of allocations: pools forget
// then, on purpose, a part of what they are given.
const raceGarbage = 4
