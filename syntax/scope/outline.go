package scope

import (
	"strings"

	"dmir/syntax/ast"
	"dmir/syntax/source"
)

// ItemKind is how an outline shows an item.
type ItemKind uint8

// The kinds of outline items.
const (
	Module   ItemKind = iota // module, gpu.module, …
	Function                 // func.func, llvm.func, …
	Kernel                   // dm.kernel
	Global                   // memref.global and other symbols without a body
	Other                    // any other op that defines a symbol
)

func (k ItemKind) String() string {
	return [...]string{"module", "function", "kernel", "global", "symbol"}[k]
}

// Item is an entry of a file's outline.
type Item struct {
	Kind      ItemKind
	Name      string      // "@ffn"; the results of a kernel, "%y"; "module" where it has no name
	Detail    string      // the op's name
	Span      source.Span // the whole op
	Selection source.Span // its name
	Children  []Item
}

// Outline is the tree of modules, functions, kernels and other ops that define
// symbols. Ops that are none of these are left out, but what they hold is not.
func Outline(f *ast.File) []Item { return outline(f, f.Items) }

func outline(f *ast.File, ops []*ast.Op) []Item {
	var items []Item
	for _, o := range ops {
		var inner []Item
		for _, r := range o.Regions {
			for _, b := range r.Blocks {
				inner = append(inner, outline(f, b.Ops)...)
			}
		}
		it, ok := item(f, o)
		if !ok {
			items = append(items, inner...)
			continue
		}
		it.Children = inner
		items = append(items, it)
	}
	return items
}

func item(f *ast.File, o *ast.Op) (Item, bool) {
	it := Item{Kind: Other, Detail: o.Name, Span: o.Span(), Selection: o.Abs(o.NameSpan)}
	named := false
	for _, s := range o.Symbols {
		if s.Def {
			it.Name, it.Selection, named = s.Name, o.Abs(s.Span), true
			break
		}
	}
	if text, at := symName(o, f.Src); !named && text != "" {
		it.Name, it.Selection, named = text, o.Abs(at), true
	}
	last := o.Name[strings.LastIndexByte(o.Name, '.')+1:]
	switch {
	case o.Name == "dm.kernel":
		it.Kind = Kernel
		for i, r := range o.Results {
			if i > 0 {
				it.Name += ", "
			}
			it.Name += r.Name
			it.Selection = o.Abs(o.Results[0].Span)
		}
		if it.Name == "" {
			it.Name = o.Name
		}
		return it, true
	case last == "module":
		it.Kind = Module
		if !named {
			it.Name = last
		}
		return it, len(o.Regions) > 0 || named
	case strings.HasSuffix(last, "func") || last == "named_sequence":
		it.Kind = Function
	case len(o.Regions) == 0:
		it.Kind = Global
	}
	return it, named
}
