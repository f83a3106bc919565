package kernel

import (
	"slices"

	"dmir/dialect/ir"
)

// Unfit is why ops, which are in an order that computes them, cannot run as one
// kernel that yields outs; nil where they can. See Of.
func Unfit(ops []*ir.Op, outs []*ir.Value) error {
	for i, v := range outs {
		if slices.Contains(outs[:i], v) {
			return &Reason{Msg: "it yields " + v.Name + " twice"}
		}
	}
	_, err := Of(ops, outs)
	return err
}
