package lint

import (
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/origin"
	"dmir/syntax/diag"
)

var _ = register(&Rule{
	Code: "DM215", Name: "resharded-twice", Severity: diag.Warning, Fix: Safe,
	Summary: "a value is divided in one way only to be divided in another",
	Doc: `## What it does
Finds a ` + "`dm.reshard`" + ` whose operand is another ` + "`dm.reshard`" + ` that nothing else uses, where the way from the first
operand to the last result sends less.

## Why it matters
A reshard is the cheapest sequence of collectives between two shardings. Two in a row have to pass the one between
them, on which nothing is computed.

## Example
` + "```mlir" + `
%a = dm.reshard %x : (tensor<8x8xf32, #dm.at<split = @pod[{data}, {}]>>) -> tensor<8x8xf32, #dm.at<split = @pod[{}, {}]>>
%b = dm.reshard %a : (tensor<8x8xf32, #dm.at<split = @pod[{}, {}]>>) -> tensor<8x8xf32, #dm.at<split = @pod[{}, {data}]>>
` + "```" + `
An all-to-all leads from ` + "`%x`" + ` to ` + "`%b`" + `.

## Fix
Safe: the second reshard reads what the first one reads. Partial sums that would be reduced elsewhere are left alone.
`,
	Check: func(c *Context) {
		if !c.distributed() {
			return
		}
		c.ops(func(o *ir.Op) {
			if o.Name != op.Reshard || !op.Valid(o) {
				return
			}
			first := o.Operands[0].Op
			if first == nil || first.Name != op.Reshard || len(first.Results[0].Uses) != 1 || first.Parent != o.Parent || origin.Tree(o) == nil || origin.Tree(first) == nil {
				return
			}
			for _, v := range []*ir.Value{first.Operands[0], first.Results[0], o.Results[0]} {
				if s := op.StatedSharding(v); s != nil && len(s.Partial) > 0 {
					return
				}
			}
			edits := append(c.readInstead(o, first.Results[0], first.Operands[0]), c.remove(first)...)
			saving := c.trial(edits)
			if !saving.better() {
				return
			}
			c.Report(Finding{
				Op:      o,
				Message: spelling(o.Operands[0]) + " is divided only to be divided in another way",
				Label:   "there is a shorter way from " + spelling(first.Operands[0]),
				Saving:  saving,
				Tried:   true,
				Related: []diag.Related{{Span: place(first), Message: "nothing uses this sharding"}},
				Fix:     &diag.Fix{Title: "Reshard " + short(first.Operands[0]) + " directly", Edits: edits},
			})
		})
	},
})
