package lint

import (
	"fmt"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/syntax/diag"
)

var _ = register(&Rule{
	Code: "DM214", Name: "exchanged-twice", Severity: diag.Warning, Fix: Safe,
	Summary: "devices exchange the same pieces of a value again",
	Doc: `## What it does
Finds a collective of a value, in a function that one device runs, that an earlier line has done already: the same op
with the same operand and axes, such as a second ` + "`dm.all_gather`" + ` of one value.

## Why it matters
The links between devices are the slowest there are. What one device has received it need not receive again, unless it
has no memory to keep it.

## Example
` + "```mlir" + `
%a = dm.all_gather %w, dim = 0, axes = ["data"] : (tensor<4x8xf32>) -> tensor<16x8xf32>
%b = dm.all_gather %w, dim = 0, axes = ["data"] : (tensor<4x8xf32>) -> tensor<16x8xf32>
` + "```" + `
Use ` + "`%a`" + ` for both.

## Fix
Safe: the first result is used. It stays in memory until its last use; a weight that is gathered twice on purpose, to
save that memory, can be marked with ` + "`// dmir: ignore[DM214]`" + `.
`,
	Check: func(c *Context) {
		first := map[*ir.Value][]*ir.Op{}
		c.collectives(func(o *ir.Op) {
			if len(o.Operands) != 1 || len(o.Results) != 1 {
				return
			}
			x := o.Operands[0]
			for _, was := range first[x] {
				if sameAttrs(was, o) && was.Results[0].Type.String() == o.Results[0].Type.String() && was.Parent == o.Parent {
					c.exchanged(was, o)
					return
				}
			}
			first[x] = append(first[x], o)
		})
	},
})

func (c *Context) exchanged(first, o *ir.Op) {
	edits, ok := replaceAll(o.Results[0], first.Results[0])
	if !ok {
		return
	}
	edits = append(edits, c.remove(o)...)
	what := "exchange"
	if o.Name == op.AllGather {
		what = "gather"
	}
	c.Report(Finding{
		Op:      o,
		Message: fmt.Sprintf("the devices %s %s again", what, spelling(o.Operands[0])),
		Label:   "already there as " + spelling(first.Results[0]),
		Saving:  c.trial(edits),
		Tried:   true,
		Related: []diag.Related{{Span: place(first), Message: "the first time"}},
		Fix:     &diag.Fix{Title: replaceTitle(o.Results[0], first.Results[0]), Edits: edits},
	})
}
