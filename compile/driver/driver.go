// Package driver runs checked programs: it chooses the function and the device,
// makes the inputs, runs, and summarizes the results. The command line and the
// worker process both use it.
package driver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"dmir/analysis/machine"
	"dmir/analysis/program"
	"dmir/base/escape"
	"dmir/compile/interp"
	"dmir/compile/pass"
	"dmir/compile/sparse"
	"dmir/compile/tensor"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/gpu/artifact"
	"dmir/gpu/device"
	"dmir/syntax/diag"
)

// Job is one run.
type Job struct {
	Program *program.Program
	Module  *ir.Module
	Fn      *ir.Func
	Seed    uint64                    // of the inputs that are not given
	Inputs  map[string]*tensor.Tensor // by argument name, without "%"
	Device  string                    // "auto", "reference", "emulator", "cuda"; what Choose accepts
	Machine *machine.Machine          // what predicted times are for; nil: the program's target
	On      Distribution              // over several devices
	Pieces  map[string]PieceReader    // arguments that are given by device
	Runs    int                       // how often a device that can measure runs the program for its times
	Steps   int                       // how often the program is to run; 0: once
	// Progress is called while a device that is slow runs the program; may be nil.
	Progress func(device.Progress)
}

// Output is one result of the function.
type Output struct {
	Name   string // of the value that the function returns, without "%"; unique among the outputs
	Type   string
	Tensor *tensor.Tensor // of a sparse one the values that are stored
	Sparse *sparse.Tensor // nil of a dense one
	Pieces []Piece        // where they are asked for: those of this process, the first of which is Tensor
}

// Summary is the output's range in a few words, and of a sparse one what it stores.
func (o Output) Summary() string {
	if o.Sparse != nil {
		return o.stored()
	}
	return o.values()
}

func (o Output) values() string {
	if o.Tensor.Len() == 0 {
		return "empty"
	}
	s := o.Tensor.Stats()
	text := fmt.Sprintf("min %.4g, mean %.4g, max %.4g", s.Min, s.Mean, s.Max)
	if s.NaNs > 0 {
		text += fmt.Sprintf(", %d NaN", s.NaNs)
	}
	if s.Infs > 0 {
		text += fmt.Sprintf(", %d infinite", s.Infs)
	}
	return text
}

// Result is the outcome of a run.
type Result struct {
	Device  string
	Why     string // why this device
	Rank    int    // of the device of this process, where there is one process for each
	Title   string // display name of the device
	Elapsed time.Duration
	Compile time.Duration // of the program, for devices that it is compiled for
	Outputs []Output
	Ops     []interp.Timing // by the reference executor
	Kernels []Kernel        // on a device
	// Warnings are about the program's text, from compiling it.
	Warnings []diag.Diagnostic
	Peak     int64  // peak bytes of live tensors; of the plan on a device
	Untimed  string // why a device that measures has no times; empty if it has
}

// Choose returns the device called name, and why it was chosen; an error lists
// the valid names. A nil device is the reference executor, which "auto" chooses
// where there is no GPU and no compiler for the processor: the emulator is for
// checking programs, not for speed.
func Choose(name string) (d device.Device, why string, err error) {
	switch name {
	case "", "auto":
		d, why := device.Fastest()
		return d, why, nil
	case "reference":
		return nil, "requested", nil
	}
	return device.Find(name)
}

// NameOf is the name by which a device is chosen.
func NameOf(d device.Device) string {
	if d == nil {
		return "reference"
	}
	return d.Name()
}

// Pick finds the function called name, with or without "@". Without a name it
// picks @main, or else the only function with a body that is not private.
func Pick(p *program.Program, name string) (*ir.Module, *ir.Func, error) {
	name = strings.TrimPrefix(name, "@")
	type candidate struct {
		m *ir.Module
		f *ir.Func
	}
	var only candidate
	var all, public []string
	for _, m := range p.Modules {
		for _, f := range m.Funcs {
			if f.Body == nil {
				continue
			}
			if f.Name == name || name == "" && f.Name == "main" {
				return m, f, nil
			}
			all = append(all, "@"+f.Name)
			if !f.Private {
				only = candidate{m, f}
				public = append(public, "@"+f.Name)
			}
		}
	}
	switch {
	case len(all) == 0:
		return nil, nil, errors.New("the file has no function with a body")
	case name != "":
		return nil, nil, fmt.Errorf("no function @%s; there are %s", name, strings.Join(all, ", "))
	case len(public) == 1:
		return only.m, only.f, nil
	case len(public) == 0:
		return nil, nil, fmt.Errorf("every function is private: %s", strings.Join(all, ", "))
	}
	return nil, nil, fmt.Errorf("several functions are public: %s", strings.Join(public, ", "))
}

