// Package program is the one road from a text to everything that is known
// about it: text → tree → modules → checks → cost. The command line and the
// language server both take it, so that both report the same.
package program

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"dmir/analysis/config"
	"dmir/analysis/cost"
	"dmir/analysis/machine"
	"dmir/base/work"
	"dmir/dialect/ir"
	"dmir/dialect/linalg"
	"dmir/dialect/lower"
	"dmir/dialect/op"
	"dmir/dialect/raise"
	"dmir/dialect/stablehlo"
	"dmir/dialect/types"
	"dmir/dialect/verify"
	"dmir/syntax/ast"
	"dmir/syntax/diag"
	"dmir/syntax/parse"
	"dmir/syntax/scope"
	"dmir/syntax/source"
)

// Options are the machine and the sizes for which a program is analysed.
type Options struct {
	Target *machine.Machine // nil: the configuration's, else machine.Default
	Bind   map[string]int64 // sizes of dimension symbols, over the configuration's
	Config *config.Config   // may be nil
	// F32Products is how products of f32 that state no precision of their own are computed, "f32" or "tf32"; "": as the
	// configuration says, else in f32.
	F32Products string

	// Arrays are the files with elements of constants; nil: they cannot be read, which
	// only matters where the program is executed.
	Arrays types.Arrays

	// Upstream imports programs in MLIR's own linalg and sparse_tensor too; else their ops are
	// those of dialects that are not checked.
	Upstream bool

	// OneKernel is a compiler's rule, by which lint and refactorings propose
	// kernels: why ops, which are in an order that computes them and have sizes in
	// numbers, cannot run as one kernel that stores outs; nil where they can. Without
	// it nothing is known of what is built, and nothing is refused.
	OneKernel func(ops []*ir.Op, outs []*ir.Value) error

	// Compiled gives the figures of a function as a compiler makes it, by which budgets are
	// judged; nil: they are judged by the text as written.
	Compiled Compiler

	Work *work.Counts // counts the ops that the analysis visits; may be nil
}

// Compiler gives the figures of fn, a function of p, as it is compiled for a machine.
type Compiler func(ctx context.Context, p *Program, fn *ir.Func, on *machine.Machine) (cost.Figures, error)

// Program is an analysed text. Only Splice changes it; else it is safe for
// concurrent use.
type Program struct {
	Src    *source.File
	Target *machine.Machine
	Bind   map[string]int64
	Config *config.Config
	Arrays types.Arrays
	// F32Products is that of the options, or the configuration's.
	F32Products string
	// Compiled is that of the options.
	Compiled Compiler
	Tree     *ast.File
	Modules  []*ir.Module
	Funcs    []*cost.Func      // of all modules, in textual order; functions with a body only
	Diags    []diag.Diagnostic // of syntax, names, types and op rules, by position

	// Imported is set where the text is in another format: Modules are what it stands
	// for, and their ops have the places of the ops that they come from. There are no
	// edits of such a text.
	Imported bool

	oneKernel func(ops []*ir.Op, outs []*ir.Value) error

	names func() *scope.Index
	unit  *lower.Unit
	costs []*cost.Costs                // of the modules
	rules []diag.Diagnostic            // from verification, but for
	ends  map[*ir.Op][]diag.Diagnostic // what concerns the bodies of functions as a whole
	bad   map[*ir.Op]bool              // ops that break a rule

	instances []*instances // of the modules
}

// Figures are those of f, one of p's functions, on a machine: as written or as it is compiled. Where it cannot be
// compiled they are those as written, and why says so.
func (p *Program) Figures(ctx context.Context, f *cost.Func, on *machine.Machine, written bool) (x cost.Figures, why error) {
	if written {
		return f.Figures(on), nil
	}
	why = errors.New("programs are not compiled here")
	if p.Compiled != nil {
		if x, why = p.Compiled(ctx, p, f.Func, on); why == nil {
			return x, nil
		}
	}
	return f.Figures(on), why
}

