package lint

import (
	"dmir/analysis/cost"
	"dmir/dialect/ir"
	"dmir/dialect/origin"
	"dmir/dialect/pattern"
	"dmir/syntax/ast"
	"dmir/syntax/diag"
)

var _ = register(&Rule{
	Code: "DM205", Name: "broadcast-written-out", Severity: diag.Warning, Fix: Safe,
	Summary:  "a broadcast is written to memory for ops that broadcast implicitly",
	Compiler: "leaves such broadcasts out",
	Python:   "leave out jnp.broadcast_to, .expand(…).contiguous() or a multiplication by ones: arithmetic broadcasts by itself",
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
			if b.Name != "dm.broadcast" || c.entry(b) == nil || len(b.Results[0].Uses) == 0 {
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
				Fix:     &diag.Fix{Title: replaceTitle(b.Results[0], origin), Edits: edits},
			})
		})
	},
})

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
		if c.entry(o) == nil || origin.Tree(o) == nil || origin.Tree(o).Form != ast.Pretty || origin.Tree(o).Sig.Empty() {
			return nil, false
		}
		if x, shape := pattern.WithoutBroadcast(o, b.Results[0]); x == nil || shape != nil {
			return nil, false
		}
		users = append(users, o)
	}
	return users, true
}
