package lint

import (
	"fmt"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/origin"
	"dmir/syntax/diag"
)

var _ = register(&Rule{
	Code: "DM217", Name: "reduced-before-adding", Severity: diag.Warning, Fix: Unsafe,
	Summary: "two partial sums are reduced over devices before they are added",
	Doc: `## What it does
Finds a ` + "`dm.add`" + ` or a ` + "`dm.sub`" + ` of two values, in a function that one device runs, each of which a ` + "`dm.all_reduce`" + ` or
a ` + "`dm.reduce_scatter`" + ` of the same kind has just given, for nothing else.

## Why it matters
The sum of partial sums is a partial sum: added first, they are reduced together, and the devices send half as much.

## Example
` + "```mlir" + `
%a = dm.all_reduce add %x, axes = ["model"] : tensor<8x8xf32>
%b = dm.all_reduce add %y, axes = ["model"] : tensor<8x8xf32>
%s = dm.add %a, %b : tensor<8x8xf32>
` + "```" + `
Add ` + "`%x`" + ` and ` + "`%y`" + `, then reduce.

## Fix
Unsafe: the parts are added in another order.
`,
	Check: func(c *Context) {
		if !op.PerDevice(c.Fn.Op) {
			return
		}
		c.ops(func(o *ir.Op) {
			if o.Name != "dm.add" && o.Name != "dm.sub" || !op.Valid(o) || kernelOf(o) != nil {
				return
			}
			a, b := o.Operands[0].Op, o.Operands[1].Op
			if a == nil || b == nil || a == b || !sameAttrs(a, b) || a.Parent != o.Parent || b.Parent != o.Parent ||
				a.Name != op.AllReduce && a.Name != op.ReduceScatter || op.Str(a, "reduction") != "add" ||
				len(a.Results[0].Uses) != 1 || len(b.Results[0].Uses) != 1 {
				return
			}
			if a.In(0).String() != b.In(0).String() || a.Out(0).String() != o.Out(0).String() || b.Out(0).String() != o.Out(0).String() {
				return
			}
			c.addFirst(o, a, b)
		})
	},
})

// addFirst reports that o adds what a and b reduce.
func (c *Context) addFirst(o, a, b *ir.Op) {
	t := origin.Tree(o)
	if t == nil || origin.Tree(a) == nil || origin.Tree(b) == nil {
		return
	}
	part := derived(spelling(o.Results[0]), "part", c.names())
	in := c.typeText(a.Operands[0])
	indent := c.Module.Src.Indent(t.Span().Start)
	dim := ""
	sig := in
	if a.Name == op.ReduceScatter {
		dim = fmt.Sprintf(", dim = %d", op.Int(a, "dim"))
		sig = "(" + in + ") -> " + c.typeText(a.Results[0])
	}
	text := fmt.Sprintf("%s = %s %s, %s : %s\n%s%s = %s add %s%s, axes = %s : %s", part, o.Name, spelling(a.Operands[0]), spelling(b.Operands[0]), in,
		indent, spelling(o.Results[0]), a.Name, part, dim, a.Attr("axes"), sig)
	edits := append([]diag.Edit{{Span: t.Span(), Text: text}}, c.remove(a)...)
	edits = append(edits, c.remove(b)...)
	c.Report(Finding{
		Op:      o,
		Message: fmt.Sprintf("%s and %s are reduced one by one, and then added", spelling(a.Operands[0]), spelling(b.Operands[0])),
		Label:   "one reduction of the sum is enough",
		Saving:  c.trial(edits),
		Tried:   true,
		Related: []diag.Related{{Span: place(a), Message: "reduced here"}, {Span: place(b), Message: "and here"}},
		Fix:     &diag.Fix{Title: "Add first, then reduce " + short(o.Results[0]), Edits: edits},
	})
}

// names are those that the function defines.
func (c *Context) names() map[string]bool {
	taken := map[string]bool{}
	for _, a := range c.Fn.Args {
		taken[a.Name] = true
	}
	ir.WalkValues(c.Fn.Body.Ops, func(v *ir.Value) { taken[v.Name] = true })
	return taken
}
