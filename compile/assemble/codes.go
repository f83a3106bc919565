package assemble

import (
	"dmir/compile/kernel"
	"dmir/compile/pass"
	"dmir/dialect/ir"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// Codes lists the diagnostics of the package.
var Codes = diag.Register([]diag.Code{
	{Code: "DM850", Name: "no-kernel", Doc: "A kernel contains ops that cannot run as one kernel: reductions over different rows, a contraction whose result is reduced, or an op that has a kernel of its own.", Help: "take ops out of the kernel, or let `dmir opt` fuse it again"},
	{Code: "DM851", Name: "scratch", Doc: "A kernel needs more scratch memory than `dm.scratch` of its step reserves, so it would overwrite other values of the plan. The pass kernels writes the attribute; it is too small if it or the tile (`dm.tile`) was edited afterwards.", Help: "run the passes kernels and plan again, or write the number that the message gives and run plan"},
	{Code: "DM852", Name: "unsound-kernel", Doc: "The code generator made a kernel that reads a value before it is computed. This is a bug in dmir, not in the program; the kernel is refused, and its text is part of the message.", Help: "report the program and this message; `dmir run --device reference` runs it without kernels"},
})

func wrap(o *ir.Op, err error) error {
	if err == nil {
		return nil
	}
	if u, ok := err.(*InvalidError); ok {
		return pass.Errorf(o, "DM852", "%v", u)
	}
	if r, ok := err.(*kernel.Reason); ok && r.Op != nil && r.Op.Span != (source.Span{}) {
		o = r.Op
	}
	return failure(o, "%v", err)
}

func failure(o *ir.Op, format string, args ...any) error {
	return pass.Errorf(o, "DM850", format, args...)
}
