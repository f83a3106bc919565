package op

import (
	"dmir/dialect/dim"
	"dmir/dialect/ir"
)

var (
	SameDim   = sameDim
	ShapeText = shapeText
	DimText   = dimText
)

// Traffic is the bytes o reads of each operand and the bytes it writes, as the
// table of definitions states: every operand and every result once in full unless
// the op's entry has its own function.
func Traffic(o *ir.Op) (read []dim.Dim, written dim.Dim) {
	if HasTraffic(o) && (Valid(o) || Grouped(o)) {
		return TrafficOf(o, false)
	}
	return wholeTraffic(o)
}

// PatternVisits is how many values SamePattern looks at.
func PatternVisits(a, b *ir.Value) int {
	p := &patterns{map[*ir.Value]*ir.Value{}}
	p.alike(a, b)
	return len(p.roots)
}
