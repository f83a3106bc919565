package cuda

import (
	"slices"

	"dmir/dialect/ir"
	"dmir/syntax/source"
)

// line is where o stands in the program; 0 where it has no place.
func (b *builder) line(o *ir.Op) int {
	if o == nil || o.Span == (source.Span{}) {
		return 0
	}
	return b.lineAt(o.Span.Start)
}

func (b *builder) lineAt(offset int) int {
	if b.source == nil {
		return 0
	}
	line, _ := b.source.Human(offset)
	return line
}

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
