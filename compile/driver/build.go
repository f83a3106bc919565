package driver

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"dmir/analysis/machine"
	"dmir/base/local"
	"dmir/compile/devices"
	"dmir/compile/kernel"
	"dmir/compile/pass"
	"dmir/compile/pipeline"
	"dmir/compile/target"
	"dmir/dialect/flatten"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/gpu/artifact"
	"dmir/gpu/device"
	"dmir/syntax/diag"
)

// BuildOptions are how a function is compiled.
type BuildOptions struct {
	Machine *machine.Machine // what predicted times are for; never nil
	Arch    string           // "sm_90a"; empty for code that all architectures run
	Bind    map[string]int64
	// Devices is how many devices run the program together; 0: one; pass.AllDevices: those of
	// its mesh. Mesh are other sizes of the mesh's axes.
	Devices int
	Mesh    map[string]int64
	Grad    bool     // compile the function's joint forward and backward graph
	Skip    []string // passes that are left out
	// TilesFile holds measured tiles; empty: the user's, which Tune writes.
	TilesFile string
	TileRank  int // as target.Options
	// Observe is called after each pass, with the module behind it.
	Observe func(s pass.Stage, u *pass.Unit)
	// Warn is called with each warning about a program that compiles.
	Warn func(diag.Diagnostic)
	// Progress is called as passes start and go on: the share of all of them, from 0
	// to 1, that is done.
	Progress func(pass string, done float64)
}

