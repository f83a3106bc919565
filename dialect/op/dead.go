package op

import (
	"slices"

	"dmir/dialect/ir"
)

// Ends reports whether o ends a block by handing values on: a function's return, a
// region's yield.
func Ends(o *ir.Op) bool { return o.Name == "func.return" || Of(o).Is(Terminator) }

// HasEffect reports whether o must stay though its results are unused: it ends a
// block, checks something, or is not known to have no effect.
func HasEffect(o *ir.Op) bool {
	d := Of(o)
	if !d.Is(Pure) || d.Is(Terminator) {
		return true
	}
	for _, r := range o.Regions {
		for _, b := range r.Blocks {
			for _, inner := range b.Ops {
				if HasEffect(inner) && !Of(inner).Is(Terminator) {
					return true
				}
			}
		}
	}
	return false
}

// RemoveDead erases the ops of b, and of the regions in it, whose results
// are unused and that have no effect; it reports whether there were any.
func RemoveDead(b *ir.Block) bool {
	dead := map[*ir.Op]bool{}
	markDead(b, dead)
	if len(dead) > 0 {
		ir.EraseSet(b, dead)
	}
	return len(dead) > 0
}

// markDead adds to dead the ops of b that only dead ops use, and what is in their
// regions. Users stand behind what they use.
func markDead(b *ir.Block, dead map[*ir.Op]bool) {
	for _, o := range slices.Backward(b.Ops) {
		if !used(o, dead) && !HasEffect(o) {
			ir.Walk([]*ir.Op{o}, func(inner *ir.Op) bool {
				dead[inner] = true
				return true
			})
			continue
		}
		for _, r := range o.Regions {
			for _, inner := range r.Blocks {
				markDead(inner, dead)
			}
		}
	}
}

func used(o *ir.Op, dead map[*ir.Op]bool) bool {
	return slices.ContainsFunc(o.Results, func(v *ir.Value) bool {
		return slices.ContainsFunc(v.Uses, func(u ir.Use) bool { return !dead[u.Op] })
	})
}
