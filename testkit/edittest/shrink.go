package edittest

import (
	"slices"
	"strings"
	"time"
)

// Shrink makes a case that fails smaller as long as it fails: fewer steps,
// fewer edits, less text typed, less text to begin with. fails must be a
// function of its arguments. It ends after patience with the smallest so far.
func Shrink(base string, steps []Step, fails func(string, []Step) bool, patience time.Duration) (string, []Step) {
	end := time.Now().Add(patience)
	broke := func(base string, steps []Step) bool { return time.Now().Before(end) && fails(base, steps) }
	for again := true; again && time.Now().Before(end); {
		again = false
		smaller := reduce(steps, func(s []Step) bool { return broke(base, s) })
		if len(smaller) < len(steps) {
			steps, again = smaller, true
		}
		for i := range steps {
			with := func(edits []Edit) []Step {
				out := slices.Clone(steps)
				out[i].Edits = edits
				return out
			}
			if edits := reduce(steps[i].Edits, func(e []Edit) bool { return broke(base, with(e)) }); len(edits) < len(steps[i].Edits) {
				steps, again = with(edits), true
			}
			if steps[i].Whole {
				continue
			}
			for k := range steps[i].Edits {
				shorter := func(parts []string) []Step {
					edits := slices.Clone(steps[i].Edits)
					edits[k].Text = strings.Join(parts, "")
					return with(edits)
				}
				parts := strings.SplitAfter(steps[i].Edits[k].Text, "\n")
				if len(parts) == 1 {
					parts = strings.Split(parts[0], "")
				}
				if less := reduce(parts, func(p []string) bool { return broke(base, shorter(p)) }); len(less) < len(parts) {
					steps, again = shorter(less), true
				}
			}
		}
		// Removing a line shifts later positions, so the edits are shifted too.
		for at := 0; at < len(base) && time.Now().Before(end); {
			n := strings.IndexByte(base[at:], '\n') + 1
			if n == 0 {
				n = len(base) - at
			}
			less, moved := base[:at]+base[at+n:], shift(steps, at, n)
			switch {
			case broke(less, moved):
				base, steps, again = less, moved, true
			case broke(less, steps):
				base, again = less, true
			default:
				at += n
			}
		}
	}
	return base, steps
}

// shift moves the places behind at by n bytes toward the front; good enough for
// the edits before the first that changes where things are.
func shift(steps []Step, at, n int) []Step {
	out := slices.Clone(steps)
	for i := range out {
		out[i].Edits = slices.Clone(out[i].Edits)
		for k := range out[i].Edits {
			e := &out[i].Edits[k]
			if e.Start >= at+n {
				e.Start -= n
			}
			if e.End >= at+n {
				e.End -= n
			}
		}
	}
	return out
}

// reduce leaves out parts of a list, large ones first, as long as ok holds.
func reduce[T any](list []T, ok func([]T) bool) []T {
	for size := (len(list) + 1) / 2; size > 0; size /= 2 {
		for at := 0; at < len(list); {
			end := min(at+size, len(list))
			if less := slices.Concat(list[:at], list[end:]); ok(less) {
				list = less
			} else {
				at = end
			}
		}
	}
	return list
}
