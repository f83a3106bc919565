package inline

import (
	"slices"
	"strings"

	"dmir/compile/pass"
	"dmir/dialect/ir"
	"dmir/dialect/op"
)

// Check is an op with which a program states what it expects of itself, and the
// places among the results of the function behind inlining that hold its operands.
type Check struct {
	Op      *ir.Op
	Results []int
}

// Checks are the check ops that stand in the body of f itself. Kernels compare
// nothing: the function returns, behind its own results, what its checks look
// at, for the host to compare.
func Checks(f *ir.Func) []Check {
	checks, _ := lookedAt(f)
	return checks
}

// lookedAt is the checks of f, and what it returns with what they look at.
func lookedAt(f *ir.Func) (checks []Check, returned []*ir.Value) {
	ret := f.Body.Terminator()
	if ret == nil || ret.Name != op.Return {
		return nil, nil
	}
	returned = slices.Clone(ret.Operands)
	for _, o := range f.Body.Ops {
		if !strings.HasPrefix(o.Name, "check.expect_") || len(o.Results) > 0 {
			continue
		}
		c := Check{Op: o}
		for _, v := range o.Operands {
			at := slices.Index(returned, v)
			if at < 0 {
				at = len(returned)
				returned = append(returned, v)
			}
			c.Results = append(c.Results, at)
		}
		checks = append(checks, c)
	}
	return checks, returned
}

// giveChecks has the function return what its checks look at, in their place.
func giveChecks(u *pass.Unit) {
	checks, returned := lookedAt(u.Func)
	if len(checks) == 0 {
		return
	}
	for _, c := range checks {
		u.Warn(pass.Errorf(c.Op, "DM807", "%s is not compiled: the value that it checks is returned instead", c.Op.Name))
		ir.Erase(c.Op)
	}
	u.Func.Body.Terminator().SetOperands(returned...)
	u.Func.Retype()
}
