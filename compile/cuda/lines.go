package cuda

import (
	"slices"

	"dmir/dialect/ir"
)

// from notes the lines of the program that kernel n came from: those of o and of
// the ops in it, the first line first.
func (b *builder) from(n int, o *ir.Op) {
	k := &b.out.Kernels[n]
	note := func(o *ir.Op) bool {
		if line := b.line(o); line > 0 && o.Name != "dm.constant" && !slices.Contains(k.Lines, line) {
			k.Lines = append(k.Lines, line)
		}
		return true
	}
	note(o)
	for _, r := range o.Regions {
		for _, inner := range r.Blocks {
			ir.Walk(inner.Ops, note)
		}
	}
	slices.Sort(k.Lines)
}