// Build compiles fn, a function of m, which stays as it is, for the target of the
// architecture. An error that belongs to a place in the program is a *pass.Error.
func Build(ctx context.Context, m *ir.Module, fn *ir.Func, o BuildOptions) (out *artifact.Program, err error) {
	t := target.For(o.Arch)
	o.Machine = target.Machine(t, o.Machine)
	if o.TilesFile == "" && o.Arch != "" {
		if file, err := t.TilesFile(); err == nil {
			o.TilesFile = file
		}
	}
	g := t.Generator(target.Options{Arch: o.Arch, TilesFile: o.TilesFile, TileRank: o.TileRank})
	m = m.Clone()
	if err := devices.Mesh(m, o.Mesh); err != nil {
		return nil, err
	}
	u := &pass.Unit{Ctx: ctx, Module: m, Func: m.Func(fn.Name), Machine: o.Machine, Options: pass.Options{Bind: o.Bind, Grad: o.Grad, Devices: o.Devices}}
	passes := slices.DeleteFunc(pipeline.For(g), func(p pass.Pass) bool { return slices.Contains(o.Skip, p.Name) })
	u.Progress = overall(o.Progress, passes)
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
	u.Begin("code")
	var stages []artifact.Stage
	err = pass.Each(u, func(u *pass.Unit) error {
		out, err = g.Program(u)
		if err == nil {
			out.State = op.State(u.Func.Op)
			stages = append(stages, artifact.Stage{Program: out})
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if u.Parts != nil {
		out = inStages(u, stages)
	}
	out.Checks, out.Returned = u.Checks, u.Returned
	return out, nil
}

// inStages is the program of u, whose parts were compiled.
func inStages(u *pass.Unit, stages []artifact.Stage) *artifact.Program {
	unused := map[int]artifact.Buffer{}
	for i, a := range u.Func.Args {
		b := artifact.Buffer{Name: strings.TrimPrefix(a.Name, "%"), Elem: a.Elem().String()}
		if shape, ok := kernel.ShapeOf(a); ok {
			b.Shape = shape
		}
		b.Bytes = b.Size()
		unused[i] = b
	}
	for i, p := range u.Parts {
		stages[i].Inputs, stages[i].Outputs = p.Args, p.Results
		for _, n := range p.Args {
			delete(unused, n)
		}
	}
	p := artifact.InStages(u.Func.Name, op.OnlyOf(u.Parts[0].Func.Op).Axis, stages, unused)
	p.State = op.State(u.Func.Op)
	return p
}

// overall makes progress within passes, and behind them that of the code, that of all.
func overall(progress func(pass string, done float64), passes []pass.Pass) func(string, float64) {
	if progress == nil {
		return nil
	}
	return func(name string, done float64) {
		at := slices.IndexFunc(passes, func(p pass.Pass) bool { return p.Name == name })
		if at < 0 {
			at = len(passes)
		}
		progress(name, (float64(at)+done)/float64(len(passes)+1))
	}
}

// DefaultArch is the default architecture of code: this machine's processor where m is
// one, else that of this machine's device, else that of m, which may be nil.
func DefaultArch(m *machine.Machine) string {
	if m != nil && m.CPU {
		for _, t := range target.All() {
			if _, ok := t.(target.Hosted); ok {
				return t.DefaultArch()
			}
		}
	}
	if d := device.Default(); d != nil {
		return d.Arch()
	}
	if m != nil && m.Arch != "" {
		return m.Arch
	}
	return target.For("").DefaultArch()
}

// Compiled is a program that can run without its text, including the machine
// code for each architecture.
type Compiled struct {
	Program *artifact.Program
	Code    []*target.Code
	Gaps    []pass.Gap // of the kernels
}

// Parts are those that devices run: c itself, or the stages of a program in stages.
func (c Compiled) Parts() []Compiled {
	all := c.Program.Parts()
	if c.Program.Stages == nil {
		return []Compiled{c}
	}
	out := make([]Compiled, len(all))
	for i, p := range all {
		out[i].Program = p
		for k := i; k < len(c.Code); k += len(all) { // by architecture, then by stage
			out[i].Code = append(out[i].Code, c.Code[k])
		}
		for _, g := range c.Gaps {
			if g.Func == p.Name {
				out[i].Gaps = append(out[i].Gaps, g)
			}
		}
	}
	return out
}

// InvalidError reports that a compiled program breaks a rule of artifacts,
// which is a defect of the compiler.
type InvalidError struct{ Err error }

func (e *InvalidError) Error() string { return e.Err.Error() }

// CompileFor compiles fn for archs, which are of one target: once for all of them, and
// once more for each that has specific code where there are several. The first result runs on
// all, the others are its variants. If code is false the programs have no
// machine code. progress is called at the start of each part.
func CompileFor(ctx context.Context, m *ir.Module, fn *ir.Func, archs []string, code bool, o BuildOptions, progress func(what string, done, total int)) ([]Compiled, error) {
	planned := 0 // programs
	build := func(arch string) (Compiled, error) {
		o.Arch = arch
		var gaps []pass.Gap
		observe := o.Observe
		with := o
		with.Observe = func(s pass.Stage, u *pass.Unit) {
			if gaps = u.Gaps; observe != nil {
				observe(s, u)
			}
		}
		with.Progress = func(pass string, done float64) {
			progress(pass, planned*100+int(done*100), (len(archs)+1)*100)
		}
		p, err := Build(ctx, m, fn, with)
		if err != nil {
			return Compiled{}, err
		}
		if err := p.Check(); err != nil {
			return Compiled{}, &InvalidError{err}
		}
		planned++
		o.Warn = nil // later builds have the same text
		describe(p, fn, arch)
		describeSparse(p, fn, o.Bind)
		return Compiled{Program: p, Gaps: gaps}, nil
	}
	if len(archs) <= 1 {
		arch := ""
		if len(archs) == 1 {
			arch = archs[0]
		}
		c, err := build(arch)
		if err != nil {
			return nil, err
		}
		if arch != "" && code {
			err = c.add(ctx, arch, coding(progress, arch, 1, 2))
		}
		return []Compiled{c}, err
	}
	base, rest := "", archs
	if t := target.For(archs[0]); t != target.For("") { // which has no portable code: the first is the program
		base, rest = archs[0], archs[1:]
	}
	first, err := build(base)
	if err == nil && base != "" && code {
		err = first.add(ctx, base, coding(progress, base, 0, len(archs)+1))
	}
	if err != nil {
		return nil, err
	}
	all := []Compiled{first}
	for i, arch := range rest {
		report := coding(progress, arch, i+1, len(archs)+1)
		own, err := build(arch)
		if err != nil {
			return nil, err
		}
		if own.Program.Arch() == "" { // nothing in it is specific to this architecture
			if err := all[0].add(ctx, arch, report); err != nil {
				return nil, err
			}
			continue
		}
		if err := own.add(ctx, arch, report); err != nil {
			return nil, err
		}
		for i, p := range all[0].Program.Parts() {
			p.Variants = append(p.Variants, own.Program.Parts()[i])
		}
		all = append(all, own)
	}
	return all, nil
}

// coding reports the compilation for arch, part at of all, whose kernels are the progress.
func coding(progress func(what string, done, total int), arch string, at, all int) func(kernel string, done, total int) {
	what := "code for " + arch
	progress(what, at*100, all*100)
	return func(kernel string, done, total int) {
		progress(fmt.Sprintf("%s: %s (%d/%d)", what, kernel, done, total), at*100+100*done/total, all*100)
	}
}

// add adds the machine code for an architecture.
func (c *Compiled) add(ctx context.Context, arch string, progress func(kernel string, done, total int)) (err error) {
	t := target.For(arch)
	for _, p := range c.Program.Parts() {
		var code *target.Code
		if s, ok := t.(target.Stepwise); ok {
			code, err = s.CompileStepwise(ctx, p, arch, progress)
		} else {
			code, err = t.Compile(ctx, p, arch)
		}
		if err != nil {
			return err
		}
		p.Images = append(p.Images, code.Image)
		c.Code = append(c.Code, code)
	}
	return nil
}

// describe adds the data to p that a run without the text of fn reads.
func describe(p *artifact.Program, fn *ir.Func, arch string) {
	for _, q := range p.Parts() {
		q.Headers = target.For(arch).Headers()
	}
	if key, err := local.Key(true); err == nil { // without one the file counts as another user's
		p.Key = key
	}
	if results := resultsOf(fn); p.Own() == len(results) {
		for _, r := range results {
			p.Results = append(p.Results, r.Name)
		}
		for i := len(results); i < len(p.Outputs); i++ {
			p.Results = append(p.Results, p.Buffers[p.Outputs[i]].Name)
		}
	}
	fn, _ = flatten.Func(fn)
	for i := range p.Inputs { // fn's arguments, followed by the cotangents of its gradient
		var d artifact.Default
		if v, ok := types.NumberOf(op.ArgAttr(fn, i, op.InitAttr)); ok {
			d.Init = &v
		}
		if v, ok := types.NumberOf(op.ArgAttr(fn, i, op.StddevAttr)); ok {
			d.Stddev = &v
		}
		if a := op.InitialArray(fn.Op, i); a != nil {
			d.Array = &artifact.Array{Path: a.File().Path, Name: a.File().Name}
		}
		p.Defaults = append(p.Defaults, d)
	}
}
