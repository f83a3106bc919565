package lint

import (
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/syntax/diag"
)

var _ = register(&Rule{
	Code: "DM208", Name: "moves-nothing-new", Severity: diag.Warning, Fix: Safe,
	Summary: "this op moves data and returns its operand unchanged",
	Doc: `## What it does
Finds movement ops that copy their operand as it is: a transpose with the identity permutation, a slice of everything,
a broadcast or copy to the same type and placement, a concatenation of one operand, a pad by nothing, a convert to the
same type.

## Why it matters
They read and write the whole value and change nothing.

## Example
` + "```mlir" + `
%a = dm.transpose %x, dims = [0, 1] : (tensor<512x64xf16>) -> tensor<512x64xf16>
` + "```" + `

## Fix
Safe: the operand is used in its place.
`,
	Check: func(c *Context) {
		c.ops(func(o *ir.Op) {
			if c.entry(o) == nil || !identity(o) {
				return
			}
			origin := o.Operands[0]
			saving, edits, ok := c.replacement(o, []*ir.Value{origin}, o)
			if !ok {
				return
			}
			c.Report(Finding{
				Op:      o,
				Message: "this op returns " + spelling(origin) + " unchanged",
				Label:   "equal to " + spelling(origin),
				Saving:  saving,
				Fix:     &diag.Fix{Title: "Use " + spelling(origin) + " instead", Edits: edits},
			})
		})
	},
})

// identity reports whether o's one result is its one tensor operand.
func identity(o *ir.Op) bool {
	if len(o.Results) != 1 || len(o.Operands) == 0 || !typesEqual(o.Results[0], o.Operands[0]) {
		return false
	}
	switch o.Name {
	case "dm.transpose":
		return isIdentity(op.Ints(o, "dims"))
	case "dm.convert", "dm.copy", "dm.broadcast", "dm.concatenate":
		return len(o.Operands) == 1
	case "dm.slice":
		return len(o.Operands) == 1 && !slices.ContainsFunc(op.Ints(o, "start_indices"), nonZero)
	case "dm.pad":
		return !slices.ContainsFunc(slices.Concat(op.Ints(o, "low"), op.Ints(o, "high"), op.Ints(o, "interior")), nonZero)
	}
	return false
}

func nonZero(n int64) bool { return n != 0 }
