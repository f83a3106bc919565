package lint

import (
	"fmt"
	"slices"

	"dmir/analysis/units"
	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/syntax/diag"
)

var _ = register(&Rule{
	Code: "DM401", Name: "kernel-exceeds-shared-memory", Severity: diag.Warning,
	Summary: "a kernel needs more shared memory than the target has",
	Doc: `## What it does
For each ` + "`dm.kernel`" + ` with a row-wise op in it (softmax, normalization, reduction), adds up the rows that must be on chip
at once: one row, over the dimensions that are normalized or reduced, of each value that is live at the widest point of
the kernel and runs over that row. It compares the sum with the shared memory that one block may use on the target.

## Why it matters
A row that does not fit is read or spilled a second time, so that the kernel moves more bytes than cross its boundary.

## Example
A softmax over rows of 262144 f16 elements needs 524 kB; a block on an H200 has 233 kB.

## Fix
None: split the row, or move the row-wise op out of the kernel.
`,
	Check: func(c *Context) {
		if c.Machine.SharedMemory == 0 {
			return
		}
		c.ops(func(k *ir.Op) {
			if k.Name != op.Kernel {
				return
			}
			worst, need := c.widestRow(k)
			if need <= c.Machine.SharedMemory {
				return
			}
			c.Report(Finding{
				Op:      k,
				Message: fmt.Sprintf("this kernel needs %s of shared memory; a block on %s has %s", units.Bytes(need), c.Machine.Name, units.Bytes(c.Machine.SharedMemory)),
				Label:   "does not fit in shared memory",
				Help:    "move the row-wise op out of the kernel, or split its rows",
				Notes:   []string{fmt.Sprintf("reading a row twice moves at least %s more on %s", units.Bytes(c.spill(worst)), c.Machine.Name)},
				Related: []diag.Related{{Span: place(worst), Message: "needs whole rows on chip"}},
			})
		})
	},
})

// widestRow is the row program of k that needs most bytes on chip, and how many.
func (c *Context) widestRow(k *ir.Op) (worst *ir.Op, need int64) {
	ops := inside(k)
	last, at := map[*ir.Value]int{}, map[*ir.Op]int{}
	for i, o := range ops {
		at[o] = i
		for _, v := range o.Operands {
			last[v] = i
		}
	}
	type row struct {
		t    *types.Tensor
		axes string
	}
	rows := map[row]int64{}
	for i, o := range ops {
		axes, ok := op.RowDims(o)
		if !ok || c.ctx.Err() != nil {
			continue
		}
		var bytes int64
		full, along := o.In(0), fmt.Sprint(axes)
		for v, end := range last {
			t := v.Tensor()
			if t == nil || end < i || t.Rank() != full.Rank() || !live(v, o, at) {
				continue
			}
			n, known := rows[row{t, along}]
			if !known {
				n = c.rowBytes(t, axes)
				rows[row{t, along}] = n
			}
			bytes += n
		}
		if bytes > need {
			worst, need = o, bytes
		}
	}
	return worst, need
}

// rowBytes is the size of a row of t along axes, 0 where it is not known.
func (c *Context) rowBytes(t *types.Tensor, axes []int) int64 {
	n := dim.Const(1)
	for _, a := range axes {
		n = n.Mul(t.Shape[a])
	}
	size, _ := t.Elem.Size(n).Eval(c.Bind).Int()
	return size
}

// live reports whether v is on chip when o of the kernel begins; at is the place
// of the kernel's ops. A value from outside can be read from memory when it is
// needed, and so is there only for an op that uses it.
func live(v *ir.Value, o *ir.Op, at map[*ir.Op]int) bool {
	if v.Op != nil {
		if made, here := at[v.Op]; here {
			return made < at[o]
		}
	}
	return slices.Contains(o.Operands, v)
}

// spill is what reading the row program's operand once more moves.
func (c *Context) spill(o *ir.Op) int64 {
	n, _ := o.In(0).Bytes().Eval(c.Bind).Int()
	return n
}
