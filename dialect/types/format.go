package types

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"dmir/dialect/dim"
)

// Format is how a sparse tensor is stored: a tree of levels, as in Chou,
// Kjolstad and Amarasinghe (Format Abstraction for Sparse Tensor Algebra
// Compilers, OOPSLA 2018) and MLIR's sparse_tensor.
type Format struct {
	Levels []Level // the outermost first
	// Stored is how many entries each compressed level has room for, the outermost
	// first. How many it has is its last position; what lies beyond takes part in nothing.
	Stored             []dim.Dim
	PosWidth, CrdWidth int // bits of a position and of a coordinate; 0 is 64
	// Pieces is into what parts of equally many coordinates the tensor is cut, the last of which are padded. Each is stored as
	// a tensor of its own, with coordinates from 0 along what is cut and the room that Stored says, and components have the
	// pieces as their first dimension, row by row of blocks.
	Pieces Pieces
	// ByEntries: pieces have equally many entries, one after the other as they are stored, in place of equally many coordinates.
	// Each has the coordinates of the whole, so that entries of one row may be in two of them.
	ByEntries bool
}

// Pieces is how many pieces a sparse tensor is cut into along the dimension of its outermost level, and of a matrix along the
// other one. Zero is a whole tensor.
type Pieces struct {
	Outer int64
	Inner int64 // 0: not cut along the other dimension
}

// Count is how many pieces there are, 0 of a whole tensor.
func (p Pieces) Count() int64 { return p.Outer * max(p.Inner, 1) }

// text is p as a format states it.
func (p Pieces) text() string {
	if p.Inner == 0 {
		return strconv.FormatInt(p.Outer, 10)
	}
	return fmt.Sprintf("[%d, %d]", p.Outer, p.Inner)
}

// LevelKind is what a level stores of the coordinates along it.
type LevelKind string

// The kinds of levels.
const (
	DenseLevel           LevelKind = "dense"            // every coordinate has an entry: nothing is stored
	CompressedLevel      LevelKind = "compressed"       // the coordinates that have one, from a position of each parent to that of the next
	LooseCompressedLevel LevelKind = "loose_compressed" // those from a position of each parent to another
	SingletonLevel       LevelKind = "singleton"        // one for each parent
	StructuredLevel      LevelKind = "structured"       // of each M neighbours N
)

// Level is a level of a Format: it walks the coordinate Dim, Dim floordiv Div,
// or Dim mod Mod.
type Level struct {
	Kind                       LevelKind
	Dim                        int
	Div, Mod                   int64 // 0: the coordinate itself
	N, M                       int64 // of StructuredLevel
	NonUnique, NonOrdered, SoA bool
}

// Component is a tensor that stores a part of a sparse one.
type Component struct {
	Kind   ComponentKind
	Name   string // its kind, with the level's number where several levels have some
	Level  int    // -1: the values
	Tensor *Tensor
}

// ComponentKind is what a component stores.
type ComponentKind string

// The kinds of components.
const (
	Positions   ComponentKind = "positions"
	Coordinates ComponentKind = "coordinates"
	Values      ComponentKind = "values"
)

// CompressedLevels is how many levels have positions.
func (f *Format) CompressedLevels() (n int) {
	for _, l := range f.Levels {
		if l.HasPositions() {
			n++
		}
	}
	return n
}

// HasPositions reports whether l stores where the entries below each entry before it begin and end.
func (l Level) HasPositions() bool {
	return l.Kind == CompressedLevel || l.Kind == LooseCompressedLevel
}

// HasCoordinates reports whether l stores coordinates.
func (l Level) HasCoordinates() bool { return l.Kind != DenseLevel }

// Size is how many coordinates level l has along it in a tensor of that shape.
func (l Level) Size(shape []dim.Dim) dim.Dim {
	switch {
	case l.Div > 0:
		return dim.Quotient(shape[l.Dim], l.Div)
	case l.Mod > 0:
		return dim.Const(l.Mod)
	}
	return shape[l.Dim]
}

// Piece is the type of one of the pieces of t, t itself where it is whole.
func (t *Tensor) Piece() *Tensor {
	if t.Format == nil || t.Format.Pieces.Count() == 0 {
		return t
	}
	shape, ok := t.Format.Cut(t.Shape)
	if !ok {
		return t
	}
	r, f := *t, *t.Format
	r.Shape = shape
	f.Pieces, f.ByEntries = Pieces{}, false
	r.Format = &f
	return &r
}

// Outermost is the dimension that the outermost level walks.
func (f *Format) Outermost() int { return f.Levels[0].Dim }

// Walks is the outermost level that walks dimension d.
func (f *Format) Walks(d int) Level {
	return f.Levels[slices.IndexFunc(f.Levels, func(l Level) bool { return l.Dim == d })]
}

