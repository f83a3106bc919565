// Package differential runs programs on everything that runs programs and
// compares: the reference executor, the compiled program on the emulator, fused
// and with each op as a kernel of its own, for several architectures, and on
// every other device of this machine; of gradients, central differences.
//
// How far two correct executions may differ is not guessed from the ops: the
// reference executes the program a second time with all floating-point numbers
// in f64. By as much as that changes a result, rounding moves it, and a compiled
// program that rounds elsewhere may move it some times as far. Where that does not
// explain a difference, the reference executes it with results rounded at random.
package differential

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"runtime/debug"
	"strings"

	"dmir/analysis/machine"
	"dmir/analysis/program"
	"dmir/compile/driver"
	"dmir/compile/gradient"
	"dmir/compile/interp"
	"dmir/compile/pass"
	"dmir/compile/target"
	"dmir/compile/tensor"
	"dmir/dialect/autodiff"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/print"
	"dmir/dialect/types"
	"dmir/gpu/artifact"
	"dmir/gpu/device"
	"dmir/gpu/emulator"
	"dmir/syntax/source"
)

// Case is a program to run.
type Case struct {
	Name string
	Text string
	Func string // "": the one that driver.Pick picks
	Seed uint64 // of the inputs
	// Gradient differentiates the function first.
	Gradient bool
	Arch     string       // of the code; "": portable
	Device   string       // the one device to run on, for which Arch is left empty; "": the emulator, and GPUs of this machine
	Unfused  bool         // each op is a kernel of its own
	SMs      int          // multiprocessors of the machine that the code is made for; 0: as it is
	Arrays   types.Arrays // of constants in files
	// Of is the program whose gradient Text is, as returned by Derive, if it is
	// one: it is compared with central differences as well.
	Of string
}

// Kind is the kind of failure of a case.
type Kind string

// The kinds of failures.
const (
	Numbers   Kind = "numbers"   // a result differs from the reference's
	Panic     Kind = "panic"     // of the compiler
	Refused   Kind = "refused"   // the compiler reports an error in its own work
	Text      Kind = "text"      // the kernels do not compile
	Fault     Kind = "fault"     // the emulator found a race, an access out of bounds …
	Reference Kind = "reference" // the reference fails
	Gradient  Kind = "gradient"  // differences disagree with the gradient
	Bytes     Kind = "bytes"     // a step moves other bytes than predicted, for no stated reason
	Invalid   Kind = "invalid"   // the program itself is not valid
)

// Find is a failed case.
type Find struct {
	Case Case
	Kind Kind
	Msg  string
}

func (f *Find) Error() string { return fmt.Sprintf("%s: %s: %s", f.Case.Name, f.Kind, f.Msg) }

// prepared is a case that is ready to run.
type prepared struct {
	c       Case
	program *program.Program
	module  *ir.Module
	fn      *ir.Func
	args    []*tensor.Tensor
	want    []*tensor.Tensor
	// other is the reference's results in f64 or, of a program in f64, in f32;
	// nil where there is no such form. Rounding is assumed to change results by
	// at most factor times the difference.
	other  []*tensor.Tensor
	factor float64
	// refModule and refFunc are run by the reference: of a case with Gradient,
	// the gradient.
	refModule *ir.Module
	refFunc   *ir.Func
	built     *artifact.Program
	inputs    [][]byte
}

// load reads a text and picks the function.
func load(name, text, fn string, arrays types.Arrays) (*program.Program, *ir.Module, *ir.Func, error) {
	p := program.Load(source.New(name+".dmir", text), program.Options{Arrays: arrays})
	if p.HasErrors() {
		for _, d := range p.Diags {
			return nil, nil, nil, fmt.Errorf("%s: %s", d.Code, d.Message)
		}
	}
	m, f, err := driver.Pick(p, fn)
	return p, m, f, err
}

// Derive is the text of a program's gradient: a function of the arguments and
// of the cotangents of the results, which returns the results and the
// gradients.
func Derive(text string) (string, error) {
	return derive(text, func(*ir.Func) bool { return true })
}

// derive is Derive, with cotangents if seeded.
func derive(text string, seeded func(*ir.Func) bool) (string, error) {
	_, m, f, err := load("gradient", text, "", nil)
	if err != nil {
		return "", err
	}
	g, err := gradient.Function(m, f, gradient.Options{Joint: true, Seeded: seeded(f)})
	if err != nil {
		return "", err
	}
	return print.Pretty(&ir.Module{Src: m.Src, Aliases: m.Aliases, Ops: []*ir.Op{g.Op}})
}

