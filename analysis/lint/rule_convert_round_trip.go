package lint

import (
	"fmt"

	"dmir/dialect/ir"
	"dmir/dialect/types"
	"dmir/syntax/diag"
)

var _ = register(&Rule{
	Code: "DM301", Name: "lossy-convert-round-trip", Severity: diag.Warning, Fix: Unsafe,
	Summary: "a value is converted to a narrower type and back",
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
				Message: fmt.Sprintf("%s → %s → %s keeps %d of %d significant bits", from, to, from, significand(to), significand(from)),
				Label:   "less precise than " + spelling(origin),
				Related: []diag.Related{{Span: place(narrow), Message: "narrowed here"}},
			}
			// What a branch saves depends on the other branch: no promise, no fix.
			saving, edits, ok := c.replacement(o, []*ir.Value{origin}, gone...)
			if ok && c.entry(o) != nil && (len(gone) == 1 || c.entry(narrow) != nil) {
				f.Saving, f.Fix = saving, &diag.Fix{Title: "Use " + spelling(origin) + " instead", Edits: edits}
			} else {
				f.Help = "use " + spelling(origin) + " instead"
			}
			c.Report(f)
		})
	},
})

// roundTrip is the narrowing convert that o takes back, nil where there is none.
func roundTrip(o *ir.Op) *ir.Op {
	if o.Name != "dm.convert" || len(o.Operands) != 1 || len(o.Results) != 1 || kernelOf(o) != nil {
		return nil
	}
	n := o.Operands[0].Op
	if n == nil || n.Name != "dm.convert" || len(n.Operands) != 1 || kernelOf(n) != nil || !typesEqual(o.Results[0], n.Operands[0]) {
		return nil
	}
	wide, narrow := n.In(0), n.Out(0)
	if wide == nil || narrow == nil || wide.Elem.IsFloat() != narrow.Elem.IsFloat() || narrow.Elem == types.I1 {
		return nil // to whole numbers, to truth values: that is what the convert is for
	}
	if significand(narrow.Elem) >= significand(wide.Elem) {
		return nil
	}
	return n
}

// significand is the number of significant bits of an element type: of the
// significand with its implicit bit for floats, of the magnitude for integers.
func significand(e types.Elem) int {
	switch e {
	case types.F64:
		return 53
	case types.F32:
		return 24
	case types.F16:
		return 11
	case types.BF16:
		return 8
	case types.F8E4M3FN:
		return 4
	case types.F8E5M2:
		return 3
	case types.I1:
		return 1
	}
	if e.IsUnsigned() {
		return int(e.Bytes()) * 8
	}
	return int(e.Bytes())*8 - 1
}
