package lint

import (
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/syntax/diag"
)

var _ = register(&Rule{
	Code: "DM207", Name: "unused-value", Severity: diag.Warning, Fix: Safe,
	Summary: "no result of this op is used",
	Doc: `## What it does
Finds an op without side effects, or a kernel, none of whose results is used.

## Why it matters
It moves and computes for nothing.

## Example
` + "```mlir" + `
%a = dm.exp %x : tensor<512x64xf16>   // nothing uses %a
` + "```" + `

## Fix
Safe: the op is removed. What only this op used may be unused next; ` + "`dmir lint --fix`" + ` goes on until nothing is left.
`,
	Check: func(c *Context) {
		c.ops(func(o *ir.Op) {
			if !removable(o) || used(o) || c.entry(o) == nil {
				return
			}
			c.Report(Finding{
				Op:      o,
				Message: "nothing uses what this op computes",
				Label:   "unused",
				Tags:    []diag.Tag{diag.Unnecessary},
				Saving:  c.saving(c.entries(o), nil),
				Fix:     &diag.Fix{Title: "Remove it", Edits: c.remove(o)},
			})
		})
	},
})

// removable reports whether taking o away changes nothing but its results.
func removable(o *ir.Op) bool {
	if len(o.Results) == 0 {
		return false
	}
	if o.Name == "dm.kernel" {
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
