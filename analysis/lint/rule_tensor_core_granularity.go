package lint

import (
	"fmt"

	"dmir/analysis/units"
	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/syntax/diag"
)

// alignment is the number of bytes of which the contiguous dimension of a
// tensor-core operand must be a multiple (NVIDIA, Matrix Multiplication
// Background User's Guide, "Tensor Core Requirements": 16 bytes).
const alignment = 16

var _ = register(&Rule{
	Code: "DM402", Name: "tensor-core-granularity", Severity: diag.Warning,
	Summary: "a dimension of a contraction is not a multiple of the tensor cores' granularity",
	Python:  "pad the dimension to the next multiple where the model is built, such as a vocabulary of 50257 to 50304",
	Doc: `## What it does
Finds a contraction in a tensor-core element type one of whose contracted or contiguous dimensions is not a multiple of 16
bytes: 8 elements of f16 and bf16, 16 of f8 and i8.

## Why it matters
Tensor-core kernels load 16-byte vectors (NVIDIA, *Matrix Multiplication Background User's Guide*). Other sizes are padded
in the kernel or run on slower paths; the finding states how much of the padded work is wasted. Products of a matrix and a
vector are not reported: their time is that of reading the matrix.

## Example
` + "```mlir" + `
%h = dm.einsum "bn,nv->bv" %x, %w : (tensor<512x1024xf16>, tensor<1024x50257xf16>) -> tensor<512x50257xf16>
` + "```" + `
A vocabulary of 50264 is a multiple of 8.

## Fix
None: padding changes the shapes of the program.
`,
	Check: func(c *Context) {
		c.ops(func(o *ir.Op) {
			def := op.Of(o)
			if def == nil || def.Class != op.ClassContraction || def.Maps == nil || len(o.Operands) != 2 {
				return
			}
			t := o.In(0)
			if t == nil || c.Machine.TensorCore[t.Elem] == 0 || t.Elem == types.F32 || t.Elem == types.F64 {
				return
			}
			grain := alignment / t.Elem.Bytes()
			if it := def.Maps(o); it != nil && (o.Name == "dm.convolution" || products(it, c.Bind)) {
				c.misaligned(o, it, grain, t.Elem)
			}
		})
	},
})

// products reports whether what it loops over is a product of matrices: each
// operand has rows of its own in the result. What multiplies a matrix by a
// vector reads each element for one product, and tensor cores do not help it.
func products(it *op.Iteration, bind map[string]int64) bool {
	in := make([]map[int]bool, len(it.Operands))
	for i, dims := range it.Operands {
		in[i] = map[int]bool{}
		for _, d := range dims {
			in[i][d] = true
		}
	}
	free := make([]bool, len(in))
	for i, loop := range it.Loops {
		if n, ok := loop.Eval(bind).Int(); ok && n == 1 || it.Reduces[i] || in[0][i] == in[1][i] {
			continue
		}
		free[0], free[1] = free[0] || in[0][i], free[1] || in[1][i]
	}
	return free[0] && free[1]
}

// misaligned reports the first loop of o that tensor cores would have to pad.
func (c *Context) misaligned(o *ir.Op, it *op.Iteration, grain int64, elem types.Elem) {
	matters := map[int]bool{}
	summed := int64(1) // over all loops of the sum: tensor cores see one, unless it is cut by windows
	for i, reduces := range it.Reduces {
		matters[i] = reduces
		if n, ok := it.Loops[i].Eval(c.Bind).Int(); ok && reduces {
			summed *= n
		}
	}
	if o.Name != "dm.convolution" && summed%grain == 0 {
		matters = map[int]bool{}
	}
	for _, dims := range append(append([][]int{}, it.Operands...), it.Results...) {
		if n := len(dims); n > 0 && dims[n-1] >= 0 {
			matters[dims[n-1]] = true
		}
	}
	padded, exact := dim.Const(1), dim.Const(1)
	worst, size := -1, int64(0)
	for i, loop := range it.Loops {
		n, ok := loop.Eval(c.Bind).Int()
		if !ok {
			return
		}
		up := n
		if matters[i] && n%grain != 0 && (n > 1 || summed == 1) {
			up = (n + grain - 1) / grain * grain
			if worst < 0 {
				worst, size = i, n
			}
		}
		exact, padded = exact.Mul(dim.Const(n)), padded.Mul(dim.Const(up))
	}
	p, ok := padded.Int()
	e, _ := exact.Int()
	if worst < 0 || !ok || p == 0 {
		return
	}
	waste := 1 - float64(e)/float64(p)
	up := (size + grain - 1) / grain * grain
	note := fmt.Sprintf("padded to the granularity it computes %s, of which %.3g %% is wasted", units.FLOP(2*p), waste*100)
	if t := c.entry(o); t != nil {
		if ns := t.Time(c.Machine); ns.Known {
			note += fmt.Sprintf("; the op takes %s on %s", units.Time(ns.Ns), c.Machine.Name)
		}
	}
	c.Report(Finding{
		Op:      o,
		Message: fmt.Sprintf("dimension %s = %d is not a multiple of %d, the granularity of %s tensor cores", it.Names[worst], size, grain, elem),
		Label:   fmt.Sprintf("%s = %d", it.Names[worst], size),
		Help:    fmt.Sprintf("pad %s to %d", it.Names[worst], up),
		Notes:   []string{note},
	})
}
