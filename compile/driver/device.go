package driver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"dmir/compile/interp"
	"dmir/compile/pass"
	"dmir/compile/target"
	"dmir/compile/tensor"
	"dmir/dialect/types"
	"dmir/gpu/artifact"
	"dmir/gpu/device"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// Kernel is the profile of one step on a device.
type Kernel struct {
	Name        string
	Class       string  // of its kernel, or "copy", "loop", "branch"; "" for a fill
	Decision    bool    // a loop or a branch, which moves nothing
	Runs        int64   // how often it ran; figures are those of all runs
	Lines       []int   // of the program's text, 1-based
	PredictedNs float64 // by the cost model, for the machine that the program was built for
	MeasuredNs  float64 // 0: not measured
	FLOP        int64
	// Predicted and, where the device counts, counted bytes from and to memory.
	ReadBytes, WrittenBytes               int64
	Counted                               bool
	CountedReadBytes, CountedWrittenBytes int64
	Differs                               string // why the counted bytes differ from the predicted; empty: no known reason
}

// Codes lists the errors of devices.
var Codes = diag.Register([]diag.Code{
	{Code: "DM624", Name: "labels-outside", Doc: "An input that `dm.cross_entropy` or `dm.embedding` takes for numbers of classes or of rows has numbers outside of that range. They count as the nearest valid one: a run goes on and learns from wrong labels.", Help: "number classes from 0, or give the op as many as there are"},
	{Code: "DM860", Name: "kernel-fault", Doc: "A kernel failed: it accessed memory outside its buffers, read memory that nothing wrote, had a data race, hung or crashed. Kernels are made by dmir, so this is a bug in dmir unless the schedule was edited by hand.", Help: "report it with the file; `--device reference` runs the program"},
	{Code: "DM861", Name: "kernel-text", Doc: "The text of a kernel does not compile. Kernels are written by dmir, so this is a bug in dmir.", Help: "report it with the file; `--device reference` runs the program"},
})

// runOn compiles the job's function and runs it on d.
func runOn(ctx context.Context, d device.Device, j Job) (*Result, error) {
	args, err := interp.Inputs(ctx, j.Fn, j.Program.Bind, j.Seed, j.Inputs)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	p, warnings, err := j.build(ctx, d)
	if err != nil {
		return nil, err
	}
	took := time.Since(start)
	res, err := RunArtifact(ctx, d, p, args, device.Options{Runs: j.Runs, Progress: j.Progress})
	var short *MemoryError
	if errors.As(err, &short) {
		return nil, &interp.Error{Code: "DM705", Msg: short.Error(), Help: diag.Find("DM705").Help, Span: j.Fn.Op.Head}
	}
	if err != nil {
		return nil, placed(err, j.Module.Src)
	}
	res.Compile += took
	res.Warnings = warnings
	for i, r := range resultsOf(j.Fn) {
		res.Outputs[i].Name = r.Name
	}
	return res, nil
}

// DeviceFor returns the device called name for a compiled program, as device.Find;
// "auto" is the best one that runs programs of its target.
func DeviceFor(name string, p *artifact.Program) (d device.Device, why string, err error) {
	t := target.Named(p.Target)
	if t == nil {
		return nil, "", fmt.Errorf("@%s was compiled for %q, which this version does not know", p.Name, p.Target)
	}
	kinds := t.Devices()
	asked, _, _ := strings.Cut(name, ":")
	if named := slices.ContainsFunc(kinds, func(k device.Kind) bool { return k.Name == asked }); !named && name != "" && name != "auto" {
		if _, _, err := device.Find(name); err != nil {
			return nil, "", err
		}
		var names []string
		for _, k := range kinds {
			names = append(names, k.Name)
		}
		return nil, "", fmt.Errorf("@%s was compiled for %s", p.Name, strings.Join(names, " and "))
	}
	return device.FindAmong(kinds, name, len(p.Parts()[0].Images) > 0)
}

// targeted is the job with a machine.
func (j Job) targeted() Job {
	if j.Machine == nil {
		j.Machine = j.Program.Target
	}
	return j
}

// build compiles the job's function for d, or finds it compiled. Warnings are about the program's text.
func (j Job) build(ctx context.Context, d device.Device) (p *artifact.Program, warnings []diag.Diagnostic, err error) {
	j = j.targeted()
	path := j.keptPath(ctx, d)
	if p, warnings := j.kept(ctx, d, path); p != nil {
		return p, warnings, nil
	}
	warn := func(d diag.Diagnostic) { warnings = append(warnings, d) }
	p, err = Build(ctx, j.Module, j.Fn, BuildOptions{Machine: j.Machine, Arch: d.Arch(), Bind: j.Program.Bind, Warn: warn, Devices: j.On.count(), Mesh: j.On.Mesh})
	if err != nil {
		return nil, warnings, err
	}
	if err := prepare(ctx, d, p); err != nil {
		return nil, warnings, err
	}
	keep(path, p, keptNotes{warnings})
	return p, warnings, nil
}

