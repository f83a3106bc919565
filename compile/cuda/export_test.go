package cuda

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"dmir/compile/suite"
	"dmir/testkit/need"
)

// Turn is need.Turn for cases that a recording has all of.
func Turn(t *testing.T, i, n int) bool {
	t.Helper()
	_, _, recorded := suite.Recording()
	return recorded || need.Turn(t, i, n)
}

// FormText is a function whose body is one kernel.
type FormText struct{ Name, Text string }

// Forms are functions of every form of kernel, and of the largest tiles.
func Forms() (out []FormText) {
	for _, c := range slices.Concat(planned, large) {
		values, kinds, _ := strings.Cut(c.results, " : ")
		out = append(out, FormText{c.name, fmt.Sprintf("func.func @f(%s) -> (%s) {\n%s\nreturn %s : %s\n}\n", c.args, kinds, c.body, values, kinds)})
	}
	return out
}
