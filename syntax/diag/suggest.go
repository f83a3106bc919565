package diag

import (
	"slices"
	"strings"
)

// Suggest is the candidate that a misspelt word most likely meant, "" where
// none is near; see Near.
func Suggest(word string, candidates []string) string {
	if near := Near(word, candidates); len(near) > 0 {
		return near[0]
	}
	return ""
}

// Near are the candidates that a misspelt word may have meant, the nearest first: at
// most a third of the letters may differ, by insertion, deletion, replacement or
// a swap of neighbours, without regard to case. Equally near ones keep their order.
func Near(word string, candidates []string) []string {
	if len(word) > 64 {
		return nil
	}
	var near []string
	far := map[string]int{}
	lower := strings.ToLower(word)
	for _, c := range candidates {
		most := max(len(word), len(c)) / 3
		if c == word || len(c) > len(word)+most || len(word) > len(c)+most {
			continue
		}
		if d := distance(lower, strings.ToLower(c)); d < len(word) && d <= most {
			near, far[c] = append(near, c), d
		}
	}
	slices.SortStableFunc(near, func(a, b string) int { return far[a] - far[b] })
	return near
}

// distance is the number of insertions, deletions, replacements and swaps of
// neighbours between a and b.
func distance(a, b string) int {
	before, prev, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(row[j]+1, prev[j+1]+1, prev[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, prev, row = prev, row, before
	}
	return prev[len(b)]
}
