package program

import (
	"maps"

	"dmir/analysis/config"
	"dmir/analysis/cost"
	"dmir/dialect/ir"
	"dmir/dialect/lower"
	"dmir/syntax/ast"
	"dmir/syntax/diag"
	"dmir/syntax/scope"
	"dmir/syntax/source"
)

// Imported is the program of modules that were made from src, a text in another
// format: diagnostics are about its lines. It has no tree, and it cannot be spliced.
func Imported(src *source.File, modules []*ir.Module, opts Options) *Program {
	p := create(src, opts)
	p.Tree, p.Modules, p.unit = &ast.File{Src: src}, modules, &lower.Unit{Modules: modules}
	p.names = func() *scope.Index { return scope.Build(p.Tree, nil) }
	for _, m := range modules {
		p.check(m, m.Ops)
		p.costs = append(p.costs, cost.Open(m, p.Bind))
	}
	p.sum()
	return p
}

// create is a program without its text's meaning.
func create(src *source.File, opts Options) *Program {
	p := &Program{Src: src, Target: opts.Target, Config: opts.Config, Bind: map[string]int64{}, oneKernel: opts.OneKernel}
	if p.Config == nil {
		p.Config = &config.Config{}
	}
	if p.Target == nil {
		p.Target, _ = p.Config.Machine("")
	}
	maps.Copy(p.Bind, p.Config.Bind)
	maps.Copy(p.Bind, opts.Bind)
	p.ends, p.bad = map[*ir.Op][]diag.Diagnostic{}, map[*ir.Op]bool{}
	return p
}
