package rules

import (
	"fmt"
	"strings"
)

// didYouMean is ", did you mean X?" for the word nearest to what was written, or
// "" when none is near.
func didYouMean(written string, words []string) string {
	near, best := "", len(written)/3+2 // a third of the letters may be wrong
	for _, word := range words {
		if d := editDistance(strings.ToLower(written), strings.ToLower(word)); d < best {
			near, best = word, d
		}
	}
	if near == "" {
		return ""
	}
	return fmt.Sprintf(", did you mean %s?", near)
}

// editDistance counts the insertions, deletions, replacements and swaps of
// neighbours that turn a into b.
func editDistance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			replace := last[j-1]
			if a[i-1] != b[j-1] {
				replace++
			}
			row[j] = min(replace, last[j]+1, row[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
