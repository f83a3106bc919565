package lint

import (
	"slices"

	"dmir/analysis/cost"
	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/origin"
	"dmir/syntax/ast"
	"dmir/syntax/diag"
)

var _ = register(&Rule{
	Code: "DM205", Name: "broadcast-written-out", Severity: diag.Warning, Fix: Safe,
	Summary: "a broadcast is written to memory for ops that broadcast implicitly",
	Doc: `## What it does
Finds a ` + "`dm.broadcast`" + ` along leading dimensions whose result only element-wise ops use, which would broadcast the
small operand themselves.

## Why it matters
The broadcast writes every copy of the value and each user reads every copy; an element-wise op reads the small operand
once, at its own size.

## Example
` + "```mlir" + `
%w = dm.broadcast %b, dims = [2] : (tensor<4096xf16>) -> tensor<8x512x4096xf16>
%y = dm.add %h, %w : tensor<8x512x4096xf16>
` + "```" + `
becomes
` + "```mlir" + `
%y = dm.add %h, %b : (tensor<8x512x4096xf16>, tensor<4096xf16>) -> tensor<8x512x4096xf16>
` + "```" + `

## Fix
Safe: the same values.
`,
	Check: func(c *Context) {
		c.ops(func(b *ir.Op) {
			if b.Name != "dm.broadcast" || c.entry(b) == nil || !trailing(b) || len(b.Results[0].Uses) == 0 {
				return
			}
			users, ok := c.broadcastUsers(b)
			if !ok {
				return
			}
			origin := b.Operands[0]
			edits := c.remove(b)
			removed, added := c.entries(b), []*cost.Entry(nil)
			for _, u := range users {
				now := map[*ir.Value]*ir.Value{b.Results[0]: origin}
				removed, added = append(removed, c.entry(u)), append(added, cost.Replaced(c.Fn, c.Module, c.Bind, u, now))
				edits = append(edits, c.readInstead(u, b.Results[0], origin)...)
			}
			c.Report(Finding{
				Op:      b,
				Message: "this broadcast is written to memory, but the ops that use it broadcast implicitly",
				Label:   "written to memory here",
				Saving:  c.saving(removed, added),
				Fix:     &diag.Fix{Title: "Use " + spelling(origin) + " directly", Edits: edits},
			})
		})
	},
})

// trailing reports whether b broadcasts as NumPy would by itself: its operand's
// dimensions are the last ones of the result.
func trailing(b *ir.Op) bool {
	in, out := b.In(0), b.Out(0)
	if in == nil || out == nil {
		return false
	}
	if b.Attr("dims") == nil {
		return true
	}
	dims := op.Ints(b, "dims")
	if len(dims) != in.Rank() {
		return false
	}
	for i, d := range dims {
		if d != int64(out.Rank()-in.Rank()+i) {
			return false
		}
	}
	return true
}

// broadcastUsers lists the users of b once each; ok is false when one of them
// does not broadcast, or would give another shape without b.
func (c *Context) broadcastUsers(b *ir.Op) (users []*ir.Op, ok bool) {
	seen := map[*ir.Op]bool{}
	for _, u := range b.Results[0].Uses {
		o := u.Op
		if seen[o] {
			continue
		}
		seen[o] = true
		if c.entry(o) == nil || !op.Of(o).Is(op.Pointwise) || len(o.Operands) < 2 || origin.Tree(o) == nil || origin.Tree(o).Form != ast.Pretty || origin.Tree(o).Sig.Empty() {
			return nil, false
		}
		if !fullShapeWithout(o, b.Results[0]) {
			return nil, false
		}
		users = append(users, o)
	}
	return users, true
}

// fullShapeWithout reports whether the operands of o other than v give its
// result's shape already.
func fullShapeWithout(o *ir.Op, v *ir.Value) bool {
	out := o.Out(0)
	for _, w := range o.Operands {
		if t := w.Tensor(); w != v && t != nil && out != nil && slices.EqualFunc(t.Shape, out.Shape, dim.Dim.Equal) {
			return true
		}
	}
	return false
}
