package chaos

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

// TestChaos carries out the storms of the kept seeds and of a few more.
func TestChaos(t *testing.T) {
	for _, seed := range seedsToRun(t) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			p := draw(seed)
			defer func() {
				if t.Failed() {
					t.Logf("again with: SLOTGATE_SEED=%d go test -race -run 'TestChaos$' ./cmd/slotgate/e2e/chaos", seed)
				}
			}()
			build(t, p.setup, 1).run(t, p, 1)
		})
	}
}

// TestTheSameSeedDrawsTheSamePlan: a seed is all that is needed to have a storm again.
func TestTheSameSeedDrawsTheSamePlan(t *testing.T) {
	seen := map[string]uint64{}
	for seed := range uint64(200) {
		once, again := fmt.Sprintf("%v %v", draw(seed), draw(seed).clients), fmt.Sprintf("%v %v", draw(seed), draw(seed).clients)
		if once != again {
			t.Fatalf("seed %d draws two plans:\n%s\n%s", seed, once, again)
		}
		if other, found := seen[once]; found {
			t.Fatalf("seeds %d and %d draw one plan", other, seed)
		}
		seen[once] = seed
	}
}

// seedsToRun are those of SLOTGATE_SEED alone (7, or 7,20-39), or the kept ones and then
// SLOTGATE_SEEDS from 1 on: 3, and 200 under SLOTGATE_SOAK.
func seedsToRun(t *testing.T) (seeds []uint64) {
	t.Helper()
	if chosen := os.Getenv("SLOTGATE_SEED"); chosen != "" {
		for part := range strings.SplitSeq(chosen, ",") {
			first, last, isRange := strings.Cut(part, "-")
			if !isRange {
				last = first
			}
			for seed := number(t, "SLOTGATE_SEED", first); seed <= number(t, "SLOTGATE_SEED", last); seed++ {
				seeds = append(seeds, seed)
			}
		}
		return seeds
	}
	count := uint64(3)
	if os.Getenv("SLOTGATE_SOAK") != "" {
		count = 200
	}
	if text := os.Getenv("SLOTGATE_SEEDS"); text != "" {
		count = number(t, "SLOTGATE_SEEDS", text)
	}
	kept := keptSeeds(t)
	for seed := uint64(1); seed <= count; seed++ {
		kept = append(kept, seed)
	}
	return kept
}

// keptSeeds found a fault once: testdata/seeds.txt has one a line, with what it was.
func keptSeeds(t *testing.T) (seeds []uint64) {
	t.Helper()
	file, err := os.Open("testdata/seeds.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		line, _, _ := strings.Cut(lines.Text(), "#")
		if line = strings.TrimSpace(line); line != "" {
			seeds = append(seeds, number(t, "testdata/seeds.txt", line))
		}
	}
	return seeds
}

func number(t *testing.T, where, text string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %q is no number", where, text)
	}
	return n
}
