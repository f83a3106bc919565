package lint

import (
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/syntax/diag"
)

var _ = register(&Rule{
	Code: "DM203", Name: "transpose-cancels", Severity: diag.Warning, Fix: Safe,
	Summary: "two consecutive transposes cancel out",
	Doc: `## What it does
Finds a ` + "`dm.transpose`" + ` of a ` + "`dm.transpose`" + ` (or a ` + "`dm.reverse`" + ` of the same ` + "`dm.reverse`" + `)
whose composition is the identity.

## Why it matters
Each of them reads and writes the whole value, and together they compute nothing.

## Example
` + "```mlir" + `
%a = dm.transpose %x, dims = [1, 0] : (tensor<512x64xf16>) -> tensor<64x512xf16>
%b = dm.transpose %a, dims = [1, 0] : (tensor<64x512xf16>) -> tensor<512x64xf16>
` + "```" + `
Use ` + "`%x`" + ` wherever ` + "`%b`" + ` is used.

## Fix
Safe: values keep their bits. The first op goes too when nothing else uses it.
`,
	Check: func(c *Context) {
		c.ops(func(o *ir.Op) {
			first, cancels := cancels(o)
			if !cancels || c.entry(o) == nil {
				return
			}
			origin := first.Operands[0]
			gone := []*ir.Op{o}
			if len(first.Results[0].Uses) == 1 && c.entry(first) != nil {
				gone = append(gone, first)
			}
			saving, edits, ok := c.replacement(o, []*ir.Value{origin}, gone...)
			if !ok {
				return
			}
			c.Report(Finding{
				Op:      o,
				Message: "this undoes the " + first.Name[len("dm."):] + " above",
				Label:   "equal to " + spelling(origin),
				Saving:  saving,
				Related: []diag.Related{{Span: place(first), Message: "undone by the later op"}},
				Fix:     &diag.Fix{Title: "Use " + spelling(origin) + " instead", Edits: edits},
			})
		})
	},
})

// cancels reports whether o undoes the op that made its operand.
func cancels(o *ir.Op) (first *ir.Op, ok bool) {
	if (o.Name != "dm.transpose" && o.Name != "dm.reverse") || len(o.Operands) != 1 {
		return nil, false
	}
	first = o.Operands[0].Op
	if first == nil || first.Name != o.Name || len(first.Operands) != 1 || len(o.Results) != 1 {
		return nil, false
	}
	if !typesEqual(o.Results[0], first.Operands[0]) {
		return nil, false
	}
	p, q := op.Ints(o, "dims"), op.Ints(first, "dims")
	if o.Name == "dm.reverse" {
		return first, slices.Equal(slices.Sorted(slices.Values(p)), slices.Sorted(slices.Values(q)))
	}
	return first, isIdentity(compose(p, q))
}

// compose is the permutation that transposing by q and then by p makes:
// dimension i of the result is dimension q[p[i]] of the origin.
func compose(p, q []int64) []int64 {
	r := make([]int64, len(p))
	for i, d := range p {
		if d < 0 || d >= int64(len(q)) {
			return nil
		}
		r[i] = q[d]
	}
	return r
}

func isIdentity(p []int64) bool {
	for i, d := range p {
		if d != int64(i) {
			return false
		}
	}
	return p != nil
}
