package kernel

import (
	"slices"

	"dmir/dialect/ir"
)

// Unfit is the reason why ops, in an executable order, cannot run as one kernel
// that yields outs; nil where they can. See Of.
func Unfit(ops []*ir.Op, outs []*ir.Value) error { return UnfitOver(ops, outs, nil) }

// UnfitOver is Unfit for a kernel that updates in place; see OfOver.
func UnfitOver(ops []*ir.Op, outs []*ir.Value, over map[*ir.Value]bool) error {
	for i, v := range outs {
		if slices.Contains(outs[:i], v) {
			return &Reason{Msg: "it yields " + v.Name + " twice"}
		}
	}
	_, err := OfOver(ops, outs, over)
	return err
}
