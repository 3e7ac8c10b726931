//go:build !race

package rules

const raceGarbage = 0