// Load analyses src, a text in the dialect or in StableHLO. It never fails: errors in
// the text, down to its being no text at all, are in Diags.
func Load(src *source.File, opts Options) *Program {
	p := &Program{Src: src, Target: opts.Target, Config: opts.Config, Arrays: opts.Arrays, Compiled: opts.Compiled, Bind: map[string]int64{}, oneKernel: opts.OneKernel}
	if p.Config == nil {
		p.Config = &config.Config{}
	}
	if p.Target == nil {
		p.Target, _ = p.Config.Machine("")
	}
	p.F32Products = cmp.Or(opts.F32Products, p.Config.F32Products)
	maps.Copy(p.Bind, p.Config.Bind)
	maps.Copy(p.Bind, opts.Bind)
	p.ends, p.bad = map[*ir.Op][]diag.Diagnostic{}, map[*ir.Op]bool{}

	p.Tree = parse.File(src)
	p.Tree.Work = opts.Work
	tree := p.Tree
	names := sync.OnceValue(func() *scope.Index { return scope.Build(tree, op.NeedsSymbol) })
	p.names = names
	go func() { // beside lowering; it reads the tree only, and nothing of p, which may change by then
		defer func() { _ = recover() }() // OnceValue panics again in the caller
		names()
	}()
	upstream := opts.Upstream && !stablehlo.Holds(p.Tree) && linalg.Holds(p.Tree)
	if p.Imported = upstream || stablehlo.Holds(p.Tree); p.Imported {
		var modules []*ir.Module
		if upstream {
			modules = linalg.Import(p.Tree, p.Bind)
		} else {
			modules = stablehlo.ImportBound(p.Tree, p.Bind, p.Arrays)
		}
		for _, m := range modules {
			if !slices.ContainsFunc(m.Diags, func(d diag.Diagnostic) bool { return d.Severity == diag.Error }) {
				raise.Module(m)
			}
		}
		p.open(modules)
	} else {
		p.unit = lower.Open(p.Tree, p.Arrays)
		p.open(p.unit.Modules)
	}
	return p
}

func (p *Program) open(modules []*ir.Module) {
	p.Modules = modules
	for _, m := range modules {
		m.Work = p.Tree.Work
		p.precise(m.Ops)
		p.check(m, m.Ops)
		x := newInstances(m, p.Bind)
		x.add(m.Ops)
		p.instances = append(p.instances, x)
		p.costs = append(p.costs, cost.Open(m, p.Bind))
	}
	p.list()
	p.sum()
}

// precise makes ops state the precision of products that holds for the whole program.
func (p *Program) precise(ops []*ir.Op) {
	if p.F32Products != "" {
		op.SetPrecision(ops, p.F32Products)
	}
}

// Change changes the modules, such as the sizes of their meshes, and checks and costs them again.
func (p *Program) Change(change func(*ir.Module) error) error {
	for _, m := range p.Modules {
		if err := change(m); err != nil {
			return err
		}
	}
	p.rules, p.costs, p.instances = nil, nil, nil
	p.open(p.Modules)
	return nil
}

// list collects the functions of all modules.
func (p *Program) list() {
	p.Funcs = nil
	for _, c := range p.costs {
		p.Funcs = append(p.Funcs, c.Funcs...)
	}
}

// sum collects the results of the parts of the program.
func (p *Program) sum() {
	p.Diags = slices.Concat(p.Tree.Diags, p.rules)
	for _, m := range p.Modules {
		p.Diags = append(p.Diags, m.Diags...)
	}
	for _, ds := range p.ends {
		p.Diags = append(p.Diags, ds...)
	}
	for _, x := range p.instances {
		p.Diags = append(p.Diags, x.diags()...)
	}
	if !p.Imported {
		p.gradients()
		p.complete(p.Diags)
	}
	p.Diags = merge(p.Diags, p.Names().Diags)
}

