package driver

import (
	"context"
	"slices"

	"dmir/analysis/machine"
	"dmir/compile/cuda"
	"dmir/compile/pass"
	"dmir/compile/pipeline"
	"dmir/dialect/ir"
	"dmir/gpu/artifact"
	"dmir/syntax/diag"
)

// BuildOptions are how a function is compiled.
type BuildOptions struct {
	Machine *machine.Machine // what predicted times are for; never nil
	Arch    string           // "sm_90a"; empty for code that all architectures run
	Bind    map[string]int64
	Grad    bool     // compile the function's joint forward and backward graph
	Skip    []string // passes that are left out
	// TilesFile holds measured tiles; empty: the user's, which Tune writes.
	TilesFile string
	TileRank  int // as pass.Options
	// Observe is told of each pass that is done, with the module behind it.
	Observe func(s pass.Stage, u *pass.Unit)
	// Warn is told what a person should know of a program that compiles.
	Warn func(diag.Diagnostic)
}

// Build compiles fn, a function of m, which stays as it is. An error that
// belongs to a place in the program is a *pass.Error.
func Build(ctx context.Context, m *ir.Module, fn *ir.Func, o BuildOptions) (out *artifact.Program, err error) {
	if o.TilesFile == "" && o.Arch != "" {
		if file, err := TilesFile(); err == nil {
			o.TilesFile = file
		}
	}
	m = m.Clone()
	u := &pass.Unit{Ctx: ctx, Module: m, Func: m.Func(fn.Name), Machine: o.Machine, Options: pass.Options{Bind: o.Bind, Arch: o.Arch, Grad: o.Grad, TilesFile: o.TilesFile, TileRank: o.TileRank}}
	passes := slices.DeleteFunc(pipeline.Passes(), func(p pass.Pass) bool { return slices.Contains(o.Skip, p.Name) })
	err = pass.Run(u, passes, func(s pass.Stage) error {
		if o.Observe != nil {
			o.Observe(s, u)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, w := range u.Warnings {
		if o.Warn != nil {
			d := w.Diagnostic()
			d.Severity = diag.Warning
			o.Warn(d)
		}
	}
	defer pass.Recover(&err, u.Func, "the code generator")
	return cuda.Program(ctx, m, u.Func, cuda.Target{Arch: o.Arch, Machine: o.Machine})
}
