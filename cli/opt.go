package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"dmir/analysis/program"
	"dmir/analysis/units"
	"dmir/base/escape"
	"dmir/compile/devices"
	"dmir/compile/driver"
	"dmir/compile/linalg"
	"dmir/compile/pass"
	"dmir/compile/pipeline"
	"dmir/compile/target"
	"dmir/dialect/ir"
	"dmir/dialect/mesh"
	"dmir/dialect/op"
	"dmir/dialect/print"
	"dmir/dialect/stablehlo"
	"dmir/syntax/diag"
)

type optCmd struct {
	targeting
	deviceFlags
	Passes        string   `complete:"pass" help:"Passes to run, in this order, instead of those of --emit." placeholder:"A,B,C"`
	Skip          []string `complete:"pass" help:"Passes to leave out." placeholder:"PASS" sep:","`
	Emit          string   `help:"Stage to print: graph, kernels, schedule, or generic (the graph in MLIR's generic form). Or what to write the program in: mlir (func, arith, math, tensor, linalg, scf and sparse_tensor), stablehlo." enum:"graph,kernels,schedule,generic,mlir,stablehlo" default:"graph"`
	Grad          string   `help:"Make the training step of this function: values and gradients in one." placeholder:"NAME"`
	Func          string   `help:"Function to work on (default: every one that is not private)." placeholder:"NAME"`
	Locations     bool     `help:"Print the locations of ops, as #loc aliases at the end."`
	Timings       bool     `help:"Print on stderr how long each pass took."`
	PrintAfterAll bool     `help:"Print the function after every pass, each in a section of its own."`
	File          string   `arg:"" complete:"file:dmir,mlir,onnx" help:"The program; '-' is stdin."`
}

// Help is what --help adds.
func (optCmd) Help() string {
	var b strings.Builder
	b.WriteString("The passes, in their order:\n")
	for _, p := range pipeline.For(nil) {
		fmt.Fprintf(&b, "  %-10s %s\n", p.Name, p.Summary)
	}
	return b.String()
}

// stages are the last passes of the values of --emit.
var stages = map[string]string{"graph": "layout", "generic": "layout", "kernels": "fuse", "schedule": "plan"}

// exports write a program in the ops of other dialects, by value of --emit, after the
// passes that leave no ops without equivalents there.
var exports = map[string]func(*ir.Module) (*ir.Module, error){"mlir": linalg.Export, "stablehlo": func(m *ir.Module) (*ir.Module, error) {
	out, d := stablehlo.Export(m)
	if d != nil {
		return nil, &pass.Error{Span: d.Span, Code: d.Code, Msg: d.Message, Help: d.Help}
	}
	return out, nil
}}

// Run prints the program after the passes.
func (c optCmd) Run(a *app) error {
	names, err := c.passes()
	if err != nil {
		return err
	}
	if c.Grad != "" && c.Func != "" && strings.TrimPrefix(c.Grad, "@") != strings.TrimPrefix(c.Func, "@") {
		return &failure{"DM612", "--grad " + c.Grad, "cannot be combined with --func " + c.Func, "name one function"}
	}
	src, opts, err := c.program(a, c.File)
	if err != nil {
		return err
	}
	p, err := a.analyse(src, opts)
	if err != nil {
		return err
	}
	if err := c.bound(p); err != nil {
		return err
	}
	work, err := c.choose(a, p)
	if err != nil {
		return err
	}
	r := &optimizer{optCmd: c, app: a, p: p, bar: newProgress(a.stderr)}
	defer r.bar.done()
	all := pipeline.For(target.For(p.Target.Arch).Generator(target.Options{Arch: p.Target.Arch}))
	for _, name := range names {
		i := slices.IndexFunc(all, func(p pass.Pass) bool { return p.Name == name })
		r.passes = append(r.passes, all[i])
	}
	for _, w := range work {
		_, err := await(a.ctx, func() (any, error) { return nil, r.module(w) })
		if a.ctx.Err() != nil {
			return a.ctx.Err()
		}
		if err != nil || len(r.warnings) > 0 {
			r.bar.done()
		}
		a.warn(src, r.warnings)
		if r.warnings = nil; err != nil {
			return r.failed(err)
		}
	}
	r.bar.done()
	if c.Timings {
		if err := r.timings(a.stderr); err != nil {
			return err
		}
	}
	_, err = io.WriteString(a.stdout, strings.Join(r.sections, "// -----\n"))
	return err
}

// passes are the names of the requested passes.
func (c optCmd) passes() ([]string, error) {
	var names []string
	switch {
	case c.Passes == "none":
	case c.Passes != "":
		for name := range strings.SplitSeq(c.Passes, ",") {
			name, err := passNamed("--passes", name)
			if err != nil {
				return nil, err
			}
			names = append(names, name)
		}
	case exports[c.Emit] != nil:
		for _, p := range pipeline.Export() {
			names = append(names, p.Name)
		}
	default:
		names = pipeline.Names()
		names = names[:slices.Index(names, stages[c.Emit])+1]
	}
	for _, skip := range c.Skip {
		skip, err := passNamed("--skip", skip)
		if err != nil {
			return nil, err
		}
		names = slices.DeleteFunc(names, func(name string) bool { return name == skip })
	}
	return names, nil
}

// passNamed is the pass that the value of a flag names.
func passNamed(flag, name string) (string, error) {
	name = strings.TrimSpace(name)
	if slices.Contains(pipeline.Names(), name) {
		return name, nil
	}
	help := suggested(name, pipeline.Names(), "the passes are "+strings.Join(pipeline.Names(), ", "))
	return "", &failure{"DM613", flag + " " + name, fmt.Sprintf("%q is not a pass", name), help}
}

// task is the functions of one module that the passes work on.
type task struct {
	module *ir.Module
	funcs  []string
}