// Innermost is the dimension of a matrix that the outermost level does not walk, -1 of other tensors.
func (f *Format) Innermost(rank int) int {
	if rank != 2 {
		return -1
	}
	return 1 - f.Outermost()
}

// Cut is the shape of each piece of a tensor of that shape; ok is false where a size that is cut is no number.
func (f *Format) Cut(shape []dim.Dim) (each []dim.Dim, ok bool) {
	each = slices.Clone(shape)
	if f.ByEntries {
		return each, true
	}
	ok = f.cut(each, f.Outermost(), f.Pieces.Outer)
	if d := f.Innermost(len(shape)); f.Pieces.Inner > 0 && d >= 0 {
		ok = f.cut(each, d, f.Pieces.Inner) && ok
	}
	return each, ok
}

// cut makes shape that of each of n pieces along dimension d, which are of whole blocks.
func (f *Format) cut(shape []dim.Dim, d int, n int64) bool {
	l := f.Walks(d)
	k, ok := l.Size(shape).Int()
	shape[d] = dim.Const((k + n - 1) / max(n, 1)).Scale(max(l.Div, 1))
	return ok
}

// Entries is how many entries each level of t has room for, t.Format's levels; the last
// is the number of values. Of a tensor in pieces they are those of each piece.
func (t *Tensor) Entries() []dim.Dim {
	t = t.Piece()
	f := t.Format
	out := make([]dim.Dim, len(f.Levels))
	n, next := dim.Const(1), 0
	for i, l := range f.Levels {
		switch l.Kind {
		case DenseLevel:
			n = n.Mul(l.Size(t.Shape))
		case CompressedLevel, LooseCompressedLevel:
			n = f.Stored[next]
			next++
		case StructuredLevel:
			n = n.Mul(dim.Quotient(l.Size(t.Shape), l.M)).Scale(l.N)
		}
		out[i] = n
	}
	return out
}

// Components are the tensors that store t, a sparse tensor: level by level its
// positions and coordinates, then the values.
func (t *Tensor) Components() []Component {
	f := t.Format
	pieces, t := f.Pieces.Count(), t.Piece()
	var out []Component
	several := map[ComponentKind]int{}
	for _, l := range f.Levels {
		if l.HasPositions() {
			several[Positions]++
		}
		if l.HasCoordinates() {
			several[Coordinates]++
		}
	}
	vector := func(kind ComponentKind, level int, elem Elem, n dim.Dim) {
		name := string(kind)
		if several[kind] > 1 {
			name += strconv.Itoa(level)
		}
		shape := []dim.Dim{n}
		if pieces > 0 {
			shape = []dim.Dim{dim.Const(pieces), n}
		}
		out = append(out, Component{kind, name, level, &Tensor{Shape: shape, Elem: elem, At: Placement{Space: t.At.Space}}})
	}
	parents, entries := dim.Const(1), t.Entries()
	for i, l := range f.Levels {
		switch l.Kind {
		case CompressedLevel:
			vector(Positions, i, widthElem(f.PosWidth), parents.Add(dim.Const(1)))
		case LooseCompressedLevel:
			vector(Positions, i, widthElem(f.PosWidth), parents.Scale(2))
		}
		if l.HasCoordinates() {
			vector(Coordinates, i, widthElem(f.CrdWidth), entries[i])
		}
		parents = entries[i]
	}
	vector(Values, -1, t.Elem, parents)
	return out
}

// ParseComponent splits the name of a component into what it stores and the number of its level, "" where the format has one such
// component alone; ok is false of other names.
func ParseComponent(name string) (kind ComponentKind, level string, ok bool) {
	kind = ComponentKind(strings.TrimRight(name, "0123456789"))
	return kind, name[len(kind):], kind == Positions || kind == Coordinates || kind == Values
}

// Component is the number among t.Components of what a level stores of that kind, -1 where it
// stores none.
func (t *Tensor) Component(level int, kind ComponentKind) int {
	return slices.IndexFunc(t.Components(), func(c Component) bool { return c.Level == level && c.Kind == kind })
}

// widthElem is the element type of positions or coordinates of that width.
func widthElem(bits int) Elem {
	switch bits {
	case 8:
		return UI8
	case 16:
		return UI16
	case 32:
		return I32
	}
	return I64
}

// Equal reports whether f and g have the same levels and widths, and room for as
// many entries.
func (f *Format) Equal(g *Format) bool { return f.match(g, dim.Dim.Equal) }

// Alike reports whether f and g have the same levels and widths.
func (f *Format) Alike(g *Format) bool {
	return f.match(g, func(dim.Dim, dim.Dim) bool { return true })
}

