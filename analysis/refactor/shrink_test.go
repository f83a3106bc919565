package refactor_test

import (
	"regexp"
	"strconv"
	"testing"
)

var large = regexp.MustCompile(`tensor<[0-9?x]+|\[[0-9, ]+\]`)

var number = regexp.MustCompile(`[0-9]+`)

// shrink makes the dimensions of a text that are multiples of least a by-th.
func shrink(text string, least, by int) string {
	return large.ReplaceAllStringFunc(text, func(s string) string {
		return number.ReplaceAllStringFunc(s, func(s string) string {
			if n, _ := strconv.Atoi(s); n > 0 && n%least == 0 {
				return strconv.Itoa(n / by)
			}
			return s
		})
	})
}

// small is text with small sizes, so that it runs quickly: the smallest with which it is right.
func small(t *testing.T, text string) string {
	t.Helper()
	for _, least := range []int{64, 128, 256, 512} {
		if s := shrink(text, least, min(64, least/2)); len(errorsIn(load(t, s, nil))) == 0 {
			return s
		}
	}
	return text
}
