package lint

import (
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/pattern"
	"dmir/syntax/diag"
)

var _ = register(&Rule{
	Code: "DM208", Name: "moves-nothing-new", Severity: diag.Warning, Fix: Safe,
	Summary:  "this op moves data and returns its operand unchanged",
	Compiler: "leaves such ops out",
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
			origin := pattern.Unchanged(o)
			if origin == nil || c.entry(o) == nil || op.Of(o).Is(op.View) { // a view moves nothing
				return
			}
			saving, edits, ok := c.replacement(o, []*ir.Value{origin}, o)
			if !ok {
				return
			}
			c.Report(Finding{
				Op:      o,
				Message: "this op returns " + spelling(origin) + " unchanged",
				Label:   "equal to " + spelling(origin),
				Saving:  saving,
				Fix:     &diag.Fix{Title: replaceTitle(o.Results[0], origin), Edits: edits},
			})
		})
	},
})
