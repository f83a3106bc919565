package refactor_test

import (
	"regexp"
	"strconv"
)

var large = regexp.MustCompile(`tensor<[0-9?x]+|\[[0-9, ]+\]`)

var number = regexp.MustCompile(`[0-9]+`)

// shrink makes the large dimensions of a text a 64th, so that it runs quickly.
func shrink(text string) string {
	return large.ReplaceAllStringFunc(text, func(s string) string {
		return number.ReplaceAllStringFunc(s, func(s string) string {
			n, _ := strconv.Atoi(s)
			if n >= 128 && n%64 == 0 {
				n /= 64
			}
			return strconv.Itoa(n)
		})
	})
}
