// Package unfuse is the pass that takes kernels apart that cannot run as one.
package unfuse

import (
	"slices"

	"dmir/compile/kernel"
	"dmir/compile/pass"
	"dmir/dialect/ir"
	"dmir/dialect/op"
)

// Pass makes single ops of kernels that cannot run as one, so that the passes
// behind it find other kernels for them.
func Pass() pass.Pass {
	return pass.Pass{Name: "unfuse", Summary: "kernels that cannot run as one are replaced by their ops", Run: run}
}

func run(u *pass.Unit) error {
	for _, o := range slices.Clone(u.Body().Ops) {
		if o.Name != op.Kernel || o.Body(0) == nil {
			continue
		}
		why := unfit(o)
		if why == nil {
			continue
		}
		u.Warn(pass.Errorf(o, "DM806", "these ops run as several kernels: %v", why))
		for i, v := range ir.InlineBlock(o.Body(0), o, nil) {
			ir.ReplaceUses(o.Results[i], v)
		}
		ir.Erase(o)
	}
	return nil
}

// unfit is why the kernel o cannot run as one, nil where it can.
func unfit(o *ir.Op) error {
	body := o.Body(0)
	last := body.Terminator()
	if last == nil {
		return nil // its error is reported elsewhere
	}
	return kernel.UnfitOver(body.Ops[:len(body.Ops)-1], last.Operands, kernel.Updating(new(op.InPlace), o))
}