// devices is over how many devices the program is divided: where a pass that divides is
// named, those of its mesh.
func (c optCmd) devices() int {
	named := slices.ContainsFunc(strings.Split(c.Passes, ","), func(name string) bool {
		return slices.Contains([]string{"pipeline", "shard", "partition"}, strings.TrimSpace(name))
	})
	switch {
	case c.Devices > 0:
		return c.Devices
	case named, len(c.Mesh) > 0:
		return pass.AllDevices
	}
	return 0
}

// choose finds the requested functions; errors in them are an error.
func (c optCmd) choose(a *app, p *program.Program) ([]task, error) {
	name := c.Func
	if c.Grad != "" {
		name = c.Grad
	}
	if name != "" {
		m, fn, err := driver.Pick(p, name)
		if err != nil {
			return nil, noFunction(p, err, "--func")
		}
		if errs := p.ErrorsOf(m, fn); len(errs) > 0 {
			printErrors(a.stderr, p.Src, errs)
			return nil, exitStatus(exitFailed)
		}
		return []task{{m, []string{fn.Name}}}, nil
	}
	if p.HasErrors() {
		printErrors(a.stderr, p.Src, p.Diags)
		return nil, exitStatus(exitFailed)
	}
	var work []task
	for _, m := range p.Modules {
		t := task{module: m}
		for _, f := range m.Funcs {
			if f.Body != nil && !f.Private {
				t.funcs = append(t.funcs, f.Name)
			}
		}
		work = append(work, t)
	}
	return work, nil
}

// optimizer is one run of the command.
type optimizer struct {
	optCmd
	app      *app
	p        *program.Program
	passes   []pass.Pass
	sections []string
	warnings []diag.Diagnostic
	times    []timing
	gaps     []string // as lines
	bar      *progress
}

// timing is the time of one pass for one function.
type timing struct {
	fn string
	pass.Stage
}

// module runs the passes over the functions of one module and keeps its text.
func (r *optimizer) module(t task) error {
	m := t.module.Clone() // diagnostics refer to the original, which passes must not change
	sizes, err := r.sizes()
	if err == nil {
		err = devices.Mesh(m, sizes)
	}
	if err != nil {
		return err
	}
	keep := map[*ir.Func]bool{}
	for _, name := range t.funcs {
		u := &pass.Unit{
			Ctx: r.app.ctx, Module: m, Func: m.Func(name), Machine: r.p.Target,
			Options:  pass.Options{Bind: r.p.Bind, Grad: r.Grad != "", Devices: r.devices()},
			Progress: func(pass string, done float64) { r.bar.stage(pass, int(done*100), 100) },
		}
		if r.Emit == "mlir" && r.Passes == "" {
			linalg.Sparse(u)
		}
		err := pass.Run(u, r.passes, func(s pass.Stage) error {
			r.times = append(r.times, timing{u.Func.Name, s})
			if !r.PrintAfterAll {
				return nil
			}
			one := &ir.Module{Src: m.Src, Aliases: m.Aliases, Ops: mesh.Ops(m)}
			for _, own := range u.Functions() {
				for _, f := range pass.Reached(u.Module, own) {
					if !slices.Contains(one.Ops, f.Op) {
						one.Ops = append(one.Ops, f.Op)
					}
				}
			}
			return r.print(fmt.Sprintf("// @%s after %s\n", escape.Comment(u.Func.Name), s.Pass.Name), one)
		})
		if err != nil {
			return err
		}
		m = u.Module
		for _, g := range u.Gaps {
			r.gaps = append(r.gaps, gapText("@"+u.Func.Name, r.p.Src, g))
		}
		for _, w := range u.Warnings {
			d := w.Diagnostic()
			d.Severity = diag.Warning
			r.warnings = append(r.warnings, d)
		}
		for _, own := range u.Functions() {
			for _, f := range pass.Reached(m, own) {
				keep[f] = true
			}
		}
	}
	if r.PrintAfterAll {
		return nil
	}
	whole := r.Func == "" && r.Grad == ""
	for _, f := range slices.Clone(m.Funcs) {
		if !keep[f] && (!whole || f.Private) {
			m.RemoveFunc(f.Name)
		}
	}
	if !whole {
		m.Ops = slices.DeleteFunc(m.Ops, func(o *ir.Op) bool { return o.Name != op.Func && o.Name != op.Mesh })
	}
	if export := exports[r.Emit]; export != nil {
		var err error
		if m, err = export(m); err != nil {
			return err
		}
	}
	return r.print("", m)
}

func (r *optimizer) print(head string, m *ir.Module) error {
	write := print.Source
	if head == "" && exports[r.Emit] != nil || r.Emit == "generic" {
		write = print.Generic
	}
	text, err := write(m, locations(r.Locations)...)
	if err != nil {
		return err
	}
	r.sections = append(r.sections, head+text)
	return nil
}

// failed reports why a pass failed for a function.
func (r *optimizer) failed(err error) error {
	var e *pass.Error
	if !errors.As(err, &e) {
		return err
	}
	d := e.Diagnostic()
	if d.Span.Len() == 0 {
		return &failure{e.Code, r.p.Src.Path, e.Msg, e.Help}
	}
	diag.Text(r.app.stderr, r.p.Src, d, styleOf(r.app.stderr))
	return exitStatus(exitFailed)
}

func (r *optimizer) timings(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "FUNCTION\tPASS\tTIME\tOPS")
	for _, t := range r.times {
		escape.Fprintf(tw, "@%s\t%s\t%s\t%d\n", t.fn, t.Pass.Name, units.Time(float64(t.Elapsed.Nanoseconds())), t.Ops)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	for _, line := range r.gaps {
		escape.Fprintf(w, "%s\n", line)
	}
	return nil
}
