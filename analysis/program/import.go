package program

import (
	"maps"

	"dmir/analysis/config"
	"dmir/dialect/ir"
	"dmir/syntax/ast"
	"dmir/syntax/diag"
	"dmir/syntax/scope"
	"dmir/syntax/source"
)

// Import is the program of modules that were made from src, a file in another format
// that is no MLIR text. It has no tree.
func Import(src *source.File, modules []*ir.Module, opts Options) *Program {
	p := create(src, opts)
	p.Tree, p.Imported = &ast.File{Src: src}, true
	p.names = func() *scope.Index { return scope.Build(p.Tree, nil) }
	p.open(modules)
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
