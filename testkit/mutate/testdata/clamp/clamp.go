// Package clamp is a package to plant mutants in.
package clamp

// Low is the first number from the list that is less than limit, or limit; the rest of a row behind a
// negative or a large number does not count.
func Low(list [][]int, limit int) int {
outer:
	for _, row := range list {
		for _, n := range row {
			if n < 0 {
				continue outer
			}
			if n > 100 {
				continue outer
			}
			if n < limit {
				return n
			}
		}
	}
	return limit
}

// Unused is called by no test.
func Unused(a, b int) int { return a - b }
