// Package request finds what a plan is to be made for, from a program, its dmir.toml and what a
// person asks: the training step, the cluster, the number of devices and their memory. The command
// line, the editor and lint ask the planner for the same.
package request

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"dmir/analysis/cost"
	"dmir/analysis/machine"
	"dmir/analysis/plan"
	"dmir/analysis/program"
	"dmir/analysis/units"
	"dmir/dialect/ir"
	"dmir/dialect/mesh"
	"dmir/dialect/op"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// Asked is what a person asks for; what is zero follows from the program and its dmir.toml.
type Asked struct {
	Func    string           // with or without "@"
	Machine *machine.Machine // not replaced by a cluster of such machines
	Devices int
	Memory  int64
	Batch   []string // arguments with samples, where they are not to be found

	Otherwise int // the number of devices where the program has no mesh, before that of dmir.toml
}

// A Request is a function and what to plan it for.
type Request struct {
	Program *program.Program
	Module  *ir.Module
	Func    *ir.Func
	Options plan.Options
}

// ErrDevices is the error of a request for no number of devices.
var ErrDevices = errors.New("neither the program's mesh nor dmir.toml states the number of devices")

// New is the request for a program without errors. The error is ErrDevices or a *plan.Error, of the
// function of the request, or about the function's name.
func New(p *program.Program, a Asked) (*Request, error) {
	m, fn, err := Step(p, a.Func)
	if err != nil {
		return nil, err
	}
	r := &Request{Program: p, Module: m, Func: fn, Options: plan.Options{Machine: a.Machine, Devices: a.Devices, Memory: a.Memory, Bind: p.Bind, Batch: a.Batch}}
	o := &r.Options
	if o.Machine == nil {
		o.Machine = Cluster(p)
	}
	if o.Devices == 0 {
		o.Devices = Devices(p, m, fn, a.Otherwise)
	}
	if o.Memory == 0 {
		o.Memory = int64(p.Config.Plan.Memory)
	}
	switch {
	case o.Devices == 0:
		return r, ErrDevices
	case len(o.Machine.Links) == 0:
		return r, noLinks(p, o.Machine)
	}
	return r, nil
}

// Search finds the plans of a request.
func (r *Request) Search(ctx context.Context) (*plan.Result, error) {
	o := r.Options
	switch {
	case r.Program.Imported:
		o.Unpriced = "a plan is written into a text of the dialect, and dmir import -o step.dmir makes one of this program"
	case r.Program.Compiled != nil:
		o.Price = r.price
	}
	return plan.Search(ctx, r.Module, r.Func, o)
}

// price is the figures of the step in another text of the program, as it is compiled.
func (r *Request) price(ctx context.Context, text string) (cost.Figures, error) {
	of := r.Program
	p := program.Load(source.New(of.Src.Path, text), program.Options{
		Target: of.Target, F32Products: of.F32Products, Bind: of.Bind, Config: of.Config, Arrays: of.Arrays,
	})
	f := p.Func(r.Func.Name)
	if p.HasErrors() || f == nil {
		return cost.Figures{}, errors.New("the text has errors")
	}
	return of.Compiled(ctx, p, f.Func, r.Options.Machine)
}

// Error is err, of a search, as a diagnostic at its op or function; ok is false for any other
// error.
func (r *Request) Error(err error) (d diag.Diagnostic, ok bool) { return Diagnostic(err, r.Func) }

// Diagnostic is err, an error of a plan for fn, as a diagnostic.
func Diagnostic(err error, fn *ir.Func) (d diag.Diagnostic, ok bool) {
	var e *plan.Error
	if !errors.As(err, &e) {
		return d, false
	}
	if fn != nil && fn.Op != nil {
		d.Span = fn.Op.Head
	}
	if e.At != nil && e.At.Head.Len() > 0 {
		d.Span = e.At.Head
	}
	d = diag.New(e.Code, diag.Error, d.Span, e.Msg)
	d.Help = e.Help
	return d, true
}

