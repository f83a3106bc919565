package refactor_test

import (
	"regexp"
	"strconv"
	"testing"
)

var large = regexp.MustCompile(`tensor<[0-9?x]+|\[[0-9, ]+\]`)

var number = regexp.MustCompile(`[0-9]+`)

// shrink makes the large dimensions of a text a 64th, so that it runs quickly.
func shrink(text string) string {
	return large.ReplaceAllStringFunc(text, func(s string) string {
		return number.ReplaceAllStringFunc(s, func(s string) string {
			n, _ := strconv.Atoi(s)
			if n >= 512 && n%64 == 0 {
				n /= 64
			}
			return strconv.Itoa(n)
		})
	})
}

// small is text with small sizes, where it is right with them.
func small(t *testing.T, text string) string {
	t.Helper()
	if s := shrink(text); len(errorsIn(load(t, s, nil))) == 0 {
		return s
	}
	return text
}
