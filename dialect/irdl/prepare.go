package irdl

import (
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// The attributes by which MLIR tells the values of optional operands and
// results apart.
const (
	OperandSegments = "operandSegmentSizes"
	ResultSegments  = "resultSegmentSizes"
)

// Prepare adds to the ops of m, which should be a copy, what their generic form
// needs to be verified with the generated definition: segment sizes where
// values of different types are variadic, and an empty region for an absent
// optional one. It reports the first op with more than Slots such values, nil
// where there is none.
func Prepare(m *ir.Module) (tooMany *ir.Op) {
	ir.Walk(m.Ops, func(o *ir.Op) bool {
		d := op.Of(o)
		if d == nil {
			return true
		}
		for len(o.Regions) < len(d.Regions) {
			o.Regions = append(o.Regions, &ir.Region{Op: o})
		}
		if !segments(o, OperandSegments, d.Operands, operandSlots(d), len(o.Operands)) ||
			!segments(o, ResultSegments, d.Results, resultSlots(d), len(o.Results)) {
			if tooMany == nil {
				tooMany = o
			}
		}
		return true
	})
	return tooMany
}

func segments(o *ir.Op, attr string, ps []op.Param, slots string, n int) bool {
	if slots == "" {
		return true
	}
	single := len(ps) - 1
	if n-single > Slots {
		return false
	}
	sizes := make([]string, 0, single+Slots)
	for i := range single + Slots {
		size := "0"
		if i < n {
			size = "1"
		}
		sizes = append(sizes, size)
	}
	o.SetAttr(attr, types.Raw("array<i32: "+strings.Join(sizes, ", ")+">"))
	return true
}
