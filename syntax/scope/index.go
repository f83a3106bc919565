package scope

import (
	"cmp"
	"slices"
	"sort"
	"sync"

	"dmir/base/work"
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
	Axis                  // data of dm.mesh @pod {data = 8}
)

func (k Kind) String() string {
	return [...]string{"value", "block", "symbol", "attribute alias", "type alias", "axis"}[k]
}

// Name is one thing that is named, with the places that name it. The spans are
// in textual order and cover the name with its sigil, and quotes where it has
// them, but not the "#1" of a result number. The definition of a symbol in
// generic form, sym_name = "f", is the span of the string's content. An axis has no
// sigil, and in data:(2)4 the span is that of data.
type Name struct {
	Kind Kind
	Text string // with sigil; a symbol's without the quotes it does not need

	defs    []place // none if unresolved, several if defined more than once
	uses    []place
	id      int32
	section int32
	home    *region          // where it is defined, or looked for in vain; nil for an alias
	inner   []*region        // the regions of the op that defines a symbol
	mesh    *Name            // of an axis
	axes    map[string]*Name // of a mesh
	first   place            // its first definition, while the index is built
}

var noPlace = place{}

// Defs are where n is defined.
func (n *Name) Defs() []source.Span { return spans(n.defs) }

// Uses are where n is used.
func (n *Name) Uses() []source.Span { return spans(n.uses) }

// Mesh is the symbol of the mesh that n is an axis of, nil if it is no axis.
func (n *Name) Mesh() *Name { return n.mesh }

// Axes are the axes of the mesh n that are defined, in their order.
func (n *Name) Axes() []*Name {
	var out []*Name
	for _, a := range n.axes {
		if a.Defined() {
			out = append(out, a)
		}
	}
	slices.SortFunc(out, func(a, b *Name) int { return cmp.Compare(a.defs[0].start(), b.defs[0].start()) })
	return out
}

// Defined reports whether n has a definition.
func (n *Name) Defined() bool { return len(n.defs) > 0 }

// DefinedAt reports whether a definition of n begins at off.
func (n *Name) DefinedAt(off int) bool {
	return slices.ContainsFunc(n.defs, func(p place) bool { return p.start() == off })
}

// IsArgument reports whether n is a value that a block, a function or another op
// defines for what it holds, and no result of an op.
func (n *Name) IsArgument() bool {
	return n.Kind == Value && slices.ContainsFunc(n.defs, func(p place) bool {
		return !slices.ContainsFunc(p.op.Results, func(r ast.Result) bool { return r.Span == p.rel })
	})
}

// place is a part of an op's text. It moves with the op.
type place struct {
	op  *ast.Op
	rel ast.Rel
}

func (p place) span() source.Span { return p.op.Abs(p.rel) }
func (p place) start() int        { return p.op.Off + int(p.rel.Start) }

func spans(ps []place) []source.Span {
	out := make([]source.Span, len(ps))
	for i, p := range ps {
		out[i] = p.span()
	}
	return out
}

// Index is what Build found. Only Splice changes it; else it is safe for
// concurrent use.
type Index struct {
	// Diags are labels, aliases and called symbols without definition, and labels,
	// aliases and symbols defined twice, by position.
	Diags []diag.Diagnostic

	src      *source.File
	work     *work.Counts
	calls    func(op string) bool
	occs     []occurrence // by position
	all      []*Name      // by id; some may have no place any more
	sections []*section
	bodies   map[*ast.Block]body // of functions

	listed sync.Mutex
	names  []*Name // see Names
}

// body is the scope of a function's body and the section it is in.
type body struct {
	r  *region
	in *section
}

type occurrence struct {
	place
	name int32
	def  bool
}

// Names are all names in the order of their first appearance.
func (x *Index) Names() []*Name {
	x.listed.Lock()
	defer x.listed.Unlock()
	if x.names == nil {
		seen := make([]bool, len(x.all))
		x.names = make([]*Name, 0, len(x.all))
		for _, o := range x.occs {
			if !seen[o.name] {
				seen[o.name] = true
				x.names = append(x.names, x.all[o.name])
			}
		}
	}
	return x.names
}

// At is the name at a byte offset, and the span of its appearance there. An
// offset just behind a name counts as on it.
func (x *Index) At(off int) (*Name, source.Span, bool) {
	i := sort.Search(len(x.occs), func(i int) bool { return x.occs[i].start() > off }) - 1
	if i < 0 || !x.occs[i].span().Contains(off) {
		return nil, source.Span{}, false
	}
	return x.all[x.occs[i].name], x.occs[i].span(), true
}

// Reader finds names at offsets that do not decrease, in less time than At.
type Reader struct {
	x    *Index
	next int // the first occurrence behind the offset asked for last
}

// Reader returns a Reader for offsets from off on.
func (x *Index) Reader(off int) *Reader {
	return &Reader{x, sort.Search(len(x.occs), func(i int) bool { return x.occs[i].start() > off })}
}

