package lint

import (
	"fmt"

	"dmir/dialect/ir"
	"dmir/dialect/types"
	"dmir/syntax/diag"
)

var _ = register(&Rule{
	Code: "DM209", Name: "repeated-transfer", Severity: diag.Warning, Fix: Safe,
	Summary:  "the same value is copied between host and device again",
	Compiler: "makes equal copies once",
	Kept:     "a copy in a loop",
	Doc: `## What it does
Finds a ` + "`dm.copy`" + ` of a value to a memory space into which it has been copied before, and a copy inside a loop of a
value that the loop does not change.

## Why it matters
The link between host and device is one or two orders of magnitude slower than the device's memory; a value that is
already there need not cross it again.

## Example
` + "```mlir" + `
%a = dm.copy %x : (tensor<512x64xf16, #dm.at<host>>) -> tensor<512x64xf16>
%b = dm.copy %x : (tensor<512x64xf16, #dm.at<host>>) -> tensor<512x64xf16>
` + "```" + `
Use ` + "`%a`" + ` for both.

## Fix
Safe for a repeated copy: the first one is used. A copy in a loop is reported without a fix; move it above the loop.
`,
	Check: func(c *Context) {
		type transfer struct {
			from *ir.Value
			to   string
		}
		seen := map[transfer]*ir.Op{}
		c.ops(func(o *ir.Op) {
			if o.Name != "dm.copy" || c.entry(o) == nil || len(o.Operands) != 1 || !crosses(o) {
				return
			}
			key := transfer{o.Operands[0], o.Results[0].Type.String()}
			first := seen[key]
			switch {
			case first != nil && visibleFrom(first, o):
				c.reportTransfer(first, o)
			default:
				seen[key] = o
				if loop := loopAround(o); loop != nil && !o.Operands[0].Inside(loop) {
					c.Report(Finding{
						Op:      o,
						Message: "every iteration of the loop copies " + spelling(o.Operands[0]) + " again",
						Label:   "the value does not change in the loop",
						Help:    "copy it once, before the loop",
						Kept:    true,
						Related: []diag.Related{{Span: place(loop), Message: "the loop"}},
					})
				}
			}
		})
	},
})

func (c *Context) reportTransfer(first, o *ir.Op) {
	saving, edits, ok := c.replacement(o, first.Results, o)
	if !ok {
		return
	}
	name := spelling(first.Results[0])
	c.Report(Finding{
		Op:      o,
		Message: fmt.Sprintf("%s was already copied to %s", spelling(o.Operands[0]), space(o.Results[0])),
		Label:   "already available as " + name,
		Saving:  saving,
		Related: []diag.Related{{Span: place(first), Message: "copied here first"}},
		Fix:     &diag.Fix{Title: replaceTitle(o.Results[0], first.Results[0]), Edits: edits},
	})
}

func space(v *ir.Value) types.Space {
	if t := v.Tensor(); t != nil {
		return t.At.Space
	}
	return ""
}

func crosses(o *ir.Op) bool { return space(o.Operands[0]) != space(o.Results[0]) }

// visibleFrom reports whether a value made by def may be used at o: def's block
// holds o at some depth.
func visibleFrom(def, o *ir.Op) bool {
	for b := o.Parent; b != nil; b = b.Region.Op.Parent {
		if b == def.Parent {
			return true
		}
	}
	return false
}
