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
	removed := false
	for i := len(b.Ops) - 1; i >= 0; i-- {
		o := b.Ops[i]
		if !used(o) && !HasEffect(o) {
			ir.EraseAll(o)
			removed = true
			continue
		}
		for _, r := range o.Regions {
			for _, inner := range r.Blocks {
				removed = RemoveDead(inner) || removed
			}
		}
	}
	return removed
}

func used(o *ir.Op) bool {
	return slices.ContainsFunc(o.Results, func(v *ir.Value) bool { return len(v.Uses) > 0 })
}
