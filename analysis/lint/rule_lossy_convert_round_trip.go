package lint

import (
	"fmt"

	"dmir/dialect/ir"
	"dmir/dialect/pattern"
	"dmir/dialect/types"
	"dmir/syntax/diag"
)

var _ = register(&Rule{
	Code: "DM301", Name: "lossy-convert-round-trip", Severity: diag.Warning, Fix: Unsafe,
	Summary: "a value is converted to a narrower type and back",
	Python:  "leave out the two .astype(…) or .to(…), or keep the value in one type throughout",
	Doc: `## What it does
Finds a ` + "`dm.convert`" + ` to the element type that the value had before an earlier convert narrowed it.

## Why it matters
The digits are lost: f32 → f16 → f32 keeps 11 bits of 24 and overflows beyond 65504, f32 → bf16 → f32 keeps 8. Both
converts move the whole value.

## Example
` + "```mlir" + `
%h = dm.convert %x : (tensor<512x64xf32>) -> tensor<512x64xf16>
%y = dm.convert %h : (tensor<512x64xf16>) -> tensor<512x64xf32>
` + "```" + `
Use ` + "`%x`" + ` instead of ` + "`%y`" + `.

## Fix
Unsafe: results change, towards the exact ones.
`,
	Check: func(c *Context) {
		c.ops(func(o *ir.Op) {
			narrow := roundTrip(o)
			if narrow == nil {
				return
			}
			origin := narrow.Operands[0]
			gone := []*ir.Op{o}
			if len(narrow.Results[0].Uses) == 1 {
				gone = append(gone, narrow)
			}
			from, to := origin.Tensor().Elem, narrow.Out(0).Elem
			f := Finding{
				Op:      o,
				Message: fmt.Sprintf("%s → %s → %s keeps %d of %d significant bits", from, to, from, pattern.Significant(to), pattern.Significant(from)),
				Label:   "less precise than " + spelling(origin),
				Related: []diag.Related{{Span: place(narrow), Message: "narrowed here"}},
			}
			// What a branch saves depends on the other branch: no promise, no fix.
			saving, edits, ok := c.replacement(o, []*ir.Value{origin}, gone...)
			if ok && c.entry(o) != nil && (len(gone) == 1 || c.entry(narrow) != nil) {
				f.Saving, f.Fix = saving, &diag.Fix{Title: replaceTitle(o.Results[0], origin), Edits: edits}
			} else {
				f.Help = "use " + spelling(origin) + " instead"
			}
			c.Report(f)
		})
	},
})

// roundTrip is the narrowing convert that o takes back, nil where there is none.
func roundTrip(o *ir.Op) *ir.Op {
	n, exact := pattern.Converted(o)
	if n == nil || exact || kernelOf(o) != nil || kernelOf(n) != nil || !types.Equal(o.Results[0].Type, n.Operands[0].Type) {
		return nil
	}
	wide, narrow := n.In(0), n.Out(0)
	if wide == nil || narrow == nil || wide.Elem.IsFloat() != narrow.Elem.IsFloat() || narrow.Elem == types.I1 {
		return nil // to whole numbers, to truth values: that is what the convert is for
	}
	if pattern.Significant(narrow.Elem) >= pattern.Significant(wide.Elem) {
		return nil
	}
	return n
}
