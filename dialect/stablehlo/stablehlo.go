// Package stablehlo imports programs in StableHLO, as JAX and others write them:
// the tree of a text becomes modules of the dialect's own ops. It reads pretty and
// generic form, mhlo as another name of stablehlo, those chlo ops that have a
// formula, and the constants of other dialects that exporters leave between them.
//
// The steps: read.go gives an op one form for all ways to write it (pretty.go has
// the table of pretty forms); the table in convert.go names for each op the function
// that builds ops of the dialect; tidy.go removes what the result does not need. All
// that is wrong in a program is in Module.Diags, with its place; the code Unsupported is
// for what is right and has no equivalent here.
package stablehlo

import (
	"slices"
	"sort"
	"strings"
	"sync"

	"dmir/dialect/ir"
	"dmir/dialect/loc"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/syntax/ast"
	"dmir/syntax/diag"
	"dmir/syntax/parse"
	"dmir/syntax/source"
)

// Holds reports whether the program f is one for Import: it has ops of StableHLO, and
// none of the data-movement dialect.
func Holds(f *ast.File) bool {
	foreign := false
	return !hasOwn(f.Items, &foreign) && foreign
}

// hasOwn reports whether there is an op of the data-movement dialect, and sets foreign for
// one of StableHLO before it: most programs are told by their first ops.
func hasOwn(ops []*ast.Op, foreign *bool) bool {
	for _, t := range ops {
		switch dialect, _, _ := strings.Cut(t.Name, "."); dialect + "." {
		case "stablehlo.", "mhlo.", "chlo.", "sdy.":
			*foreign = true
		case op.Prefix:
			return true
		}
		for _, r := range t.Regions {
			for _, b := range r.Blocks {
				if hasOwn(b.Ops, foreign) {
					return true
				}
			}
		}
	}
	return false
}

// Import is the sections of f, cut at "// -----", as modules of the dialect.
func Import(f *ast.File) []*ir.Module { return ImportBound(f, nil, nil) }

// ImportBound is Import with numbers for the sizes that the program leaves open, by their names, and the files that its
// arguments begin with; nil: they cannot be read.
func ImportBound(f *ast.File, bind map[string]int64, arrays types.Arrays) []*ir.Module {
	var out []*ir.Module
	start := 0
	for i, item := range f.Items {
		if item.Form == ast.Split {
			out = append(out, section(f, f.Items[start:i], bind, arrays))
			start = i + 1
		}
	}
	return append(out, section(f, f.Items[start:], bind, arrays))
}

// importer imports one section.
type importer struct {
	src      *source.File
	m        *ir.Module
	env      types.Env
	locs     *loc.Reader
	arrays   types.Arrays
	blobs    func() map[string]string // of resources, by key
	globals  map[string]*ast.Op       // of other dialects, by symbol
	funcs    map[string]*signature
	sigs     map[*ast.Op]*signature
	trees    map[string]*ast.Op // functions, by name
	depth    int                // of calls in the body of a reduction
	refused  map[string]bool    // functions whose signature has a problem
	scope    *scope
	numbers  map[place]*ir.Value
	exact    bool // the program checks results to the last place: sums of windows are rounded as it writes them, one after the other
	reported int  // problems so far
	b        *ir.Builder
	tables   int                       // bytes of the constants of Fourier transforms
	draws    int64                     // ops so far that draw random numbers
	kept     map[*ir.Value]bool        // values that have their names from the text
	parts    map[*ir.Value][]*ir.Value // of compound values

	dynamic    bool                  // the program leaves sizes open
	bind       map[string]int64      // what they are, by name
	opened     map[string]bool       // the functions that have such sizes
	integers   map[*ir.Value][]int64 // those that are known at import
	held       bool                  // ops have the place of the call that they are expanded from
	caller     loc.Loc               // where that call comes from
	tail       *ast.Op               // the op in front of the return of the function that is converted
	expansions int                   // ops of calls of such functions

	meshes      map[string]*imported // by the name in the text
	meshNames   map[string]bool      // that they have here
	refusedMesh map[string]bool      // meshes with a problem
	hinted      bool                 // that shardings of GSPMD are not read
	device      *imported            // whose devices run the function; nil: it works on whole tensors

	// In the body of a reduction:
	batch []int // sizes that are computed at once; nil: none
	bare  bool  // values are bare element types
	loose bool  // what is built is only looked at: comparisons stay as they are written
}

