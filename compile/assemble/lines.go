package assemble

import (
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/syntax/source"
)

// line is the line of o in the program; 0 where it has none.
func (b *builder) line(o *ir.Op) int {
	if b.source == nil || o == nil || o.Span == (source.Span{}) {
		return 0
	}
	line, _ := b.source.Human(o.Span.Start)
	return line
}

// from records the lines of kernel n in the program: those of o and of its ops,
// ascending.
func (b *builder) from(n int, o *ir.Op) {
	k := &b.out.Kernels[n]
	note := func(o *ir.Op) bool {
		if line := b.line(o); line > 0 && o.Name != op.Constant && !slices.Contains(k.Lines, line) {
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

// lines are the lines of the program of o, a kernel or an op: its own first,
// then those of its ops in order.
func (b *builder) lines(o *ir.Op) []int {
	var out []int
	ir.Walk([]*ir.Op{o}, func(o *ir.Op) bool {
		if line := b.line(o); line > 0 && !slices.Contains(out, line) {
			out = append(out, line)
		}
		return true
	})
	return out
}
