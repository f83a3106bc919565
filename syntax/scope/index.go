package scope

import (
	"cmp"
	"slices"
	"sort"

	"dmir/syntax/ast"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// Kind tells the name spaces apart.
type Kind uint8

// The kinds of names.
const (
	Value     Kind = iota // %x
	Block                 // ^bb0
	Symbol                // @f
	AttrAlias             // #a
	TypeAlias             // !a
)

func (k Kind) String() string {
	return [...]string{"value", "block", "symbol", "attribute alias", "type alias"}[k]
}

// Name is one thing that is named, with the places that name it. The spans are
// in textual order and cover the name with its sigil, and quotes where it has
// them, but not the "#1" of a result number. The definition of a symbol in
// generic form, sym_name = "f", is the span of the string's content.
type Name struct {
	Kind Kind
	Text string        // with sigil; a symbol's without the quotes it does not need
	Defs []source.Span // none if unresolved, several if defined more than once
	Uses []source.Span

	id      int32
	section int32
	home    *region   // where it is defined, or looked for in vain; nil for an alias
	inner   []*region // the regions of the op that defines a symbol
	count   int32     // how many values a result name stands for
	defined bool
	first   source.Span // its first definition
}

// Index is what Build found. It is immutable.
type Index struct {
	// Names are all names in the order of their first appearance.
	Names []*Name
	// Diags are names without definition and names defined twice, by position.
	Diags []diag.Diagnostic

	src  *source.File
	occs []occurrence // by position
}

type occurrence struct {
	span source.Span
	name int32
	def  bool
}

// At is the name at a byte offset, and the span of its appearance there. An
// offset just behind a name counts as on it.
func (x *Index) At(off int) (*Name, source.Span, bool) {
	i := sort.Search(len(x.occs), func(i int) bool { return x.occs[i].span.Start > off }) - 1
	if i < 0 || !x.occs[i].span.Contains(off) {
		return nil, source.Span{}, false
	}
	return x.Names[x.occs[i].name], x.occs[i].span, true
}

// Build indexes a file.
func Build(f *ast.File) *Index {
	b := &builder{x: &Index{src: f.Src}}
	for i, items := range sections(f.Items) {
		b.section(items, int32(i))
	}
	b.finish()
	return b.x
}

// sections are the items between the "// -----" marks.
func sections(items []*ast.Op) [][]*ast.Op {
	var out [][]*ast.Op
	start := 0
	for i, o := range items {
		if o.Form == ast.Split {
			out = append(out, items[start:i])
			start = i + 1
		}
	}
	return append(out, items[start:])
}

// finish brings occurrences and diagnostics into textual order and hands the
// spans to their names.
func (b *builder) finish() {
	x := b.x
	slices.SortStableFunc(x.Diags, func(a, c diag.Diagnostic) int { return cmp.Compare(a.Span.Start, c.Span.Start) })
	slices.SortFunc(x.occs, func(a, c occurrence) int {
		return cmp.Or(cmp.Compare(a.span.Start, c.span.Start), cmp.Compare(a.span.End, c.span.End))
	})
	defs, uses := make([]int, len(b.names)), make([]int, len(b.names))
	order := make([]int32, 0, len(b.names))
	for _, o := range x.occs {
		if defs[o.name]+uses[o.name] == 0 {
			order = append(order, o.name)
		}
		if o.def {
			defs[o.name]++
		} else {
			uses[o.name]++
		}
	}
	spans := make([]source.Span, len(x.occs))
	place := make([]int32, len(b.names))
	for i, n := range order {
		d, u := defs[n], uses[n]
		b.names[n].Defs, spans = spans[:0:d], spans[d:]
		b.names[n].Uses, spans = spans[:0:u], spans[u:]
		place[n] = int32(i)
		x.Names = append(x.Names, b.names[n])
	}
	for i := range x.occs {
		o := &x.occs[i]
		o.name = place[o.name]
		n := x.Names[o.name]
		if o.def {
			n.Defs = append(n.Defs, o.span)
		} else {
			n.Uses = append(n.Uses, o.span)
		}
	}
}
