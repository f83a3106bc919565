package lint

import (
	"dmir/analysis/cost"
	"dmir/analysis/machine"
	"dmir/syntax/diag"
)

var _ = register(&Rule{
	Code: "DM501", Name: "budget-exceeded", Severity: diag.Error,
	Summary: "a function exceeds its budget of bytes moved or sent, peak memory or time",
	Doc: `## What it does
Compares a function's moved bytes, its peak memory and its predicted time with the budget written on it,
` + "`attributes {dm.max_moved = \"1.2 GB\", dm.max_peak = \"3 GB\", dm.max_time = \"50 µs\"}`" + `. If sizes are symbols, a
budget of bytes may be a formula, ` + "`\"8*n B\"`" + `; it is exceeded if more is moved for every size. Time is that on the
chosen machine. A budget is for the function as it is compiled, with the kernels of its plan and their memory;
` + "`\"1.2 GB as written\"`" + ` is for the text op by op. A function that cannot be planned, as one with open sizes, is judged
as written, and the finding says so. Of a function whose values are divided over the devices of a mesh the figures are those of one device, and
` + "`dm.max_sent`" + ` limits what it sends to others.

A time may be for a cluster, ` + "`dm.max_time = \"350 ms on 64 x dgx-h100\"`" + `: a number of devices of a machine. Of a function
that is divided over so many devices it is the time there. A training step that is not divided yet is planned, as by
` + "`dmir plan`" + `: the budget is exceeded if the best plan takes longer, and the finding states the time below which no plan is.

## Why it matters
A budget reports a regression of data movement where it is introduced, in the editor, before the commit and in CI, without
a GPU.

## Example
` + "```mlir" + `
func.func @layer(%x: tensor<8x512x1024xf16>) -> tensor<8x512x1024xf16> attributes {dm.max_moved = "30 MB"} {
` + "```" + `

## Fix
None: move less, or raise the budget.
`,
	Check: func(c *Context) {
		limits, errs := cost.ParseBudget(c.Fn)
		for _, err := range errs {
			c.Report(Finding{Op: c.Fn.Op, Message: err.Error(), Label: "invalid budget", Help: "write a quantity such as \"1.2 GB\" or \"50 µs\""})
		}
		for _, l := range limits {
			if l.On != nil {
				c.overOn(l)
				continue
			}
			c.over(l, c.Machine, "", "move or hold less, or raise "+l.Attr)
		}
	},
})

// over reports that the function exceeds l, which is for a machine; where says for which, if that is not the chosen one.
func (c *Context) over(l cost.Limit, on *machine.Machine, where, help string) {
	l.On = nil
	have, why := c.program.Figures(c.ctx, c.Cost, on, l.Written)
	if c.ctx.Err() != nil {
		return
	}
	over, _ := c.Cost.Over(have, c.Bind, []cost.Limit{l})
	for _, x := range over {
		f := Finding{Op: c.Fn.Op, Message: x.Message(c.Cost) + where, Label: x.Attr + " exceeded", Help: help}
		if why != nil {
			f.Notes = append(f.Notes, "it cannot be compiled: "+why.Error())
		}
		c.Report(f)
	}
}
