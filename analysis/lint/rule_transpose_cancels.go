package lint

import (
	"dmir/dialect/ir"
	"dmir/dialect/pattern"
	"dmir/syntax/diag"
)

var _ = register(&Rule{
	Code: "DM203", Name: "transpose-cancels", Severity: diag.Warning, Fix: Safe,
	Summary:  "two consecutive transposes cancel out",
	Compiler: "cancels transposes",
	Python:   "leave out both transposes, or give layers the layout that the values have: dimension_numbers in JAX, .to(memory_format=torch.channels_last) in PyTorch",
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
			first := pattern.Undone(o)
			if first == nil || c.entry(o) == nil {
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
				Fix:     &diag.Fix{Title: replaceTitle(o.Results[0], origin), Edits: edits},
			})
		})
	},
})