// At is Index.At.
func (r *Reader) At(off int) (*Name, source.Span, bool) {
	occs := r.x.occs
	for r.next < len(occs) && occs[r.next].start() <= off {
		r.next++
	}
	if r.next == 0 || !occs[r.next-1].span().Contains(off) {
		return nil, source.Span{}, false
	}
	o := occs[r.next-1]
	return r.x.all[o.name], o.span(), true
}

// Build indexes a file. calls reports whether an op of the given name needs the
// symbols it names to exist; what a symbol means to others is not known.
func Build(f *ast.File, calls func(op string) bool) *Index {
	x := &Index{src: f.Src, work: f.Work, calls: calls, bodies: map[*ast.Block]body{}}
	b := &builder{x: x}
	b.found = make([]occurrence, 0, occurrences(f.Items))
	for i, items := range sections(f.Items) {
		b.section(items, int32(i))
	}
	x.occs = b.found
	sortOccurrences(x.occs)
	x.share()
	sortDiags(x.Diags)
	return x
}

// occurrences is about how many names there are in ops, and in what they hold.
func occurrences(ops []*ast.Op) int {
	n := 0
	ast.Walk(ops, func(o *ast.Op) bool {
		n += len(o.Results) + len(o.Operands) + len(o.Succs) + len(o.Symbols) + len(o.Aliases) + len(o.Defs)
		return true
	})
	return n
}

// sortOccurrences sorts by position, the shorter of two that begin together first.
func sortOccurrences(list []occurrence) {
	if len(list) < 64 {
		slices.SortFunc(list, func(a, c occurrence) int {
			return cmp.Or(cmp.Compare(a.start(), c.start()), cmp.Compare(a.rel.End-a.rel.Start, c.rel.End-c.rel.Start))
		})
		return
	}
	// Numbers are sorted several times faster than what they stand for.
	keys := make([]uint64, len(list))
	for i, o := range list {
		keys[i] = uint64(o.start())<<32 | uint64(i)
	}
	keys = merged(keys)
	sorted := make([]occurrence, len(list))
	for i, k := range keys {
		sorted[i] = list[uint32(k)]
	}
	for i := 1; i < len(sorted); i++ {
		for j := i; j > 0 && sorted[j].start() == sorted[j-1].start() && sorted[j].rel.End-sorted[j].rel.Start < sorted[j-1].rel.End-sorted[j-1].rel.Start; j-- {
			sorted[j], sorted[j-1] = sorted[j-1], sorted[j]
		}
	}
	copy(list, sorted)
}

// merged sorts keys that are runs of sorted ones, two for each region: what it
// defines and what it uses.
func merged(keys []uint64) []uint64 {
	var ends []int // of the runs
	for i := 1; i < len(keys); i++ {
		if keys[i] < keys[i-1] {
			ends = append(ends, i)
		}
	}
	if len(ends) == 0 {
		return keys
	}
	ends = append(ends, len(keys))
	other := make([]uint64, len(keys))
	for len(ends) > 1 {
		var next []int
		start := 0
		for i := 0; i < len(ends); i += 2 {
			middle, end := ends[i], ends[min(i+1, len(ends)-1)]
			a, b, to := keys[start:middle], keys[middle:end], other[start:start]
			for len(a) > 0 && len(b) > 0 {
				switch {
				case a[len(a)-1] < b[0]:
					to = append(append(to, a...), b...)
					a, b = nil, nil
				case a[0] < b[0]:
					to, a = append(to, a[0]), a[1:]
				default:
					to, b = append(to, b[0]), b[1:]
				}
			}
			_ = append(append(to, a...), b...)
			next = append(next, end)
			start = end
		}
		keys, other, ends = other, keys, next
	}
	return keys
}

func sortDiags(ds []diag.Diagnostic) {
	slices.SortStableFunc(ds, func(a, c diag.Diagnostic) int { return cmp.Compare(a.Span.Start, c.Span.Start) })
}

// share hands all occurrences to their names, whose lists are parts of one.
func (x *Index) share() {
	defs, uses := make([]int32, len(x.all)), make([]int32, len(x.all))
	for _, o := range x.occs {
		if o.def {
			defs[o.name]++
		} else {
			uses[o.name]++
		}
	}
	all := make([]place, len(x.occs))
	for i, n := range x.all {
		d, u := defs[i], uses[i]
		n.defs, all = all[:0:d], all[d:]
		n.uses, all = all[:0:u], all[u:]
	}
	for _, o := range x.occs {
		n := x.all[o.name]
		if o.def {
			n.defs = append(n.defs, o.place)
		} else {
			n.uses = append(n.uses, o.place)
		}
	}
}

// add hands an occurrence to its name.
func (x *Index) add(o occurrence) {
	n := x.all[o.name]
	list := &n.uses
	if o.def {
		list = &n.defs
	}
	at := len(*list)
	if at > 0 && (*list)[at-1].start() > o.start() {
		at = search(*list, o.start())
	}
	*list = slices.Insert(*list, at, o.place)
}

// search is the first of ps that begins at off or behind it.
func search(ps []place, off int) int {
	return sort.Search(len(ps), func(i int) bool { return ps[i].start() >= off })
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