// onDevice calls on with the device that the job asks for, or with the best one of
// this machine. done is false if the reference executor is left to run the job: it
// is asked for, or there is no better device, or the best one cannot run it or what
// compiles for it fails; why gives the reason for the choice.
func onDevice(ctx context.Context, j Job, on func(device.Device) error) (done bool, why string, err error) {
	d, why, err := Choose(j.Device)
	if err != nil || d == nil {
		return false, why, err
	}
	automatic := j.Device == "" || j.Device == "auto"
	if automatic {
		var reference bool
		if reference, why = j.first(ctx, d, why); reference {
			return false, why, nil
		}
	}
	err = on(d)
	var unfit *pass.Error
	if automatic && errors.As(err, &unfit) {
		return false, unfit.Msg, nil
	}
	if f, known := artifact.FailureOf(err); automatic && known && f.Reason == artifact.MissingTool && ctx.Err() == nil {
		return false, err.Error(), nil
	}
	return err == nil, why, err
}

// Run executes the job. progress is called with the parts done and the op; it may be
// nil. An error that belongs to an op is an *interp.Error.
func Run(ctx context.Context, j Job, progress func(done, total int, op *ir.Op)) (*Result, error) {
	res, err := run(ctx, j, progress)
	if err == nil {
		res.Outputs = together(res.Outputs, sparseResults(j.Fn, j.sizes()))
	}
	return res, err
}

func run(ctx context.Context, j Job, progress func(done, total int, op *ir.Op)) (*Result, error) {
	if j.together() {
		d, err := j.compiles()
		switch {
		case err != nil:
			return nil, err
		case d != nil:
			return runCompiled(ctx, d, j)
		}
		return runTogether(ctx, j, progress)
	}
	var res *Result
	done, why, err := onDevice(ctx, j, func(d device.Device) (err error) {
		res, err = runOn(ctx, d, j)
		return err
	})
	if err != nil {
		return nil, err
	}
	if done {
		res.Why = why
		return res, nil
	}
	args, err := interp.Inputs(ctx, j.Fn, j.Program.Bind, j.Seed, j.Inputs)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	if j.Fn.Op.Attr(op.MeshAttr) != nil {
		_, err := Divide(ctx, j.Module, j.Fn, j.Program.Bind, j.On) // it tells how many devices it needs
		return nil, err
	}
	ran, err := interp.Run(ctx, j.Module, j.Fn, args, interp.Options{Bind: j.Program.Bind, Progress: progress})
	if err != nil {
		return nil, err
	}
	out := &Result{Device: "reference", Title: "the reference executor", Why: why, Elapsed: time.Since(start), Ops: ran.Ops, Peak: ran.Peak}
	results := resultsOf(j.Fn)
	for i, t := range ran.Outputs {
		out.Outputs = append(out.Outputs, Output{Name: results[i].Name, Type: results[i].Type, Tensor: t})
	}
	return out, nil
}

// resultsOf are the results of fn without their values, a tuple and a sparse tensor as their parts.
func resultsOf(fn *ir.Func) []Output {
	var out []Output
	for _, t := range fn.Results {
		if !types.Compound(t) {
			out = append(out, Output{Type: t.String()})
		}
		for _, m := range types.Parts(t) {
			if m.Path != "" {
				out = append(out, Output{Type: m.Tensor.String()})
			}
		}
	}
	for i, name := range outputNames(fn, len(out)) {
		out[i].Name = name
	}
	return out
}

// outputNames names the results by dm.name, else after the values that the function returns,
// with numbers where these have no names or repeat. The tensors of a tuple have the
// tuple's name and their places in it, the components of a sparse tensor its name and theirs.
func outputNames(fn *ir.Func, n int) []string {
	names := make([]string, n)
	used := map[string]bool{}
	var returned, stated []string
	for i, t := range fn.Results {
		name, _ := op.SignatureAttr(fn.Op, "res_attrs", i, op.NameAttr).(types.Str)
		members := types.Parts(t)
		if len(members) == 0 && !types.Compound(t) {
			members = []types.Member{{}}
		}
		for _, m := range members {
			own := ""
			if name != "" {
				own = escape.FileName(string(name)) + m.Path
			}
			stated = append(stated, own)
		}
	}
	if ret := fn.Body.Terminator(); ret != nil {
		for _, v := range ret.Operands {
			for _, part := range op.Parts(v) {
				returned = append(returned, part.Name)
			}
		}
	}
	for i := range names {
		if i < len(returned) {
			names[i] = strings.NewReplacer("%", "", "#", "_").Replace(returned[i])
		}
		if i < len(stated) && stated[i] != "" && !used[stated[i]] {
			names[i] = stated[i]
		}
		if names[i] == "" || used[names[i]] {
			names[i] = fmt.Sprintf("result%d", i)
		}
		used[names[i]] = true
	}
	return names
}