func section(f *ast.File, items []*ast.Op, bind map[string]int64, arrays types.Arrays) *ir.Module {
	m := &ir.Module{Src: f.Src}
	c := &importer{
		src: f.Src, m: m, globals: map[string]*ast.Op{}, funcs: map[string]*signature{}, sigs: map[*ast.Op]*signature{}, refused: map[string]bool{}, trees: map[string]*ast.Op{}, numbers: map[place]*ir.Value{}, parts: map[*ir.Value][]*ir.Value{},
		bind: bind, arrays: arrays, opened: map[string]bool{}, integers: map[*ir.Value][]int64{},
		meshes: map[string]*imported{}, meshNames: map[string]bool{}, refusedMesh: map[string]bool{},
	}
	m.Aliases, c.locs = &c.env, loc.NewReader(&c.env)
	c.blobs = sync.OnceValue(func() map[string]string { return resources(f.Src, items) })
	c.aliases(items)
	for _, d := range f.Diags {
		if len(items) > 0 && d.Severity == diag.Error && d.Span.Start >= items[0].Off && d.Span.Start <= items[len(items)-1].Span().End {
			m.Diags = append(m.Diags, d)
		}
	}
	c.exact = checksPlaces(items)
	var funcs []*ast.Op
	c.collect(items, &funcs)
	for _, t := range funcs {
		c.dynamic = c.dynamic || c.isOpen(t)
	}
	for _, t := range funcs {
		c.declare(t)
	}
	for _, t := range funcs {
		c.function(t)
	}
	sort.SliceStable(m.Diags, func(i, j int) bool { return m.Diags[i].Span.Start < m.Diags[j].Span.Start })
	if c.reported == 0 && !slices.ContainsFunc(m.Diags, func(d diag.Diagnostic) bool { return d.Severity == diag.Error }) {
		tidy(m)
	}
	return m
}

// checksPlaces reports whether the program checks results to the last place.
func checksPlaces(items []*ast.Op) bool {
	found := false
	ast.Walk(items, func(t *ast.Op) bool {
		found = found || strings.HasPrefix(t.Name, "check.expect_close")
		for _, s := range t.Symbols {
			found = found || s.Name == "@check.expect_close"
		}
		return !found
	})
	return found
}

// collect finds the functions and globals at top level and in modules.
func (c *importer) collect(items []*ast.Op, funcs *[]*ast.Op) {
	for _, t := range items {
		switch {
		case t.Form == ast.AttrAlias || t.Form == ast.TypeAlias || t.Form == ast.Resource || t.Form == ast.Bad:
		case t.Name == "module" || t.Name == "builtin.module":
			for _, r := range t.Regions {
				for _, b := range r.Blocks {
					c.collect(b.Ops, funcs)
				}
			}
		case t.Name == "func.func":
			*funcs = append(*funcs, t)
		case t.Name == "sdy.mesh":
			c.sdyMesh(t)
		case strings.HasSuffix(t.Name, ".global") && len(t.Symbols) > 0:
			c.globals[t.Symbols[0].Name] = t
		default:
			c.report(t, Unsupported, t.Head(), "%s cannot stand outside a function", diag.Name(t.Name))
		}
	}
}

func (c *importer) aliases(items []*ast.Op) {
	for _, t := range items {
		switch t.Form {
		case ast.AttrAlias:
			if x, err := parse.Attr(t.Text(c.src, t.Lead)); err == nil {
				c.env.DefineAttr(t.Name, x)
			} else {
				c.reportError(t, t.Abs(t.Lead), err)
			}
		case ast.TypeAlias:
			if x, err := parse.Type(t.Text(c.src, t.Sig)); err == nil {
				c.env.DefineType(t.Name, x)
			} else {
				c.reportError(t, t.Abs(t.Sig), err)
			}
		}
	}
}
