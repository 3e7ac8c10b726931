//go:build race

package edge

// raceGarbage is what the race detector adds to a count of allocations: pools forget
// then, on purpose, a part of what they are given.
const raceGarbage = 6
