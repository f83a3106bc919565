package diag

import "fmt"

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
