package lint

import (
	"fmt"
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/syntax/diag"
)

var _ = register(&Rule{
	Code: "DM207", Name: "unused-value", Severity: diag.Warning, Fix: Safe,
	Summary:  "no result of this op is used",
	Compiler: "leaves out what is not used",
	Python:   "leave it out, or return it if it is meant to be a result",
	Doc: `## What it does
Finds an op without side effects, or a kernel, none of whose results is used.

## Why it matters
The bytes that it moves and the work that it does are wasted.

## Example
` + "```mlir" + `
%a = dm.exp %x : tensor<512x64xf16>   // nothing uses %a
` + "```" + `

## Fix
Safe: the op is removed, and with it the ops whose results only it used.
`,
	Check: func(c *Context) {
		c.ops(func(o *ir.Op) {
			if !removable(o) || used(o) || c.entry(o) == nil {
				return
			}
			gone := c.unusedWith(o)
			title := "Remove " + short(o.Results[0])
			if n := len(gone) - 1; n == 1 {
				title += " and " + short(gone[1].Results[0]) + ", which only it uses"
			} else if n > 1 {
				title += fmt.Sprintf(" and the %d ops that only it uses", n)
			}
			var edits []diag.Edit
			for _, g := range gone {
				edits = append(edits, c.remove(g)...)
			}
			c.Report(Finding{
				Op:      o,
				Message: "no result of this op is used",
				Label:   "unused",
				Tags:    []diag.Tag{diag.Unnecessary},
				Saving:  c.saving(c.entries(gone...), nil),
				Fix:     &diag.Fix{Title: title, Edits: edits},
			})
		})
	},
})

// unusedWith lists o and the ops that nothing uses any more when it is gone.
func (c *Context) unusedWith(o *ir.Op) []*ir.Op {
	gone := []*ir.Op{o}
	in := map[*ir.Op]bool{o: true}
	inGone := func(u ir.Use) bool {
		for p := u.Op; p != nil; p = p.Parent.Region.Op {
			if in[p] {
				return true
			}
			if p.Parent == nil || p.Parent.Region == nil {
				break
			}
		}
		return false
	}
	for i := 0; i < len(gone); i++ { // gone grows
		for _, v := range ir.UsedValues(gone[i]) {
			p := v.Op
			if p == nil || in[p] || !removable(p) || c.entry(p) == nil {
				continue
			}
			needed := slices.ContainsFunc(p.Results, func(r *ir.Value) bool {
				return slices.ContainsFunc(r.Uses, func(u ir.Use) bool { return !inGone(u) })
			})
			if !needed {
				in[p] = true
				gone = append(gone, p)
			}
		}
	}
	return gone
}

// removable reports whether taking o away changes nothing but its results.
func removable(o *ir.Op) bool {
	if len(o.Results) == 0 {
		return false
	}
	if o.Name == op.Kernel {
		pure := true
		for _, inner := range inside(o) {
			pure = pure && (op.Of(inner).Is(op.Pure) || op.Of(inner).Is(op.Terminator))
		}
		return pure
	}
	return op.Of(o).Is(op.Pure)
}

func used(o *ir.Op) bool {
	for _, v := range o.Results {
		if len(v.Uses) > 0 {
			return true
		}
	}
	return false
}

// inside lists the ops of a kernel's body, its yield included.
func inside(kernel *ir.Op) []*ir.Op {
	if b := kernel.Body(0); b != nil {
		return b.Ops
	}
	return nil
}