func (f *Format) match(g *Format, same func(d, e dim.Dim) bool) bool {
	if f == nil || g == nil {
		return f == g
	}
	return f == g || f.Pieces == g.Pieces && f.ByEntries == g.ByEntries && bits(f.PosWidth) == bits(g.PosWidth) && bits(f.CrdWidth) == bits(g.CrdWidth) && slices.Equal(f.Levels, g.Levels) && slices.EqualFunc(f.Stored, g.Stored, same)
}

func bits(width int) int {
	if width == 0 {
		return 64
	}
	return width
}

// Full reports whether f stores every element.
func (f *Format) Full() bool { return !slices.ContainsFunc(f.Levels, Level.HasCoordinates) }

// Transposed is f of a tensor whose dimension i becomes dimension to[i].
func (f *Format) Transposed(to []int) *Format {
	g := *f
	g.Levels = slices.Clone(f.Levels)
	for i := range g.Levels {
		g.Levels[i].Dim = to[g.Levels[i].Dim]
	}
	return &g
}

// check is what is wrong with f as the format of a tensor of that shape, "" if nothing.
func (f *Format) check(shape []dim.Dim) string {
	if len(f.Levels) == 0 {
		return "a format has at least one level"
	}
	if f.Pieces.Inner > 0 && (len(shape) != 2 || f.ByEntries) {
		return "pieces along two dimensions are those of a matrix by rows and columns"
	}
	type walk struct{ plain, div, mod int64 }
	walks := make([]walk, len(shape))
	for i, l := range f.Levels {
		w := &walks[l.Dim]
		switch {
		case l.Div > 0:
			if w.div != 0 || w.mod != 0 {
				return fmt.Sprintf("the blocks of dimension %d stand after what is in them, or twice", l.Dim)
			}
			w.div = l.Div
		case l.Mod > 0:
			if w.mod != 0 || w.div != l.Mod {
				return fmt.Sprintf("dimension %d mod %d has no level of blocks of %d before it", l.Dim, l.Mod, l.Mod)
			}
			w.mod = l.Mod
		default:
			w.plain++
		}
		if n, ok := shape[l.Dim].Int(); ok && l.Div > 0 && n%l.Div != 0 {
			return fmt.Sprintf("blocks of %d do not divide dimension %d of size %d", l.Div, l.Dim, n)
		}
		switch l.Kind {
		case SingletonLevel:
			if i == 0 || !f.Levels[i-1].HasCoordinates() {
				return fmt.Sprintf("level %d is singleton, but the level before it stores no coordinates", i)
			}
		case StructuredLevel:
			if n, ok := l.Size(shape).Int(); l.N <= 0 || l.N > l.M || ok && n%l.M != 0 {
				return fmt.Sprintf("level %d is structured[%d, %d], which does not divide its size", i, l.N, l.M)
			}
		}
	}
	for d, w := range walks {
		if (w.plain != 1 || w.div != 0) && (w.plain != 0 || w.div == 0 || w.mod == 0) {
			return fmt.Sprintf("dimension %d is not walked by one level, or by one of its blocks and one inside them", d)
		}
	}
	return ""
}

// shortNames are the formats that have a name of their own.
var shortNames = []struct {
	name   string
	rank   int
	levels string
}{
	{"csr", 2, "d0 : dense, d1 : compressed"},
	{"csc", 2, "d1 : dense, d0 : compressed"},
	{"dcsr", 2, "d0 : compressed, d1 : compressed"},
	{"dcsc", 2, "d1 : compressed, d0 : compressed"},
	{"sparse_vector", 1, "d0 : compressed"},
}

// blocked is the levels of a matrix of blocks of a×b elements.
func blocked(a, b int64) string {
	return fmt.Sprintf("d0 floordiv %d : dense, d1 floordiv %d : compressed, d0 mod %d : dense, d1 mod %d : dense", a, b, a, b)
}

// coordinates is the levels of the coordinate format, and fibers of compressed sparse fibers.
func coordinates(rank int) string {
	s := "d0 : compressed"
	if rank > 1 {
		s += "(nonunique)"
	}
	for d := 1; d < rank; d++ {
		s += ", d" + strconv.Itoa(d) + " : singleton"
		if d < rank-1 {
			s += "(nonunique)"
		}
	}
	return s
}

func fibers(rank int) string {
	s := make([]string, rank)
	for d := range s {
		s[d] = "d" + strconv.Itoa(d) + " : compressed"
	}
	return strings.Join(s, ", ")
}

// mapText is the levels of f as in a map.
func (f *Format) mapText() string {
	s := make([]string, len(f.Levels))
	for i, l := range f.Levels {
		s[i] = l.String()
	}
	return strings.Join(s, ", ")
}

// mapOf states the map of f, of a tensor of that rank.
func (f *Format) mapOf(rank int) string {
	dims := make([]string, rank)
	for d := range dims {
		dims[d] = "d" + strconv.Itoa(d)
	}
	return "map = (" + strings.Join(dims, ", ") + ") -> (" + f.mapText() + ")"
}

