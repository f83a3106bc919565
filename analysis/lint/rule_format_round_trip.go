package lint

import (
	"cmp"
	"fmt"

	"dmir/analysis/cost"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/origin"
	"dmir/dialect/types"
	"dmir/syntax/diag"
)

var _ = register(&Rule{
	Code: "DM227", Name: "format-round-trip", Severity: diag.Warning, Fix: Safe,
	Summary: "a tensor is converted to a format and on to another",
	Python:  "convert once: leave out the first of the two calls (.tocsc(), .to_sparse_csc(), BCSR.from_bcoo)",
	Doc: `## What it does
Finds a ` + "`dm.convert_format`" + ` of what another one made, where one conversion or none gives the same.

## Why it matters
A conversion sorts and numbers all stored elements, and writes positions, coordinates and values. The format between is read by nothing
else, or what it was made of could have been read.

## Example
` + "```mlir" + `
%c = dm.convert_format %a : (tensor<64x64xf32, #dm.csr<nnz = 99>>) -> tensor<64x64xf32, #dm.csc<nnz = 99>>
%r = dm.convert_format %c : (tensor<64x64xf32, #dm.csc<nnz = 99>>) -> tensor<64x64xf32, #dm.csr<nnz = 99>>
` + "```" + `
Use ` + "`%a`" + ` instead of ` + "`%r`" + `. The transposed tensor takes no conversion either: ` + "`dm.transpose`" + ` of compressed rows is one in
compressed columns, and nothing moves.

## Fix
Safe: the same elements are stored. A dense tensor between is no format: what is converted from it again are the elements that are not 0,
which may be fewer.
`,
	Check: func(c *Context) {
		c.ops(func(o *ir.Op) {
			first := convertedTwice(o)
			if first == nil || c.entry(o) == nil || c.entry(first) == nil || origin.Tree(o) == nil || origin.Tree(first) == nil {
				return
			}
			x, middle := first.Operands[0], o.Operands[0]
			gone := []*ir.Op{}
			if len(middle.Uses) == 1 {
				gone = append(gone, first)
			}
			f := Finding{
				Op:      o,
				Message: fmt.Sprintf("%s → %s → %s: %s can be read in place of the format between", formatName(x), formatName(middle), formatName(o.Results[0]), spelling(x)),
				Label:   "converted again",
				Related: []diag.Related{{Span: place(first), Message: "converted here"}},
			}
			if types.Equal(x.Type, o.Results[0].Type) {
				saving, edits, ok := c.replacement(o, []*ir.Value{x}, append([]*ir.Op{o}, gone...)...)
				if !ok || !saving.positive() {
					return
				}
				f.Saving, f.Fix = saving, &diag.Fix{Title: replaceTitle(o.Results[0], x), Edits: edits}
				c.Report(f)
				return
			}
			once := cost.Replaced(c.Fn, c.Module, c.Bind, o, map[*ir.Value]*ir.Value{middle: x})
			f.Saving = c.saving(c.entries(append([]*ir.Op{o}, gone...)...), []*cost.Entry{once})
			if !f.Saving.positive() {
				return
			}
			edits := c.readInstead(o, middle, x)
			for _, g := range gone {
				edits = append(edits, c.remove(g)...)
			}
			f.Fix = &diag.Fix{Title: "Convert " + short(x) + " once", Edits: edits}
			c.Report(f)
		})
	},
})

// convertedTwice is the conversion that made what o, a conversion, converts, if one from its operand gives the same elements; nil
// where there is none.
func convertedTwice(o *ir.Op) *ir.Op {
	if o.Name != "dm.convert_format" || !op.Valid(o) {
		return nil
	}
	first := o.Operands[0].Op
	if first == nil || first.Name != o.Name || !op.Valid(first) {
		return nil
	}
	if first.Out(0).Format == nil { // what the result stores are the elements that are not 0
		return nil
	}
	return first
}

// formatName is how v is stored, in a word.
func formatName(v *ir.Value) string {
	t := v.Tensor()
	if t.Format == nil {
		return "dense"
	}
	return cmp.Or(t.Format.ShortName(t.Rank()), "sparse")
}