// wide is the text with every floating-point type replaced by f64. Random
// numbers keep their own type.
func wide(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if m := rng.FindStringSubmatch(line); m != nil && m[4] != "f64" {
			fmt.Fprintf(&b, "%s%s_own%s%s%s\n", m[1], m[2], m[3], m[4], m[5])
			from := strings.TrimSpace(line[strings.LastIndex(line, " tensor")+1:])
			fmt.Fprintf(&b, "%s%s = dm.convert %s_own : (%s) -> %s\n", m[1], m[2], m[2], from, narrow.ReplaceAllString(from, "${1}f64"))
			continue
		}
		b.WriteString(narrow.ReplaceAllString(line, "${1}f64"))
	}
	return b.String()
}

var (
	narrow = regexp.MustCompile(`([x<(]|[:,>] )(?:f32|f16|bf16|f8E4M3FN|f8E5M2)\b`)
	inF64  = regexp.MustCompile(`([x<(]|[:,>] )f64\b`)
	rng    = regexp.MustCompile(`^(\s*)(%\S+)( = dm\.rng .*[x<])(f32|f16|bf16|f64)(>.*)\n`)
)

// reference runs the program's function in its own types and in f64.
func (p *prepared) reference(ctx context.Context) *Find {
	find := func(kind Kind, err error) *Find { return &Find{p.c, kind, err.Error()} }
	var err error
	if p.program, p.module, p.fn, err = load(p.c.Name, p.c.Text, p.c.Func, p.c.Arrays); err != nil {
		return find(Invalid, err)
	}
	text, m, f := p.c.Text, p.module, p.fn
	if p.c.Gradient {
		// As in the compiler: without cotangents if there is a loss.
		if text, err = derive(p.c.Text, func(f *ir.Func) bool { return !autodiff.HasLoss(f) }); err != nil {
			return find(Gradient, err)
		}
		if _, m, f, err = load(p.c.Name, text, "", p.c.Arrays); err != nil {
			return find(Gradient, fmt.Errorf("the gradient is not valid: %w", err))
		}
	}
	p.refModule, p.refFunc = m, f
	if p.args, err = interp.Inputs(ctx, f, p.program.Bind, p.c.Seed, nil); err != nil {
		return find(Invalid, err)
	}
	if p.want, err = execute(ctx, m, f, p.args, nil); err != nil {
		return find(Reference, err)
	}
	elem, inType := types.F64, wide(text)
	if p.factor = 1; inType == text {
		elem, inType, p.factor = types.F32, inF64.ReplaceAllString(text, "${1}f32"), 0x1p-29
	}
	_, wm, wf, err := load(p.c.Name, inType, f.Name, p.c.Arrays)
	if err != nil {
		return nil // an element type that cannot be replaced: it bounds the rounding
	}
	if p.other, err = execute(ctx, wm, wf, inElem(p.args, elem), nil); err != nil {
		p.other = nil
	}
	return nil
}

// inElem is args with floating-point numbers converted to the type.
func inElem(args []*tensor.Tensor, elem types.Elem) []*tensor.Tensor {
	out := make([]*tensor.Tensor, len(args))
	for i, a := range args {
		out[i] = a
		if !a.Elem.IsFloat() {
			continue // these are never written to
		}
		out[i] = tensor.New(elem, a.Shape...)
		for k := range a.Len() {
			out[i].SetFloat(k, a.Float(k))
		}
	}
	return out
}

// execute runs f on a copy of args, since updates in place overwrite them.
// results is as in interp.Options.
func execute(ctx context.Context, m *ir.Module, f *ir.Func, args []*tensor.Tensor, results func(*ir.Op, []*tensor.Tensor)) (out []*tensor.Tensor, err error) {
	defer recovered(&err)
	r, err := interp.Run(ctx, m, f, args, interp.Options{Results: results})
	if err != nil {
		return nil, err
	}
	return r.Outputs, nil
}

// crash is a panic as an error.
type crash struct {
	value any
	stack string
}

func (c *crash) Error() string { return fmt.Sprintf("panic: %v\n%s", c.value, c.stack) }

func recovered(err *error) {
	if v := recover(); v != nil {
		*err = &crash{v, string(debug.Stack())}
	}
}