// Step is the function called name; without a name the only training step, else @main or the only
// public function.
func Step(p *program.Program, name string) (*ir.Module, *ir.Func, error) {
	name = strings.TrimPrefix(name, "@")
	type found struct {
		m  *ir.Module
		fn *ir.Func
	}
	var steps, public []found
	var all []string
	for _, m := range p.Modules {
		for _, fn := range m.Funcs {
			switch {
			case fn.Body == nil:
				continue
			case fn.Name == name:
				return m, fn, nil
			case IsStep(fn):
				steps = append(steps, found{m, fn})
			}
			all = append(all, "@"+fn.Name)
			if !fn.Private {
				public = append(public, found{m, fn})
			}
		}
	}
	if name != "" && len(all) > 0 {
		return nil, nil, fmt.Errorf("no function @%s; there are %s", name, strings.Join(all, ", "))
	}
	for _, list := range [][]found{steps, public} {
		i := slices.IndexFunc(list, func(f found) bool { return f.fn.Name == "main" })
		if len(list) == 1 {
			i = 0
		}
		if i >= 0 {
			return list[i].m, list[i].fn, nil
		}
	}
	switch {
	case len(all) == 0:
		return nil, nil, errors.New("the file has no function with a body")
	case len(steps) > 1:
		all = all[:0]
		for _, s := range steps {
			all = append(all, "@"+s.fn.Name)
		}
		return nil, nil, fmt.Errorf("several functions are training steps: %s", strings.Join(all, ", "))
	}
	return nil, nil, fmt.Errorf("no function is a training step: %s", strings.Join(all, ", "))
}

// IsStep reports whether fn is a training step: it takes a gradient, or returns the next values of
// its arguments.
func IsStep(fn *ir.Func) bool {
	if fn.Op == nil || fn.Body == nil {
		return false
	}
	if slices.ContainsFunc(op.State(fn.Op), func(arg int) bool { return arg >= 0 }) {
		return true
	}
	return slices.ContainsFunc(fn.Body.Ops, isGrad)
}

// IsStepOf is IsStep of a function whose cost is known: it does not look at all ops.
func IsStepOf(f *cost.Func) bool {
	fn := f.Func
	if fn.Op == nil || fn.Body == nil {
		return false
	}
	return slices.ContainsFunc(op.State(fn.Op), func(arg int) bool { return arg >= 0 }) || slices.ContainsFunc(f.Marked(), isGrad)
}

func isGrad(o *ir.Op) bool { return o.Name == op.Grad }

// Devices is how many devices fn is planned for unless a person asks for a number: those of its
// mesh, or of the only mesh of its module, else otherwise if it is not 0, else those of dmir.toml; 0
// where none of these is.
func Devices(p *program.Program, m *ir.Module, fn *ir.Func, otherwise int) int {
	if f := p.Cost(fn); f != nil {
		if on := f.Mesh(); on != nil {
			return on.Devices()
		}
	}
	if all := mesh.All(m); len(all) == 1 {
		return all[0].Devices()
	}
	if otherwise > 0 {
		return otherwise
	}
	return p.Config.Plan.Devices
}

// Cluster is the machine that a plan is made for unless a person names one: that of dmir.toml's
// [plan], else the program's target, or a cluster of such machines.
func Cluster(p *program.Program) *machine.Machine {
	if name := p.Config.Plan.Target; name != "" {
		if m, ok := p.Config.Machine(name); ok {
			return m
		}
	}
	if c := ClusterOf(p.Target); c != nil {
		return c
	}
	return p.Target
}

// ClusterOf is m if it is a cluster, else a built-in cluster of such machines, nil if there is none.
func ClusterOf(m *machine.Machine) *machine.Machine {
	if len(m.Links) > 0 {
		return m
	}
	for _, c := range machine.All() {
		if len(c.Links) > 0 && c.CPU == m.CPU && c.Arch == m.Arch && c.Bandwidth == m.Bandwidth && c.Memory == m.Memory {
			return c
		}
	}
	return nil
}

func noLinks(p *program.Program, m *machine.Machine) *plan.Error {
	e := &plan.Error{Code: plan.CodeLinks, Msg: fmt.Sprintf("%s (%s) is no cluster: nothing is known of the links between its devices", m.Name, m.Title)}
	var names []string
	for _, name := range p.Config.MachineNames() {
		if c, ok := p.Config.Machine(name); ok && len(c.Links) > 0 {
			names = append(names, name)
		}
	}
	e.Help = "name one of " + strings.Join(names, ", ") + ", or describe the links in dmir.toml under [machines.NAME.links]"
	if c := ClusterOf(m); c != nil {
		e.Help = fmt.Sprintf("a cluster of them is %s; ", c.Name) + e.Help
	}
	return e
}

// ParseMemory reads the memory of a device, such as "70 GB".
func ParseMemory(text string) (int64, error) {
	n, err := units.ParseBytes(text)
	if err == nil && n <= 0 {
		err = fmt.Errorf("%q is no memory", text)
	}
	return n, err
}
