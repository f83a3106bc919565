package op

import (
	"math"
	"slices"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// lowering writes an op on sparse tensors as dense ops.
type lowering struct {
	*Builder
	o       *ir.Op
	of      *ir.Op          // the one in the text, where o is a piece of it
	in      [][]*ir.Value   // the parts of its operands
	out     []*types.Tensor // the types of its results
	results [][]*ir.Value
	problem *Problem
	costs   bool // it is asked what o costs
}

// stopped ends a lowering that cannot go on; LowerSparse recovers it.
type stopped struct{}

// refuse ends the lowering.
func (l *lowering) refuse(p *Problem) {
	l.problem = p
	panic(stopped{})
}

// built is v, unless building it failed.
func (l *lowering) built(v *ir.Value) *ir.Value {
	if l.failed {
		panic(stopped{})
	}
	return v
}

func (l *lowering) Value(name string, operands []*ir.Value, attrs []types.Named, results ...types.Type) *ir.Value {
	return l.built(l.Builder.Value(name, operands, attrs, results...))
}

// Splat is v as a tensor of type t: a constant has a number of elements, and where that is a
// symbol one is broadcast.
func (l *lowering) Splat(t *types.Tensor, v float64) *ir.Value {
	if !slices.ContainsFunc(t.Shape, func(d dim.Dim) bool { return !d.IsConst() }) {
		return l.Builder.Splat(t, v)
	}
	return l.Value("broadcast", []*ir.Value{l.Builder.Splat(&types.Tensor{Elem: t.Elem}, v)}, nil, t)
}

func (l *lowering) Unary(name string, x *ir.Value) *ir.Value {
	return l.built(l.Builder.Unary(name, x))
}

func (l *lowering) Binary(name string, x, y *ir.Value) *ir.Value {
	return l.built(l.Builder.Binary(name, x, y))
}

func (l *lowering) Convert(x *ir.Value, elem types.Elem) *ir.Value {
	return l.built(l.Builder.Convert(x, elem))
}

func (l *lowering) Reshape(x *ir.Value, shape ...dim.Dim) *ir.Value {
	return l.built(l.Builder.Reshape(x, shape...))
}

func (l *lowering) Transpose(x *ir.Value, dims ...int) *ir.Value {
	return l.built(l.Builder.Transpose(x, dims...))
}

func (l *lowering) sparse(i int) bool {
	t := asTensor(l.o.Operands[i].Type)
	return t != nil && t.Format != nil
}

// entries are the entries of a level of a sparse tensor.
//
// The innermost levels that are dense are dimensions of each value: those of the entries
// of core, the last level that is not.
type entries struct {
	*lowering
	t     *types.Tensor
	parts []*ir.Value
	core  int // -1 where all levels are dense
}

func (l *lowering) entries(i int) *entries {
	return l.entriesOf(asTensor(l.o.Operands[i].Type), l.in[i])
}

func (l *lowering) entriesOf(t *types.Tensor, parts []*ir.Value) *entries {
	e := &entries{l, t, parts, -1}
	for i, level := range t.Format.Levels {
		if level.Kind != types.DenseLevel {
			e.core = i
		}
	}
	return e
}

func (e *entries) levels() []types.Level { return e.t.Format.Levels }

// size is how many coordinates there are along a level.
func (e *entries) size(level int) dim.Dim { return e.levels()[level].Size(e.t.Shape) }

// count is how many entries a level has room for; of level -1 one.
func (e *entries) count(level int) dim.Dim {
	if level < 0 {
		return dim.Const(1)
	}
	return e.t.Entries()[level]
}

// inner are the sizes of the levels within an entry of core.
func (e *entries) inner() (sizes []dim.Dim) {
	for i := e.core + 1; i < len(e.levels()); i++ {
		sizes = append(sizes, e.size(i))
	}
	return sizes
}

// component is what a level stores of that kind, as indices; nil where it stores none.
func (e *entries) component(level int, kind types.ComponentKind) *ir.Value {
	if i := e.t.Component(level, kind); i >= 0 {
		return e.index(e.parts[i])
	}
	return nil
}

func (e *entries) positions(level int) *ir.Value { return e.component(level, types.Positions) }

// values has the entries of core as its first dimension, then inner. What lies in gaps is any number, and 0 here: padding is 0 as it is.
func (e *entries) values() *ir.Value {
	v := e.Reshape(last(e.parts), append([]dim.Dim{e.count(e.core)}, e.inner()...)...)
	if e.loose() {
		return e.unpadded(v, e.core, 0)
	}
	return v
}

// flat is values as they lie in memory.
func (e *entries) flat(v *ir.Value) *ir.Value { return e.Reshape(v, e.t.Values()) }

// index is x with elements that ops take as indices.
func (l *lowering) index(x *ir.Value) *ir.Value {
	if slices.Contains(indexes, x.Elem()) {
		return x
	}
	return l.Convert(x, types.I32)
}

// vector is a vector of n elements. Those of i32 number entries, of which there may be so many.
func (l *lowering) vector(elem types.Elem, n dim.Dim) *types.Tensor {
	if most, ok := n.Int(); ok && elem == types.I32 && most > math.MaxInt32 {
		l.refuse(problem("DM134", -1, "%s numbers %d entries in 32 bits", l.o.Name, most).help("store fewer elements than 2^31: divide the tensor"))
	}
	return &types.Tensor{Shape: []dim.Dim{n}, Elem: elem}
}

// parents is, for each entry of a level, the entry of the level before that it is under:
// nil where that has the same number. Padding is under an entry beyond the last.
func (e *entries) parents(level int, of *ir.Value) *ir.Value {
	switch e.levels()[level].Kind {
	case types.SingletonLevel:
		return of
	case types.StructuredLevel:
		if of == nil {
			of = e.numbers(e.count(level))
		}
		return e.below(level, of, e.each(level))
	case types.CompressedLevel, types.LooseCompressedLevel:
		ids := e.ranges(level)
		if of == nil {
			return ids
		}
		return e.take(ids, of)
	}
	return e.along(level, of, "div")
}

// ranges is, for each entry of a level with positions, the entry of the level before that it is under.
//
// The positions of a loose level are those of twice as many segments less one, of which every other one is a gap between the entries
// of two parents.
func (e *entries) ranges(level int) *ir.Value {
	ids := e.Value("segment_ids", []*ir.Value{e.positions(level)}, nil, e.vector(types.I32, e.count(level)))
	if e.levels()[level].Kind != types.LooseCompressedLevel {
		return ids
	}
	return e.Value("select", []*ir.Value{e.inRange(ids), e.halved(ids), e.constant(ids.Elem(), e.count(level-1))}, nil)
}

// inRange is which of the segments of a loose level are those of a parent, and no gap or padding.
func (e *entries) inRange(ids *ir.Value) *ir.Value {
	two, zero := e.Splat(&types.Tensor{Elem: ids.Elem()}, 2), e.Splat(&types.Tensor{Elem: ids.Elem()}, 0)
	return e.compared("eq", e.Binary("rem", ids, two), zero)
}

func (e *entries) halved(ids *ir.Value) *ir.Value {
	return e.Binary("div", ids, e.Splat(&types.Tensor{Elem: ids.Elem()}, 2))
}

// loose reports whether there are gaps between entries: a level is loose.
func (e *entries) loose() bool {
	return slices.ContainsFunc(e.levels(), func(l types.Level) bool { return l.Kind == types.LooseCompressedLevel })
}

// bounds are the positions at which the entries of a level begin and end that are below those of the level before from
// number from on, up to number to.
func (e *entries) bounds(level int, from, to *ir.Value) (begin, end *ir.Value) {
	if e.levels()[level].Kind == types.LooseCompressedLevel {
		one, two := e.Splat(&types.Tensor{Elem: from.Elem()}, 1), e.Splat(&types.Tensor{Elem: from.Elem()}, 2)
		from, to = e.Binary("mul", from, two), e.Binary("sub", e.Binary("mul", to, two), one)
	}
	return e.take(e.positions(level), from), e.take(e.positions(level), to)
}

// each is how many entries a structured level has below each entry of the level before.
func (e *entries) each(level int) float64 {
	l := e.levels()[level]
	return e.wholeSize(level) / float64(l.M) * float64(l.N)
}

// below is the numbers of entries of a level divided by how many are below each entry of the level before.
func (e *entries) below(level int, of *ir.Value, each float64) *ir.Value {
	if isOne(e.count(level - 1)) {
		return e.Splat(asTensor(of.Type), 0)
	}
	return e.Binary("div", of, e.Splat(&types.Tensor{Elem: of.Elem()}, each))
}

// along is the quotient, or the remainder, of the numbers of entries of a dense level by
// its size.
func (e *entries) along(level int, of *ir.Value, op string) *ir.Value {
	switch {
	case op == "rem" && isOne(e.count(level-1)): // the level counts from the root
		return of
	case op == "rem":
		return e.Binary("rem", of, e.Splat(&types.Tensor{Elem: of.Elem()}, e.wholeSize(level)))
	case isOne(e.count(level - 1)):
		return e.Splat(asTensor(of.Type), 0)
	}
	return e.below(level, of, e.wholeSize(level))
}

// wholeSize is the size of a level as a number.
func (e *entries) wholeSize(level int) float64 {
	n, ok := e.size(level).Int()
	if !ok {
		e.refuse(problem("DM134", -1, "%s needs the size of level %d, which is %s, as a number", e.o.Name, level, e.size(level)).help("bind the symbol"))
	}
	return float64(n)
}

// take is x at the entries given; 0 where it has none.
func (l *lowering) take(x, at *ir.Value) *ir.Value {
	if t := asTensor(x.Type); t.Shape[0].IsZero() {
		return l.Splat(t.With(append(slices.Clone(asTensor(at.Type).Shape), t.Shape[1:]...)...), 0)
	}
	return l.Value("gather", []*ir.Value{x, at}, named("dim", intAttr(0)))
}

// coordinates are, for each entry of a level, its coordinate along level or one before.
func (e *entries) coordinates(along, level int) *ir.Value {
	var at *ir.Value // nil: the entry's own number
	for i := level; i > along; i-- {
		if at == nil && e.levels()[i].Kind == types.DenseLevel {
			at = e.numbers(e.count(level))
		}
		at = e.parents(i, at)
	}
	if x := e.component(along, types.Coordinates); x != nil {
		if at == nil {
			return x
		}
		return e.take(x, at)
	}
	if at == nil {
		at = e.numbers(e.count(level))
	}
	return e.along(along, at, "rem")
}

func (l *lowering) numbers(n dim.Dim) *ir.Value {
	return l.Value("iota", nil, named("dim", intAttr(0)), l.vector(types.I32, n))
}

// stored is, for each entry of a level, whether it is one, and no padding; nil where there is
// no padding.
func (e *entries) stored(level int) *ir.Value {
	is := e.before(level)
	var at *ir.Value // the entry of level i that is above
	for i := level; i >= 0 && e.loose(); i-- {
		if e.levels()[i].Kind == types.LooseCompressedLevel {
			own := e.inRange(e.Value("segment_ids", []*ir.Value{e.positions(i)}, nil, e.vector(types.I32, e.count(i))))
			if at != nil {
				own = e.take(own, at)
			}
			is = e.both(is, own)
		}
		if at == nil && e.levels()[i].Kind == types.DenseLevel {
			at = e.numbers(e.count(level))
		}
		at = e.parents(i, at)
	}
	return is
}

// before is, for each entry of a level, whether it lies before the last position; nil where there is none.
func (e *entries) before(level int) *ir.Value {
	at := level
	for at >= 0 && !e.levels()[at].HasPositions() {
		at--
	}
	if at < 0 || e.levels()[at].Kind == types.LooseCompressedLevel {
		return nil
	}
	n := e.end(at)
	for i := at + 1; i <= level; i++ {
		switch e.levels()[i].Kind {
		case types.DenseLevel:
			n = e.Binary("mul", n, e.Splat(&types.Tensor{Elem: n.Elem()}, e.wholeSize(i)))
		case types.StructuredLevel:
			n = e.Binary("mul", n, e.Splat(&types.Tensor{Elem: n.Elem()}, e.each(i)))
		}
	}
	return e.compared("lt", e.Convert(e.numbers(e.count(level)), n.Elem()), n)
}

// unpadded is x, of the entries of a level as its first dimension, with another number for padding, such that what is computed of
// it is 0 there: of NaN not even a cotangent of 0 is.
func (e *entries) unpadded(x *ir.Value, level int, padding float64) *ir.Value {
	return e.where(e.stored(level), x, padding)
}

// where is x, and another number at those along its first dimension of which is does not hold; nil: it holds of all.
func (l *lowering) where(is, x *ir.Value, other float64) *ir.Value {
	if is == nil {
		return x
	}
	t := asTensor(x.Type)
	shape := append([]dim.Dim{t.Shape[0]}, slices.Repeat([]dim.Dim{dim.Const(1)}, t.Rank()-1)...)
	return l.Value("select", []*ir.Value{l.Reshape(is, shape...), x, l.Splat(&types.Tensor{Elem: t.Elem}, other)}, nil)
}

// end is the last position of a level: how many entries it has, [1].
func (e *entries) end(level int) *ir.Value {
	end := e.Splat(&types.Tensor{Elem: types.I32}, math.MaxInt32) // moved to the last one
	return e.Value("dynamic_slice", []*ir.Value{e.positions(level), end}, named("slice_sizes", IntList(1)))
}