// RunArtifact runs a compiled program on args, the values of its arguments, and
// makes its checks. Results have the names in the file. A check that fails is a
// *CheckError.
func RunArtifact(ctx context.Context, d device.Device, p *artifact.Program, args []*tensor.Tensor, o device.Options) (*Result, error) {
	if len(args) == len(p.Inputs) {
		if err := fits(d, p, args); err != nil {
			return nil, err
		}
	}
	in, err := Pack(p, args)
	if err != nil {
		return nil, err
	}
	got, err := d.Run(ctx, p, in, o)
	if err != nil {
		return nil, err
	}
	out := &Result{Device: d.Name(), Title: d.Title(), Elapsed: got.Elapsed, Compile: got.Compile, Peak: p.Workspace, Untimed: got.Untimed}
	if out.Outputs, err = Unpack(p, got.Outputs); err != nil {
		return nil, err
	}
	if out.Outputs, err = Checked(p, out.Outputs); err != nil {
		return nil, err
	}
	out.Kernels = kernels(p.For(d.Arch()), got)
	return out, nil
}

// kernels are the profiles of the steps of p, which were run.
func kernels(p *artifact.Program, got *device.Result) (out []Kernel) {
	for i, s := range p.Steps {
		k := Kernel{Name: s.Name, Decision: s.Decides(), Runs: 1, Differs: s.Differs}
		if i < len(got.Steps) {
			k.Runs = got.Steps[i].Runs
		}
		k.PredictedNs, k.FLOP = s.TimeNs*float64(k.Runs), s.FLOP*k.Runs
		k.ReadBytes, k.WrittenBytes = s.ReadBytes*k.Runs, s.WrittenBytes*k.Runs
		if of := p.KernelOf(&s); of != nil {
			k.Class, k.Lines = of.Class, p.LinesOf(&s)
		} else if s.Kind != artifact.StepFill {
			k.Class = string(s.Kind)
		}
		if s.Kind == artifact.StepCollective {
			k.Lines = p.LinesOf(&s)
		}
		if i < len(got.Steps) {
			g := got.Steps[i]
			k.MeasuredNs, k.Counted, k.CountedReadBytes, k.CountedWrittenBytes = g.MeasuredNs, g.Counted, g.ReadBytes, g.WrittenBytes
		}
		out = append(out, k)
	}
	return out
}

// Pack converts the arguments of a compiled program to the contents of its
// buffers.
func Pack(p *artifact.Program, args []*tensor.Tensor) ([][]byte, error) {
	if len(args) != len(p.Inputs) {
		return nil, fmt.Errorf("@%s takes %d arguments, not %d", p.Name, len(p.Inputs), len(args))
	}
	in := make([][]byte, len(args))
	for i, a := range args {
		in[i] = packed(p, i, a)
	}
	return in, nil
}

// packed is the content of the buffer of argument i.
func packed(p *artifact.Program, i int, a *tensor.Tensor) []byte {
	return tensor.Arrange(tensor.Pack(a), a.Elem, a.Shape, p.Buffers[p.Inputs[i]].Order)
}

// Unpack converts the contents of a compiled program's buffers to its results.
// One that is nil gives a result without a tensor.
func Unpack(p *artifact.Program, outputs [][]byte) ([]Output, error) {
	var out []Output
	for i, b := range outputs {
		buf := p.Buffers[p.Outputs[i]]
		if b == nil && buf.Size() > 0 {
			out = append(out, Output{Name: p.Result(i)})
			continue
		}
		elem, ok := types.ElemByName(buf.Elem)
		if !ok {
			return nil, fmt.Errorf("result %d has elements of an unknown type %s", i, buf.Elem)
		}
		view := p.ResultView(i)
		shape := make([]int, len(view.Shape))
		for d, n := range view.Shape {
			shape[d] = int(n)
		}
		t, err := tensor.Unpack(tensor.Unarrange(b[:buf.Size()], elem, shape, view.Order), elem, shape)
		if err != nil {
			return nil, err
		}
		out = append(out, Output{Name: p.Result(i), Type: t.Type(), Tensor: t})
	}
	return out, nil
}

// Diagnostic converts an error of Build or Run to a diagnostic; ok is false if
// it has no location in the program and no code.
func Diagnostic(err error, src *source.File) (d diag.Diagnostic, ok bool) {
	var (
		atRun   *interp.Error
		atPass  *pass.Error
		problem = func(code, msg string, line int) diag.Diagnostic {
			return diag.New(code, diag.Error, lineSpan(src, line), msg)
		}
	)
	switch {
	case errors.As(err, &atRun):
		return atRun.Diagnostic(), true
	case errors.As(err, &atPass):
		return atPass.Diagnostic(), true
	}
	switch f, _ := artifact.FailureOf(err); f.Reason {
	case artifact.Faulted:
		return problem("DM860", f.Err.Error(), f.Line), true
	case artifact.OutOfMemory:
		return problem("DM705", f.Err.Error(), f.Line), true
	case artifact.Rejected:
		return problem("DM861", f.Err.Error(), 0), true
	}
	return diag.Diagnostic{Message: err.Error()}, false
}

// lineSpan is the text of a line without the white space around it.
func lineSpan(src *source.File, line int) source.Span {
	if src == nil || line < 1 || line > src.Lines() {
		return source.Span{}
	}
	start := src.LineStart(line - 1)
	text := src.Line(line - 1)
	indent := len(text) - len(strings.TrimLeft(text, " \t"))
	return source.Span{Start: start + indent, End: start + len(strings.TrimRight(text, "\r\n"))}
}