// build compiles the program.
func (p *prepared) build(ctx context.Context) *Find {
	name := "h200"
	if strings.HasPrefix(p.c.Arch, "sm_80") {
		name = "a100-80"
	}
	m, _ := machine.Lookup(name)
	if p.c.SMs > 0 {
		of := *m
		of.SMs = p.c.SMs
		m = &of
	}
	arch := p.c.Arch
	if p.c.Device != "" {
		d, _, err := device.Find(p.c.Device)
		if err != nil {
			return &Find{p.c, Refused, err.Error()}
		}
		arch = d.Arch()
	}
	o := driver.BuildOptions{Machine: m, Arch: arch, Bind: p.program.Bind, Grad: p.c.Gradient, TilesFile: "none"} // a file that is not there: what was measured here would change programs
	if p.c.Unfused {
		o.Skip = []string{"fuse"}
	}
	var err error
	func() {
		defer recovered(&err)
		if p.built, err = driver.Build(ctx, p.module, p.fn, o); err == nil {
			p.inputs, err = driver.Pack(p.built, p.args)
		}
	}()
	var c *crash
	var e *pass.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &c):
		return &Find{p.c, Panic, err.Error()}
	case errors.As(err, &e):
		return &Find{p.c, Refused, e.Code + ": " + e.Msg}
	}
	return &Find{p.c, Refused, err.Error()}
}

// judge returns the failure in the outcome of a run, if any.
func (p *prepared) judge(ctx context.Context, outputs [][]byte, err error) *Find {
	var fault *emulator.Fault
	var text *emulator.CompileError
	switch {
	case errors.As(err, &fault):
		return &Find{p.c, Fault, fault.Error() + "\n" + near(p.built.Source, fault.Line)}
	case errors.As(err, &text):
		return &Find{p.c, Text, firstErrors(text.Output)}
	case err != nil:
		return &Find{p.c, Fault, err.Error()}
	}
	got, err := driver.Unpack(p.built, outputs)
	if err == nil {
		got, err = driver.Checked(p.built, got)
	}
	if err != nil {
		return &Find{p.c, Numbers, err.Error()}
	}
	if len(got) != len(p.want) {
		return &Find{p.c, Numbers, fmt.Sprintf("%d results of %d", len(got), len(p.want))}
	}
	for i, w := range p.want {
		var samples []sample
		if p.other != nil {
			samples = append(samples, sample{p.other[i], p.factor})
		}
		msg := compare(got[i].Tensor, w, samples, p.coarse())
		if msg != "" {
			for _, results := range p.shaken(ctx) {
				samples = append(samples, sample{results[i], 1})
			}
			msg = compare(got[i].Tensor, w, samples, p.coarse())
		}
		if msg != "" {
			return &Find{p.c, Numbers, fmt.Sprintf("result %d, %s: %s", i, w.Type(), msg)}
		}
	}
	return nil
}

// shaken are the reference's results where those of its ops are rounded up or
// down at random (Parker, Monte Carlo Arithmetic, 1997). It covers programs
// that the execution in another type does not: those that subtract two numbers
// that are equal in exact arithmetic, and scale the difference.
func (p *prepared) shaken(ctx context.Context) (out [][]*tensor.Tensor) {
	for k := range uint64(4) {
		r := rand.New(rand.NewPCG(p.c.Seed, k))
		results, err := execute(ctx, p.refModule, p.refFunc, p.args, func(o *ir.Op, results []*tensor.Tensor) {
			if len(o.Operands) == 0 || op.IsView(o) {
				return // exact
			}
			for _, t := range results {
				if !t.Elem.IsFloat() {
					continue
				}
				for i := range t.Len() {
					t.SetFloat(i, t.Float(i)*(1+2*unit(t.Elem)*float64(r.IntN(3)-1)))
				}
			}
		})
		if err == nil {
			out = append(out, results)
		}
	}
	return out
}

// coarse reports whether numbers of the program have 16 bits or less, from
// which results of wide types may be computed.
func (p *prepared) coarse() bool { return half.MatchString(p.c.Text) }

var half = regexp.MustCompile(`[x<](?:b?f16|f8E)`)

func near(text string, line int) string {
	lines := strings.Split(text, "\n")
	if line < 1 || line > len(lines) {
		return ""
	}
	return strings.TrimSpace(lines[line-1])
}

func firstErrors(text string) string {
	var out []string
	for line := range strings.Lines(text) {
		if strings.Contains(line, "error:") && len(out) < 3 {
			out = append(out, strings.TrimSpace(line))
		}
	}
	return strings.Join(out, "\n")
}

// others are the devices of this machine that run the emulator's programs.
func others() (out []device.Device) {
	for _, d := range device.Devices() {
		if d.Name() != "emulator" && target.For(d.Arch()) == target.For("") {
			out = append(out, d)
		}
	}
	return out
}
