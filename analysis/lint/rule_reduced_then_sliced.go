package lint

import (
	"fmt"
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/origin"
	"dmir/syntax/diag"
)

var _ = register(&Rule{
	Code: "DM213", Name: "reduced-then-sliced", Severity: diag.Warning, Fix: Unsafe,
	Summary: "each device keeps only its piece of what was reduced on all of them",
	Doc: `## What it does
Finds a ` + "`dm.all_reduce`" + `, in a function that one device runs, of whose result each device uses nothing but the piece
at its own position: a ` + "`dm.dynamic_slice`" + ` that starts at ` + "`dm.partition_id`" + ` times the size of a piece.

## Why it matters
An all-reduce is a reduce-scatter and an all-gather. What the second half sends, each device throws away: a
reduce-scatter sends half as much.

## Example
` + "```mlir" + `
%i = dm.partition_id axes = ["data"] : tensor<i64>
%s = dm.mul %i, %two : tensor<i64>
%r = dm.all_reduce add %x, axes = ["data"] : tensor<4x8xf32>
%y = dm.dynamic_slice %r, %s, %zero, slice_sizes = [2, 8] : (tensor<4x8xf32>, tensor<i64>, tensor<i64>) -> tensor<2x8xf32>
` + "```" + `
The same with half the bytes: ` + "`%y = dm.reduce_scatter add %x, dim = 0, axes = [\"data\"]`" + `.

## Fix
Unsafe: a library may add the parts in another order.
`,
	Check: func(c *Context) {
		c.collectives(func(o *ir.Op) {
			if o.Name != op.AllReduce || len(o.Results[0].Uses) != 1 {
				return
			}
			slice := o.Results[0].Uses[0].Op
			d, ok := c.ownPiece(o, slice)
			if !ok || slice.Parent != o.Parent {
				return
			}
			t := origin.Tree(slice)
			if t == nil || origin.Tree(o) == nil {
				return
			}
			scatter := fmt.Sprintf("%s = %s %s %s, dim = %d, axes = %s : (%s) -> %s", spelling(slice.Results[0]), op.ReduceScatter,
				op.Str(o, "reduction"), spelling(o.Operands[0]), d, o.Attr("axes"), c.typeText(o.Operands[0]), c.typeText(slice.Results[0]))
			edits := append([]diag.Edit{{Span: t.Span(), Text: scatter}}, c.remove(o)...)
			c.Report(Finding{
				Op:      o,
				Message: "each device keeps only its own piece of " + spelling(o.Results[0]),
				Label:   "reduced on all devices",
				Saving:  c.trial(edits),
				Tried:   true,
				Related: []diag.Related{{Span: place(slice), Message: "all but the device's piece is dropped here"}},
				Fix:     &diag.Fix{Title: "Reduce and scatter " + short(slice.Results[0]), Edits: edits},
			})
		})
	},
})

// ownPiece is the dimension along which slice, a dm.dynamic_slice of what reduce gives, takes the piece
// of the device's own position along reduce's axes, and everything of other dimensions.
func (c *Context) ownPiece(reduce, slice *ir.Op) (dim int, ok bool) {
	x, y := reduce.Out(0), slice.Out(0)
	if slice.Name != "dm.dynamic_slice" || slice.Operands[0] != reduce.Results[0] || x == nil || y == nil || len(slice.Operands) != x.Rank()+1 {
		return 0, false
	}
	dim = -1
	for i := range x.Shape {
		switch n, known := y.Shape[i].Int(); {
		case x.Shape[i].Equal(y.Shape[i]):
		case dim >= 0 || !known:
			return 0, false
		default:
			whole, known := x.Shape[i].Int()
			if !known || !c.atPosition(slice.Operands[i+1], reduce, n, whole/n) || whole%n != 0 {
				return 0, false
			}
			dim = i
		}
	}
	return dim, dim >= 0
}

// atPosition reports whether v is the device's position along the axes of o, of which there are p, times n.
func (c *Context) atPosition(v *ir.Value, o *ir.Op, n, p int64) bool {
	times := int64(1)
	if v.Op != nil && v.Op.Name == "dm.mul" {
		for i, w := range v.Op.Operands {
			if k, ok := constantInt(w); ok {
				times, v = k, v.Op.Operands[1-i]
				break
			}
		}
	}
	if times != n || v.Op == nil || v.Op.Name != op.PartitionID || !slices.Equal(op.Strings(v.Op, "axes"), op.Strings(o, "axes")) {
		return false
	}
	m := c.Cost.Mesh()
	axes, err := m.ParseAxes(op.Strings(o, "axes"))
	return err == nil && int64(m.Count(axes)) == p
}

// constantInt is the value of v, an integer constant of one element.
func constantInt(v *ir.Value) (int64, bool) {
	t := v.Tensor()
	if v.Op == nil || v.Op.Name != op.Constant || t == nil || t.Rank() > 0 || !t.Elem.IsInt() {
		return 0, false
	}
	list := v.Op.Ints("value")
	if len(list) != 1 {
		return 0, false
	}
	return list[0], true
}
