package attribution

import (
	"fmt"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
)

// MapLines gives for each line of old, from 1, where it is in text, from 1; 0 for a line that has changed or is gone. Element 0
// is 0.
func MapLines(old, text []string) []int {
	to := make([]int, len(old)+1)
	join := func(lines []string) []byte { return []byte(strings.Join(lines, "\n") + "\n") }
	hunks := string(diff.Diff("old", join(old), "new", join(text)))
	at, shift := 1, 0 // the next line of old, and how far it has moved
	upTo := func(end int) {
		for ; at < end && at < len(to); at++ {
			to[at] = at + shift
		}
	}
	started := false
	for line := range strings.Lines(hunks) {
		switch {
		case strings.HasPrefix(line, "@@ "):
			var from, n int
			if _, err := fmt.Sscanf(line, "@@ -%d,%d", &from, &n); err == nil {
				started = true
				if n == 0 {
					from++ // an empty piece is behind the line that it names
				}
				upTo(from)
			}
		case !started:
		case line[0] == '-':
			at++
			shift--
		case line[0] == '+':
			shift++
		case line[0] == ' ':
			upTo(at + 1)
		}
	}
	upTo(len(to))
	return to
}
