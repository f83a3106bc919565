package lint

import (
	"fmt"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/origin"
	"dmir/dialect/pattern"
	"dmir/dialect/types"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// longReduction is the number of terms from which half-precision accumulation
// is reported: with u the unit roundoff of f16, 2^-11, the bound n·u on the
// relative error of a sum of n terms of one sign reaches 1/8 there (Higham,
// Accuracy and Stability of Numerical Algorithms, §4.2).
const longReduction = 256

var _ = register(&Rule{
	Code: "DM302", Name: "half-accumulation", Severity: diag.Warning, Fix: Unsafe,
	Summary: "a long reduction accumulates in half precision",
	Python:  "pass preferred_element_type=jnp.float32 in JAX; in PyTorch set torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False",
	Doc: `## What it does
Finds a contraction or reduction over 256 terms or more with ` + "`accumulate = f16`" + `.

## Why it matters
The relative error of a sum of n terms is bounded by n·u, where u = 2⁻¹¹ is the unit roundoff of f16 (Higham, *Accuracy and Stability of Numerical Algorithms*, §4.2). Over 4096 terms in f16 the bound is 200 %,
and f16 overflows beyond 65504. Tensor cores accumulate in f32 at the same memory traffic.

## Example
` + "```mlir" + `
%h = dm.einsum "bln,nu->blu" %x, %w, accumulate = f16 : …
` + "```" + `
Leave ` + "`accumulate`" + ` out: f32 is the default.

## Fix
Unsafe: results change, towards the exact ones. No byte is saved or added.
`,
	Check: func(c *Context) {
		c.ops(func(o *ir.Op) {
			if o.Str("accumulate") != "f16" {
				return
			}
			n, ok := reductionLength(o)
			if !ok || n < longReduction {
				return
			}
			bound := float64(n) / float64(int64(1)<<pattern.Significant(types.F16))
			f := Finding{
				Op:      o,
				Message: fmt.Sprintf("%d terms are summed in f16: the relative error may reach %.3g %%", n, bound*100),
				Label:   "accumulates in f16",
				Help:    "remove accumulate: f32 accumulation moves the same bytes",
			}
			if span, ok := clauseSpan(o, "accumulate"); ok {
				f.Fix = &diag.Fix{Title: "Accumulate " + short(o.Results[0]) + " in f32", Edits: []diag.Edit{{Span: span}}}
			}
			c.Report(f)
		})
	},
})

// reductionLength is the number of terms of each sum that o makes.
func reductionLength(o *ir.Op) (int64, bool) {
	def := op.Of(o)
	if def == nil || def.Maps == nil {
		return 0, false
	}
	it := def.Maps(o)
	if it == nil {
		return 0, false
	}
	n := dim.Const(1)
	for i, loop := range it.Loops {
		if it.Reduces[i] {
			n = n.Mul(loop)
		}
	}
	return n.Int()
}

// clauseSpan is the text of ", name = value" in a pretty op.
func clauseSpan(o *ir.Op, name string) (source.Span, bool) {
	t := origin.Tree(o)
	if t == nil {
		return source.Span{}, false
	}
	for i, cl := range t.Clauses {
		if cl.Name != name {
			continue
		}
		var start int32
		switch {
		case i > 0:
			start = t.Clauses[i-1].Value.End
		case len(t.Operands) > 0:
			start = t.Operands[len(t.Operands)-1].Span.End
		default:
			return source.Span{}, false
		}
		return source.Span{Start: t.Off + int(start), End: t.Off + int(cl.Value.End)}, true
	}
	return source.Span{}, false
}
