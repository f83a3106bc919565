package op_test

import (
	"strings"
	"testing"

	"dmir/dialect/ir"
	"dmir/dialect/op"
)

// Whether two values store the same elements is found by one look at each value that they are
// made of, however many ways lead to it.
func TestSamePattern(t *testing.T) {
	const csr = "=tensor<8x6xf32,#dm.csr<nnz=e>>"
	chain := func(n int, from *ir.Value) *ir.Value {
		for range n {
			u := build(t, "tanh", csr, "", csr)
			u.Operands[0] = from
			o := build(t, "add", strings.Repeat(csr+" ", 2), "", csr)
			o.Operands[0], o.Operands[1] = from, u.Results[0]
			from = o.Results[0]
		}
		return from
	}
	start := &ir.Value{Type: tensorOf(t, csr)}
	other := &ir.Value{Type: tensorOf(t, csr)}
	for _, n := range []int{1, 10, 100, 400} {
		end := chain(n, start)
		if !op.SamePattern(end, start) || op.SamePattern(end, other) {
			t.Errorf("%d ops: the pattern is lost", n)
		}
		if visits := op.PatternVisits(end, start); visits > 2*n+1 {
			t.Errorf("%d ops: %d values are visited", n, visits)
		}
	}
}
