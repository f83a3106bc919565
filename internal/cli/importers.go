package cli

import (
	"path/filepath"
	"slices"

	"dmir/analysis/program"
	"dmir/dialect/ir"
	"dmir/dialect/stablehlo"
	"dmir/syntax/parse"
	"dmir/syntax/source"
)

// importer reads programs in another tool's format.
type importer struct {
	name string
	exts []string // of the files that are looked at; "" is stdin
	// read is the program in src as modules of the dialect; ok is false for a text in
	// another format.
	read func(src *source.File) (modules []*ir.Module, ok bool)
}

// importers are the formats that dmir reads besides its own.
var importers = []importer{
	{"StableHLO", []string{".mlir", ""}, func(src *source.File) ([]*ir.Module, bool) {
		tree := parse.File(src)
		if !stablehlo.Holds(tree) {
			return nil, false
		}
		return stablehlo.Import(tree), true
	}},
}

// imported is the program in src if it is in another tool's format, else nil.
func imported(src *source.File, opts program.Options) *program.Program {
	ext := filepath.Ext(src.Path)
	for _, f := range importers {
		if !slices.Contains(f.exts, ext) {
			continue
		}
		if modules, ok := f.read(src); ok {
			return program.Imported(src, modules, opts)
		}
	}
	return nil
}

// program is the program of a text in the dialect or in another tool's format.
func (a *app) program(src *source.File, opts program.Options) (*program.Program, error) {
	p, err := await(a.ctx, func() (*program.Program, error) { return imported(src, opts), nil })
	if p == nil && err == nil {
		return a.analyse(src, opts)
	}
	return p, err
}
