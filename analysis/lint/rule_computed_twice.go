package lint

import (
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/pattern"
	"dmir/syntax/diag"
)

var _ = register(&Rule{
	Code: "DM206", Name: "computed-twice", Severity: diag.Warning, Fix: Safe,
	Summary:  "the same op on the same operands has been computed before",
	Compiler: "computes equal ops once",
	Python:   "compute it once and use the variable twice; of a derivative that computes again what the forward pass has, nothing is to be done",
	Doc: `## What it does
Finds an op without side effects whose name, operands, attributes and types are those of an earlier op
that is visible from it. Random ops count as equal when their seeds are.

## Why it matters
The second one moves and computes everything again for a value that is already there.

## Example
` + "```mlir" + `
%a = dm.exp %x : tensor<512x64xf16>
%b = dm.exp %x : tensor<512x64xf16>
` + "```" + `
Use ` + "`%a`" + ` for both.

## Fix
Safe: values keep their bits. It trades movement for a longer life of the first value.
`,
	Check: func(c *Context) { pattern.Repeated(c.Fn.Body, c.worthSharing, c.duplicate) },
})

// worthSharing reports whether computing o twice is worth a finding. A scalar
// constant costs less than the line that shares it, a copy is made to be had
// twice, and what control flow or a kernel costs is counted in its regions.
func (c *Context) worthSharing(o *ir.Op) bool {
	if c.ctx.Err() != nil || o.Bad || o.Name == "dm.copy" || op.Of(o) != nil && op.Of(o).Is(op.Collective) || len(o.Regions) > 0 && !op.Of(o).Is(op.Isolated) {
		return false
	}
	t := o.Out(0)
	return len(o.Operands) > 0 || t != nil && t.Rank() > 0
}

func (c *Context) duplicate(first, o *ir.Op) {
	if c.entry(o) == nil {
		return
	}
	saving, edits, ok := c.replacement(o, first.Results, o)
	if !ok {
		return
	}
	name := spelling(first.Results[0])
	c.Report(Finding{
		Op:      o,
		Message: "this computes " + name + " again",
		Label:   "equal to " + name,
		Saving:  saving,
		Related: []diag.Related{{Span: place(first), Message: "computed here first"}},
		Fix:     &diag.Fix{Title: replaceTitle(o.Results[0], first.Results[0]), Edits: edits},
	})
}
