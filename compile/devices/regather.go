package devices

import (
	"dmir/compile/pass"
	"dmir/dialect/op"
	"dmir/dialect/partition"
)

// Regather is the pass of partition.Regather. Behind it ops have no op.BackwardAttr, but those of stages.
func Regather() pass.Pass {
	return pass.Pass{Name: "regather", Summary: "arguments that are gathered again for the backward pass", Run: runRegather}
}

func runRegather(u *pass.Unit) error {
	f := u.Func
	if f.Body == nil {
		return nil
	}
	if !alone(u) {
		partition.Regather(f)
	}
	if !op.Staged(f.Body.Ops) {
		for _, o := range f.Body.Ops {
			o.RemoveAttr(op.BackwardAttr)
		}
	}
	return nil
}
