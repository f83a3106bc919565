package schedule

import (
	"slices"

	"dmir/compile/pass"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// head is the op with the workspace of b as an attribute: the function or, of a
// region, the terminator.
func head(b pass.Body) *ir.Op {
	if b.IsRegion() {
		return b.Terminator()
	}
	return b.Func.Op
}

// RegionBytes is the scratch memory of o, a dm.while or a dm.if: the memory of
// its larger region, followed, from offset swap on, by the carried values that
// are Swapped.
func RegionBytes(o *ir.Op) (total, swap int64) {
	for n := range o.Regions {
		if t := o.Body(n).Terminator(); t != nil {
			swap = max(swap, t.Int(WorkspaceAttr, 0))
		}
	}
	if swap < 0 || swap > maxBytes {
		return swap, swap
	}
	swap = roundUp(swap)
	total = swap
	for _, i := range Swapped(o) {
		if n, ok := o.Results[i].Tensor().Bytes().Int(); ok {
			total += roundUp(n)
		}
	}
	return total, swap
}

// Swapped are the indices of the values carried by o, a dm.while, whose next
// value may be in the memory of another carried value: they are copied to
// temporary memory before any is overwritten.
func Swapped(o *ir.Op) (out []int) {
	if o.Name != op.While {
		return nil
	}
	body := o.Body(1)
	for i, v := range body.Terminator().Operands {
		v = op.Base(v)
		if v.Block == body && v.Index != i && v.Index < len(o.Results) && i < len(o.Results) && v.Tensor() != nil {
			out = append(out, i)
		}
	}
	return out
}

// hoist moves the constants in regions of fn's control flow to its start: they
// are live throughout, and the memory of a region is not.
func hoist(fn *ir.Func) {
	var found []*ir.Op
	var look func(b *ir.Block)
	look = func(b *ir.Block) {
		for _, o := range b.Ops {
			for n := range o.Regions {
				if inner := o.Body(n); inner != nil && pass.Controls(o) {
					for _, c := range inner.Ops {
						if c.Name == op.Constant {
							found = append(found, c)
						}
					}
					look(inner)
				}
			}
		}
	}
	look(fn.Body)
	for _, c := range found {
		from := c.Parent
		from.Ops = slices.DeleteFunc(from.Ops, func(o *ir.Op) bool { return o == c })
		c.Parent = fn.Body
	}
	fn.Body.Ops = slices.Concat(found, fn.Body.Ops)
}

// estimate records the peak of a region in the order found, for ordering the
// enclosing body; the plan has the exact size.
func estimate(b pass.Body, bytes int64) {
	if b.IsRegion() {
		head(b).SetAttr(WorkspaceAttr, types.Int{V: roundUp(bytes)})
	}
}
