package lint

import (
	"slices"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/syntax/diag"
)

var _ = register(&Rule{
	Code: "DM212", Name: "loop-invariant", Severity: diag.Warning,
	Summary:  "every iteration of a loop computes the same again",
	Compiler: "moves contractions out of `dm.scan`",
	Kept:     "other ops, and for loops that are a `dm.while`",
	Python:   "compute it before jax.lax.scan or the loop, and close over the result",
	Doc: `## What it does
Finds contractions, normalizations and reductions in the body of a ` + "`dm.scan` or a `dm.while`" + ` whose operands all come from
outside the loop.

## Why it matters
Each iteration reads the operands, computes and writes the result as the one before did. Before the loop this is done
once.

## Example
` + "```mlir" + `
%y = dm.scan %x, carries = 1, length = 100 : tensor<8x64xf32> {
^bb0(%v: tensor<8x64xf32>):
  %ww = dm.matmul %w, %w : tensor<64x64xf32>
  %u = dm.matmul %v, %ww : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32>
  dm.yield %u : tensor<8x64xf32>
}
` + "```" + `

## Fix
None: move the op above the loop.
`,
	Check: func(c *Context) {
		c.ops(func(o *ir.Op) {
			loop, d := loopAround(o), op.Of(o)
			if loop == nil || o.Parent != op.LoopBody(loop) || d == nil || d.Class != op.ClassContraction && d.Class != op.ClassNormalization {
				return
			}
			e := c.entry(o)
			used := ir.UsedValues(o)
			if e == nil || len(used) == 0 || op.HasEffect(o) || slices.ContainsFunc(used, func(v *ir.Value) bool { return v.Inside(loop) }) {
				return
			}
			f := Finding{
				Op:      o,
				Message: "every iteration of the loop computes " + spelling(o.Results[0]) + " again",
				Label:   "the operands do not change in the loop",
				Help:    "compute it once, before the loop",
				Kept:    loop.Name != op.Scan || d.Class != op.ClassContraction,
				Related: []diag.Related{{Span: place(loop), Message: "the loop"}},
			}
			trips, around := c.trips(o), c.trips(loop)
			t := e.Time(c.Machine)
			n, known := trips.Sub(around).Int()
			f.Saving = &Saving{Bytes: e.Moved().Mul(trips.Sub(around)), Ns: t.Ns * float64(n), timed: t.Known && known}
			if n <= 0 && known || !f.Saving.Bytes.AtLeast(dim.Const(1)) && known {
				return
			}
			c.Report(f)
		})
	},
})