func (l Level) String() string {
	s := "d" + strconv.Itoa(l.Dim)
	switch {
	case l.Div > 0:
		s += " floordiv " + strconv.FormatInt(l.Div, 10)
	case l.Mod > 0:
		s += " mod " + strconv.FormatInt(l.Mod, 10)
	}
	s += " : " + string(l.Kind)
	if l.Kind == StructuredLevel {
		s += fmt.Sprintf("[%d, %d]", l.N, l.M)
	}
	var props []string
	for _, p := range l.props() {
		if *p.on {
			props = append(props, p.name)
		}
	}
	if props != nil {
		s += "(" + strings.Join(props, ", ") + ")"
	}
	return s
}

type levelProp struct {
	name string
	on   *bool
}

func (l *Level) props() []levelProp {
	return []levelProp{{"nonunique", &l.NonUnique}, {"nonordered", &l.NonOrdered}, {"soa", &l.SoA}}
}

// short is the name of f for tensors of that rank, with its arguments; "" if it has none.
func (f *Format) short(rank int) (name string, args []string) {
	levels := f.mapText()
	for _, s := range shortNames {
		if s.rank == rank && s.levels == levels {
			return s.name, nil
		}
	}
	switch {
	case rank == 2 && len(f.Levels) == 4 && f.Levels[0].Div > 0 && f.Levels[1].Div > 0 && levels == blocked(f.Levels[0].Div, f.Levels[1].Div):
		return "bsr", []string{fmt.Sprintf("%dx%d", f.Levels[0].Div, f.Levels[1].Div)}
	case rank > 1 && levels == coordinates(rank):
		return "coo", nil
	case rank > 2 && levels == fibers(rank):
		return "csf", nil
	case rank == 2 && len(f.Levels) == 2 && f.Levels[1].Kind == StructuredLevel && levels == structured(f.Levels[1].N, f.Levels[1].M):
		return "nm", []string{fmt.Sprintf("%d:%d", f.Levels[1].N, f.Levels[1].M)}
	}
	return "", nil
}

// ShortName is the name of f for tensors of that rank, "csr"; "" if it has none.
func (f *Format) ShortName(rank int) string {
	name, _ := f.short(rank)
	return name
}

func structured(n, m int64) string {
	return fmt.Sprintf("d0 : dense, d1 : structured[%d, %d]", n, m)
}

// Encoding is the attribute by which MLIR states f of a tensor of that rank. It has no place
// for how many entries there are.
func (f *Format) Encoding(rank int) string {
	parts := []string{f.mapOf(rank)}
	return "#" + sparseEncoding + "<{ " + strings.Join(append(parts, f.widths(64)...), ", ") + " }>"
}

// widths states those of f that differ from otherwise.
func (f *Format) widths(otherwise int) (parts []string) {
	for _, w := range []struct {
		key  string
		bits int
	}{{"posWidth", f.PosWidth}, {"crdWidth", f.CrdWidth}} {
		if bits(w.bits) != otherwise {
			parts = append(parts, fmt.Sprintf("%s = %d", w.key, bits(w.bits)))
		}
	}
	return parts
}

// Text is f as the encoding of a tensor of that rank whose "?" have names, if they do.
func (f *Format) Text(rank int, names []string) string {
	named := slices.ContainsFunc(f.Stored, func(d dim.Dim) bool { return !d.IsUnnamed() })
	head, args := f.short(rank)
	if !named && names == nil && f.Pieces.Count() == 0 && (head == "" || bits(f.PosWidth) == 64 && bits(f.CrdWidth) == 64) {
		return f.Encoding(rank)
	}
	parts := args
	if head == "" {
		head, parts = "sparse", []string{f.mapOf(rank)}
	}
	if named {
		parts = append(parts, "nnz = "+storedText(f.Stored))
	}
	if f.Pieces.Count() > 0 {
		parts = append(parts, "pieces = "+f.Pieces.text())
		if f.ByEntries {
			parts = append(parts, "by = entries")
		}
	}
	parts = append(parts, f.widths(32)...)
	if names != nil {
		parts = append(parts, "dims = ["+strings.Join(names, ", ")+"]")
	}
	if parts == nil {
		return "#dm." + head
	}
	return "#dm." + head + "<" + strings.Join(parts, ", ") + ">"
}

func storedText(ds []dim.Dim) string {
	s := make([]string, len(ds))
	same := true
	for i, d := range ds {
		s[i] = "?"
		if !d.IsUnnamed() {
			s[i] = d.String()
		}
		same = same && s[i] == s[0]
	}
	if same {
		return s[0]
	}
	return "[" + strings.Join(s, ", ") + "]"
}
