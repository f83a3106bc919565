package lint

import (
	"fmt"

	"dmir/analysis/cost"
	"dmir/analysis/units"
	"dmir/dialect/dim"
	"dmir/syntax/diag"
)

var _ = register(&Rule{
	Code: "DM501", Name: "budget-exceeded", Severity: diag.Error,
	Summary: "a function moves or holds more than its budget allows",
	Doc: `## What it does
Compares a function's moved bytes and its peak memory with the budget written on it,
` + "`attributes {dm.max_moved = \"1.2 GB\", dm.max_peak = \"3 GB\"}`" + `.

## Why it matters
A budget makes a regression of data movement fail where it is made, in the editor, before the commit and in CI, without
a GPU.

## Example
` + "```mlir" + `
func.func @layer(%x: tensor<8x512x1024xf16>) -> tensor<8x512x1024xf16> attributes {dm.max_moved = "30 MB"} {
` + "```" + `

## Fix
None: move less, or raise the budget on purpose.
`,
	Check: func(c *Context) {
		budget, errs := cost.ParseBudget(c.Fn)
		for _, err := range errs {
			c.Report(Finding{Op: c.Fn.Op, Message: err.Error(), Label: "budget not readable", Help: "write a size such as \"1.2 GB\""})
		}
		check := func(attr, what string, limit int64, have dim.Dim) {
			n, ok := have.Int()
			if limit < 0 || !ok || n <= limit {
				return
			}
			c.Report(Finding{
				Op:      c.Fn.Op,
				Message: fmt.Sprintf("@%s %s %s, %s more than its budget of %s", c.Fn.Name, what, units.Bytes(n), units.Bytes(n-limit), units.Bytes(limit)),
				Label:   attr + " exceeded",
				Help:    "move less, or raise " + attr + " on purpose",
			})
		}
		check(cost.MaxMoved, "moves", budget.MaxMoved, c.Cost.Moved())
		check(cost.MaxPeak, "holds up to", budget.MaxPeak, c.Cost.Peak)
	},
})
