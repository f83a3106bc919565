package diag

import (
	"fmt"
	"strings"
)

// Count is a number of things as messages write it: "no results", "1 result",
// "2 results".
func Count(n int, thing string) string {
	switch n {
	case 0:
		return "no " + thing + "s"
	case 1:
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// CountAre is Count with its verb: "1 result is", "2 results are".
func CountAre(n int, thing string) string {
	if n == 1 {
		return Count(n, thing) + " is"
	}
	return Count(n, thing) + " are"
}

// List is a list as messages write it: "a", "a and b", "a, b and c"; "" for none.
func List(all []string) string {
	if len(all) < 2 {
		return strings.Join(all, "")
	}
	last := len(all) - 1
	return strings.Join(all[:last], ", ") + " and " + all[last]
}
