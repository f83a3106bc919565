package lint

import (
	"fmt"
	"slices"

	"dmir/analysis/units"
	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/syntax/diag"
)

var _ = register(&Rule{
	Code: "DM401", Name: "kernel-exceeds-shared-memory", Severity: diag.Warning,
	Summary: "a kernel must hold more on chip than the target has",
	Doc: `## What it does
For each ` + "`dm.kernel`" + ` with a row program in it (softmax, normalization, reduction), adds up the rows that must be on chip
at once: one row, over the dimensions that are normalized or reduced, of each value that is live at the widest point of
the kernel and runs over that row. It compares the sum with the shared memory that one block may use on the target.

## Why it matters
A row that does not fit is read or spilled a second time, so that the kernel moves more than its boundary says.

## Example
A softmax over rows of 262144 f16 elements needs 524 kB; a block on an H200 has 233 kB.

## Fix
None: split the row, or take the row program out of the kernel.
`,
	Check: func(c *Context) {
		if c.Machine.SharedMemory == 0 {
			return
		}
		c.ops(func(k *ir.Op) {
			if k.Name != "dm.kernel" {
				return
			}
			worst, need := c.widestRow(k)
			if need <= c.Machine.SharedMemory {
				return
			}
			c.Report(Finding{
				Op:      k,
				Message: fmt.Sprintf("this kernel holds %s on chip, a block on %s has %s", units.Bytes(need), c.Machine.Name, units.Bytes(c.Machine.SharedMemory)),
				Label:   "does not fit in shared memory",
				Help:    "take the row program out of the kernel, or split its rows",
				Notes:   []string{fmt.Sprintf("at least %s more are moved on %s when a row is read twice", units.Bytes(c.spill(worst)), c.Machine.Name)},
				Related: []diag.Related{{Span: place(worst), Message: "needs whole rows on chip"}},
			})
		})
	},
})

// widestRow is the row program of k that needs most bytes on chip, and how many.
func (c *Context) widestRow(k *ir.Op) (worst *ir.Op, need int64) {
	ops := inside(k)
	last := map[*ir.Value]int{}
	for i, o := range ops {
		for _, v := range o.Operands {
			last[v] = i
		}
	}
	for i, o := range ops {
		axes, ok := rowAxes(o)
		if !ok {
			continue
		}
		var bytes int64
		full := o.In(0)
		for v, end := range last {
			t := v.Tensor()
			if t == nil || end < i || t.Rank() != full.Rank() || definedAfter(v, k, i, ops) {
				continue
			}
			row := dim.Const(t.Elem.Bytes())
			for _, a := range axes {
				row = row.Mul(t.Shape[a])
			}
			if n, ok := row.Eval(c.Bind).Int(); ok {
				bytes += n
			}
		}
		if bytes > need {
			worst, need = o, bytes
		}
	}
	return worst, need
}

// definedAfter reports whether v does not exist yet at op i of the kernel, or
// is a value from outside that is not used by op i itself: such a value can
// still be read from memory when it is needed.
func definedAfter(v *ir.Value, k *ir.Op, i int, ops []*ir.Op) bool {
	if v.Op == nil || !v.Op.Inside(k) {
		for _, w := range ops[i].Operands {
			if w == v {
				return false
			}
		}
		return true
	}
	for j := i; j < len(ops); j++ {
		if ops[j] == v.Op {
			return true
		}
	}
	return false
}

// rowAxes are the dimensions that a row program runs along, in their order; ok
// is false for other ops.
func rowAxes(o *ir.Op) ([]int64, bool) {
	def := op.Of(o)
	t := o.In(0)
	if def == nil || def.Class != op.ClassNormalization || t == nil {
		return nil, false
	}
	var axes []int64
	switch {
	case o.Name == "dm.batch_norm" && len(o.Operands) == 5:
		return nil, false // with given statistics it is element-wise
	case o.Name == "dm.batch_norm": // all but the channels
		channels := op.Int(o, "dim")
		for a := range int64(t.Rank()) {
			if a != channels {
				axes = append(axes, a)
			}
		}
	case o.Name == "dm.group_norm": // all but the batch; a group holds some of the channels
		for a := range int64(t.Rank() - 1) {
			axes = append(axes, a+1)
		}
	case o.Name == "dm.reduce_window":
		for a, n := range op.Ints(o, "window_dimensions") {
			if n > 1 {
				axes = append(axes, int64(a))
			}
		}
	case def.Attr("dims") != nil:
		axes = op.Ints(o, "dims")
	case def.Attr("dim") != nil:
		axes = []int64{op.Int(o, "dim")}
	default:
		axes = []int64{int64(t.Rank()) - 1}
	}
	for i, a := range axes {
		if a < 0 {
			axes[i] = a + int64(t.Rank())
		}
		if axes[i] < 0 || axes[i] >= int64(t.Rank()) {
			return nil, false
		}
	}
	slices.Sort(axes)
	return axes, len(axes) > 0
}

// spill is what reading the row program's operand once more moves.
func (c *Context) spill(o *ir.Op) int64 {
	n, _ := o.In(0).Bytes().Eval(c.Bind).Int()
	return n
}
