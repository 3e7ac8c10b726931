//go:build !race

package edge

const raceGarbage = 0
