// Package program is the one road from a text to everything that is known
// about it: text → tree → modules → checks → cost. The command line and the
// language server both take it, so that both say the same.
package program

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"dmir/analysis/config"
	"dmir/analysis/cost"
	"dmir/analysis/machine"
	"dmir/dialect/ir"
	"dmir/dialect/lower"
	"dmir/dialect/verify"
	"dmir/syntax/ast"
	"dmir/syntax/diag"
	"dmir/syntax/parse"
	"dmir/syntax/scope"
	"dmir/syntax/source"
)

// Options say for which machine and which sizes a program is analysed.
type Options struct {
	Target *machine.Machine // nil: the configuration's, else machine.Default
	Bind   map[string]int64 // sizes of dimension symbols, over the configuration's
	Config *config.Config   // may be nil
	Cache  *parse.Cache     // of the last version of the text; may be nil
}

// Program is an analysed text. It is never changed after Load and safe for
// concurrent use.
type Program struct {
	Src     *source.File
	Target  *machine.Machine
	Bind    map[string]int64
	Config  *config.Config
	Tree    *ast.File
	Modules []*ir.Module
	Funcs   []*cost.Func      // of all modules, in textual order; functions with a body only
	Diags   []diag.Diagnostic // of syntax, names, types and op rules, by position

	names func() *scope.Index
}

// Load analyses src. It never fails: what is wrong with the text, down to its
// being no text at all, is in Diags.
func Load(src *source.File, opts Options) *Program {
	p := &Program{Src: src, Target: opts.Target, Config: opts.Config, Bind: map[string]int64{}}
	if p.Config == nil {
		p.Config = &config.Config{}
	}
	if p.Target == nil {
		p.Target, _ = p.Config.Machine("")
	}
	maps.Copy(p.Bind, p.Config.Bind)
	maps.Copy(p.Bind, opts.Bind)

	if opts.Cache != nil {
		p.Tree = opts.Cache.File(src)
	} else {
		p.Tree = parse.File(src)
	}
	p.names = sync.OnceValue(func() *scope.Index { return scope.Build(p.Tree) })
	go func() { // beside lowering; it reads the tree only
		defer func() { _ = recover() }() // OnceValue raises it again in whoever asks
		p.names()
	}()
	p.Modules = lower.File(p.Tree)
	p.Diags = slices.Clone(p.Tree.Diags)
	for _, m := range p.Modules {
		p.Diags = append(p.Diags, m.Diags...)
		p.Diags = append(p.Diags, check(m)...)
		p.Funcs = append(p.Funcs, cost.Module(m, p.Bind)...)
	}
	p.Diags = merge(p.Diags, p.Names().Diags)
	return p
}

// merge sorts the diagnostics by position and takes each once. Those about
// names are added where nothing else is said: lowering says the same of the
// ops that it knows.
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

// check verifies m and marks the ops that break a rule, which have no cost that
// means anything.
func check(m *ir.Module) []diag.Diagnostic {
	diags := verify.Module(m)
	if len(diags) > 0 {
		ir.Walk(m.Ops, func(o *ir.Op) bool {
			o.Bad = o.Bad || verify.Op(o) != nil
			return true
		})
	}
	return diags
}

// Names is the index of the names in the text.
func (p *Program) Names() *scope.Index { return p.names() }

// HasErrors reports whether any diagnostic is an error.
func (p *Program) HasErrors() bool {
	return slices.ContainsFunc(p.Diags, func(d diag.Diagnostic) bool { return d.Severity == diag.Error })
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