// merge sorts the diagnostics by position and takes each once. Those about
// names are left out inside a text with another error, where they may be no names.
func merge(diags, names []diag.Diagnostic) []diag.Diagnostic {
	byPlace := func(a, b diag.Diagnostic) int {
		return cmp.Or(cmp.Compare(a.Span.Start, b.Span.Start), cmp.Compare(b.Severity, a.Severity),
			cmp.Compare(a.Span.End, b.Span.End), cmp.Compare(a.Code, b.Code), cmp.Compare(a.Message, b.Message))
	}
	slices.SortStableFunc(diags, byPlace)
	diags = slices.CompactFunc(diags, func(a, b diag.Diagnostic) bool { return byPlace(a, b) == 0 })
	var covered []source.Span // of errors, by start; ends only grow
	for _, d := range diags {
		if d.Severity != diag.Error {
			continue
		}
		if n := len(covered); n > 0 {
			d.Span.End = max(d.Span.End, covered[n-1].End)
		}
		covered = append(covered, d.Span)
	}
	for _, d := range names {
		i, _ := slices.BinarySearchFunc(covered, d.Span.Start+1, func(s source.Span, at int) int { return cmp.Compare(s.Start, at) })
		if i == 0 || covered[i-1].End < d.Span.End {
			diags = append(diags, d)
		}
	}
	slices.SortStableFunc(diags, byPlace)
	return diags
}

// check verifies ops of m and marks those that break a rule, which have no cost
// that means anything.
func (p *Program) check(m *ir.Module, ops []*ir.Op) {
	diags := verify.Ops(m, ops)
	p.rules = append(p.rules, diags...)
	ir.Walk(ops, func(o *ir.Op) bool {
		p.findArrays(o)
		if ds := verify.Function(m, o); len(ds) > 0 {
			p.ends[o] = ds
		}
		return true
	})
	if len(diags) > 0 {
		ir.Walk(ops, func(o *ir.Op) bool {
			if !o.Bad && verify.Op(o) != nil {
				o.Bad, p.bad[o] = true, true
			}
			return true
		})
	}
}

// Work counts the ops that analyses of the program visit; nil unless a test counts.
func (p *Program) Work() *work.Counts { return p.Tree.Work }

// Names is the index of the names in the text.
func (p *Program) Names() *scope.Index { return p.names() }

// OneKernel is why members, ops or kernels of one block of fn in their order,
// would not be built as one kernel that gives results; nil where they would.
func (p *Program) OneKernel(fn *ir.Func, members []*ir.Op, results []*ir.Value) error {
	if p.oneKernel == nil {
		return nil
	}
	k := cost.Sized(fn, p.Bind, members, results)
	body := k.Body(0)
	last := body.Terminator()
	return p.oneKernel(body.Ops[:len(body.Ops)-1], last.Operands)
}

// HasErrors reports whether any diagnostic is an error.
func (p *Program) HasErrors() bool {
	return slices.ContainsFunc(p.Diags, func(d diag.Diagnostic) bool { return d.Severity == diag.Error })
}

// FirstError is the first error that begins in span, nil where there is none.
func (p *Program) FirstError(span source.Span) *diag.Diagnostic {
	i, _ := slices.BinarySearchFunc(p.Diags, span.Start, func(d diag.Diagnostic, at int) int { return cmp.Compare(d.Span.Start, at) })
	for ; i < len(p.Diags) && p.Diags[i].Span.Start <= span.End; i++ {
		if p.Diags[i].Severity == diag.Error {
			return &p.Diags[i]
		}
	}
	return nil
}

// Cost is the cost of fn, nil where it has no body.
func (p *Program) Cost(fn *ir.Func) *cost.Func {
	for _, f := range p.Funcs {
		if f.Func == fn {
			return f
		}
	}
	return nil
}

// Func is the cost of the first function called name (without "@"), nil where
// there is none with a body.
func (p *Program) Func(name string) *cost.Func {
	for _, f := range p.Funcs {
		if f.Func.Name == name {
			return f
		}
	}
	return nil
}
