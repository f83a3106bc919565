package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"dmir/base/escape"
	"dmir/compile/driver"
	"dmir/compile/pass"
	"dmir/compile/pipeline"
	"dmir/compile/target"
	"dmir/dialect/ir"
	"dmir/dialect/print"
	"dmir/gpu/artifact"
)

// Passes are the names of the passes whose texts a build has, in their order.
func Passes() []string { return pipeline.Names() }

// compile takes the function through all passes to code, and keeps its text after
// each.
func (t *task) compile(ctx context.Context) *Result {
	start := time.Now()
	b := &Build{Arch: driver.DefaultArch(t.program.Target), Stages: []Stage{}, AsWrittenBytes: -1, MinimumBytes: -1}
	var unprintable error
	total := len(pipeline.Names()) + 1
	p, err := driver.Build(ctx, t.module, t.fn, driver.BuildOptions{
		Machine: t.program.Target, Arch: b.Arch, Bind: t.program.Bind,
		Observe: func(s pass.Stage, u *pass.Unit) {
			text, err := stageText(u, s.Pass)
			if err != nil {
				unprintable = errors.Join(unprintable, err)
			}
			b.Stages = append(b.Stages, Stage{s.Pass.Name, text, s.Elapsed.Nanoseconds()})
			t.progress(Progress{Done: len(b.Stages), Total: total, Note: "after " + s.Pass.Name})
		},
	})
	if err = errors.Join(err, unprintable); err != nil {
		return t.failed(err)
	}
	b.CUDA, b.WorkspaceBytes = p.Source, p.Workspace
	if f := t.program.Cost(t.fn); f != nil && f.Unknown == 0 {
		if moved, ok := f.Moved().Int(); ok {
			b.AsWrittenBytes = moved
		}
		if least, ok := f.Minimum().Int(); ok {
			b.MinimumBytes = least
		}
	}
	var code *target.Code
	if t.req.Code {
		t.progress(Progress{Done: total - 1, Total: total, Note: "machine code for " + b.Arch})
		code, err = target.For(b.Arch).Compile(ctx, p, b.Arch)
		if err == nil {
			b.PTX, err = code.Assembly(ctx)
		}
		f, _ := artifact.FailureOf(err)
		switch {
		case f.Reason == artifact.MissingTool, f.Reason == artifact.UnknownArch:
			b.NoCode = err.Error()
		case err != nil:
			return t.failed(err)
		default:
			b.Compiler = code.Compiler
		}
	}
	t.steps(b, p, code)
	t.res.OK, t.res.Build, t.res.ElapsedNs = true, b, time.Since(start).Nanoseconds()
	return t.res
}

// steps lists the launches of p, with what their machine code takes.
func (t *task) steps(b *Build, p *artifact.Program, code *target.Code) {
	for i, n := range p.Times() {
		s := &p.Steps[i]
		if s.Decides() {
			continue
		}
		k := Kernel{
			Name: s.Name, Lines: []int{}, Runs: n, PredictedNs: s.TimeNs * float64(n), RoofNs: t.roof(s.TimeNs) * float64(n),
			ReadBytes: artifact.Repeated(s.ReadBytes, n), WrittenBytes: artifact.Repeated(s.WrittenBytes, n), Differs: s.Differs,
		}
		if s.Kind == artifact.StepCopy || s.Kind == artifact.StepCollective {
			k.Class = string(s.Kind)
		}
		if s.Kind == artifact.StepCollective {
			k.Lines = p.LinesOf(s)
		}
		b.MovedBytes += k.ReadBytes + k.WrittenBytes
		if of := p.KernelOf(s); of != nil {
			k.Class, k.Lines, k.First, k.Last, k.SharedBytes = of.Class, p.LinesOf(s), of.First, of.Last, of.Block.Shared
			if code != nil {
				u := code.Kernel(of.Name)
				k.Registers, k.SpillBytes = u.Registers, u.SpillStores+u.SpillLoads
				k.SharedBytes += u.Shared
			}
		}
		t.res.Kernels = append(t.res.Kernels, k)
	}
}

// stageText is the function behind a pass and what it calls.
func stageText(u *pass.Unit, p pass.Pass) (string, error) {
	m := &ir.Module{Src: u.Module.Src, Aliases: u.Module.Aliases}
	for _, f := range pass.Reached(u.Module, u.Func) {
		m.Ops = append(m.Ops, f.Op)
	}
	text, err := print.Source(m)
	if err != nil {
		return "", fmt.Errorf("the function after %s cannot be printed: %w", p.Name, err)
	}
	return fmt.Sprintf("// @%s after %s: %s\n%s", escape.Comment(u.Func.Name), p.Name, p.Summary, text), nil
}
