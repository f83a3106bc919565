// Package microbatch is the pass that cuts a training step into micro-batches. Package microbatch of the
// dialect does it; this one is about programs.
package microbatch

import (
	"dmir/compile/pass"
	"dmir/dialect/microbatch"
	"dmir/syntax/diag"
)

// Codes are the reasons why a step is not cut.
var Codes = diag.Register([]diag.Code{
	{Code: "DM834", Name: "not-cut", Doc: "A step with `dm.microbatches` is run one micro-batch after the other, and computes what it computes of the whole batch: sums over it are accumulated. This step cannot be cut so: no argument is a batch, it has too few rows for so many micro-batches, or an op needs all rows at once.", Help: "do without `dm.microbatches`"},
})

// Pass cuts the batch of a function with dm.microbatches.
func Pass() pass.Pass {
	return pass.Pass{Name: "microbatch", Summary: "the step cut into micro-batches, whose gradients are accumulated", Run: run}
}

func run(u *pass.Unit) error {
	fn, problem := microbatch.Split(u.Module, u.Func)
	if problem != nil {
		return u.Refused("DM834", problem)
	}
	if fn != nil {
		u.Replace(fn)
	}
	return nil
}
