package op

import (
	"math"
	"slices"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// The letters of a term: entry is the dimension of the entries of a level, positive
// numbers are those of an equation, and inside(c) is the place within a block along c.
const entry = 0

func inside(c int) int { return -c }

// term is a dense tensor with a letter for each dimension.
type term struct {
	v       *ir.Value
	letters []int
}

func (t term) size(c int) dim.Dim { return asTensor(t.v.Type).Shape[slices.Index(t.letters, c)] }

// lettersOf are those of a part of an equation.
func lettersOf(s string) []int {
	out := make([]int, len(s))
	for i := range s {
		out[i] = int(s[i])
	}
	return out
}

// contractedSparse is the sum over products of a sparse operand with dense ones.
type contractedSparse struct {
	*entries
	dims   []int // the letters of the sparse operand's dimensions
	output []int
}

// letter is that of a level.
func (c *contractedSparse) letter(level int) int {
	l := c.levels()[level]
	if l.Mod > 0 {
		return inside(c.dims[l.Dim])
	}
	return c.dims[l.Dim]
}

// block is the size of the blocks along the letter, 0 where there are none.
func (c *contractedSparse) block(letter int) int64 {
	for _, l := range c.levels() {
		if l.Mod > 0 && c.dims[l.Dim] == letter {
			return l.Mod
		}
	}
	return 0
}

func (c *contractedSparse) ofValues() []int {
	ls := []int{entry}
	for i := c.core + 1; i < len(c.levels()); i++ {
		ls = append(ls, c.letter(i))
	}
	return ls
}

// blocked divides the dimensions of x along which the sparse operand has blocks.
func (c *contractedSparse) blocked(x term) term {
	var shape []dim.Dim
	var letters []int
	for i, d := range asTensor(x.v.Type).Shape {
		if b := c.block(x.letters[i]); b > 0 {
			shape = append(shape, dim.Quotient(d, b), dim.Const(b))
			letters = append(letters, x.letters[i], inside(x.letters[i]))
			continue
		}
		shape, letters = append(shape, d), append(letters, x.letters[i])
	}
	return term{c.Reshape(x.v, shape...), letters}
}

// wanted are the letters of the output, with those of blocks.
func (c *contractedSparse) wanted() (out []int) {
	for _, x := range c.output {
		out = append(out, x)
		if c.block(x) > 0 {
			out = append(out, inside(x))
		}
	}
	return out
}

// unblocked is y, which has wanted's letters, with output's.
func (c *contractedSparse) unblocked(y term) *ir.Value {
	shape := make([]dim.Dim, len(c.output))
	for i, x := range c.output {
		shape[i] = y.size(x)
		if b := c.block(x); b > 0 {
			shape[i] = shape[i].Scale(b)
		}
	}
	return c.Reshape(c.arranged(y, c.wanted()).v, shape...)
}

// contract reduces x, the values, times others over the letters that the output lacks.
func (c *contractedSparse) contract(kind string, x term, others []term) term {
	return c.contractFrom(kind, x, others, c.core)
}

// contractFrom is contract of what has the entries of a level.
func (c *contractedSparse) contractFrom(kind string, x term, others []term, level int) term {
	kept := append([]int{entry}, c.wanted()...)
	for ; level >= 0; level-- {
		outer := c.summedWith(level, kept)
		x, others = c.multiply(x, others, outer, level, kept)
		if slices.Contains(kept, c.letter(level)) {
			break
		}
		switch c.levels()[level].Kind {
		case types.CompressedLevel, types.LooseCompressedLevel:
			positions := c.positions(level)
			for level > outer {
				level--
				positions = c.take(positions, c.positions(level))
			}
			// A search has no form for several pieces at once: o is then one piece of the op in the text.
			rows := c.of == c.o && level == 1 && c.levels()[1].Kind == types.CompressedLevel && len(others) == 0 && slices.Contains(kept, c.letter(0)) && c.ascending(0)
			if rows {
				positions = c.take(positions, c.begins(0))
			}
			x.v = c.Value("segment_reduce", []*ir.Value{x.v, positions}, named("kind", types.Keyword(kind)))
			if rows {
				return c.reduced(kind, term{x.v, append([]int{c.letter(0)}, x.letters[1:]...)}, kept)
			}
			if c.levels()[level].Kind == types.LooseCompressedLevel {
				x.v = c.others(x.v, c.count(level-1))
			}
		case types.DenseLevel:
			shape := asTensor(x.v.Type).Shape
			x.v = c.Reshape(x.v, append([]dim.Dim{c.count(level - 1), c.size(level)}, shape[1:]...)...)
			x.v = c.reduce(kind, x.v, 1)
		case types.StructuredLevel:
			shape := asTensor(x.v.Type).Shape
			of, own := c.count(level-1), c.levels()[level]
			x.v = c.Reshape(x.v, append([]dim.Dim{of, dim.Quotient(c.size(level), own.M).Scale(own.N)}, shape[1:]...)...)
			x.v = c.reduce(kind, x.v, 1)
		}
	}
	x, _ = c.multiply(x, others, -1, level, kept)
	return c.place(kind, c.reduced(kind, x, kept), level)
}

// fewEntries is how many entries of a level are under one of the level above it, on average, below which they are summed with those of its
// neighbours: their own sums would be about as many as they are, and go to memory.
const fewEntries = 2

// summedWith is the outermost level whose segments are summed at once with those of level.
func (c *contractedSparse) summedWith(level int, kept []int) int {
	compressed := func(i int) bool {
		return c.levels()[i].Kind == types.CompressedLevel && !slices.Contains(kept, c.letter(i))
	}
	for ; level > 0 && compressed(level) && compressed(level-1); level-- {
		n, known := c.count(level).Int()
		of, also := c.count(level - 1).Int()
		if !c.count(level).Equal(c.count(level-1)) && (!known || !also || n >= fewEntries*of) {
			break
		}
	}
	return level
}

// ascending reports whether the coordinates of a level are each greater than the one before.
func (e *entries) ascending(level int) bool {
	l := e.levels()[level]
	return level == 0 && l.Kind == types.CompressedLevel && !l.NonUnique && !l.NonOrdered
}

// begins is, for each coordinate along the first level, which ascends, and for the end of all, how many entries have a lesser one: what
// is stored under entries is so under all coordinates, and nothing need be moved to its place.
func (e *entries) begins(level int) *ir.Value {
	n := e.size(level).Add(dim.Const(1))
	own := e.Convert(e.component(level, types.Coordinates), types.I32)
	if is := e.stored(level); is != nil {
		own = e.Value("select", []*ir.Value{is, own, e.constant(types.I32, e.size(level))}, nil)
	}
	return e.Value("searchsorted", []*ir.Value{own, e.numbers(n)}, nil, e.vector(types.I32, n))
}

// others are n elements of x, every other one along its first dimension: of the segments of a loose level those that are no gaps.
func (l *lowering) others(x *ir.Value, n dim.Dim) *ir.Value {
	if v, ok := n.Int(); ok {
		return l.Value("slice", []*ir.Value{x}, []types.Named{
			{Name: "dims", Value: IntList(0)}, {Name: "start_indices", Value: IntList(0)}, {Name: "limit_indices", Value: IntList(int(2*v - 1))}, {Name: "strides", Value: IntList(2)},
		})
	}
	return l.take(x, l.Binary("mul", l.numbers(n), l.Splat(&types.Tensor{Elem: types.I32}, 2)))
}

// multiply multiplies x, of the entries of a level, by those of others whose deepest letter
// of the sparse operand's is that of level from or one below; left are the rest.
func (c *contractedSparse) multiply(x term, others []term, from, level int, kept []int) (_ term, left []term) {
	var now []term
	for _, o := range others {
		if c.deepest(o) >= from {
			now = append(now, o)
		} else {
			left = append(left, o)
		}
	}
	for i, o := range now {
		keep := slices.Clone(kept)
		for _, p := range slices.Concat(now[i+1:], left) {
			keep = append(keep, p.letters...)
		}
		if c.deepest(o) >= 0 {
			o = c.at(o, level)
			o.v = c.counted(o.v, level)
		}
		x = c.product(x, o, keep)
	}
	return x, left
}

// deepest is the last level, of those up to core, whose letter o has; -1 where it has none.
func (c *contractedSparse) deepest(o term) int {
	deepest := -1
	for i := range c.core + 1 {
		if slices.Contains(o.letters, c.letter(i)) {
			deepest = i
		}
	}
	return deepest
}

// at is o at the coordinates of the entries of a level: its dimensions along the levels up to
// it become that of the entries.
func (c *contractedSparse) at(o term, level int) term {
	var levels []int
	for i := range level + 1 {
		if slices.Contains(o.letters, c.letter(i)) {
			levels = append(levels, i)
		}
	}
	var first, rest []int
	for _, i := range levels {
		first = append(first, c.letter(i))
	}
	for _, x := range o.letters {
		if !slices.Contains(first, x) {
			rest = append(rest, x)
		}
	}
	o = c.arranged(o, append(first, rest...))
	shape := asTensor(o.v.Type).Shape
	at := c.linear(levels, level)
	n := len(levels)
	v := c.Reshape(o.v, append([]dim.Dim{dim.Prod(shape[:n]...)}, shape[n:]...)...)
	return term{c.take(v, at), append([]int{entry}, rest...)}
}

// counted is x, of the entries of a level, with 0 for those that no stored element is under: what x is there, as an infinity, is in no
// product, and in no gradient. Of cost it is no part: where segments are summed, none of these is seen (the pass simplify).
func (c *contractedSparse) counted(x *ir.Value, level int) *ir.Value {
	if c.costs && c.of == c.o {
		return x
	}
	return c.where(c.occupied(level), x, 0)
}

// occupied is, for each entry of a level up to core, whether a stored element is under it; nil where one is under each.
func (c *contractedSparse) occupied(level int) *ir.Value {
	if level == c.core || c.levels()[level].Kind != types.DenseLevel {
		return c.stored(level)
	}
	below := level + 1
	switch c.levels()[below].Kind {
	case types.CompressedLevel, types.LooseCompressedLevel:
		i := c.numbers(c.count(level))
		begin, end := c.bounds(below, i, c.Binary("add", i, c.Splat(&types.Tensor{Elem: types.I32}, 1)))
		return c.compared("lt", begin, end)
	case types.DenseLevel:
		if is := c.occupied(below); is != nil {
			return c.reduce("or", c.Reshape(is, c.count(level), c.size(below)), 1)
		}
		return nil
	}
	return c.stored(level)
}

// linear numbers, for each entry of a level, its place in a row-major tensor of the levels along.
func (e *entries) linear(along []int, level int) *ir.Value {
	var at *ir.Value
	var all dim.Dim
	for i, a := range along {
		x, n := e.coordinates(a, level), e.size(a)
		if i == 0 {
			at, all = x, n
			continue
		}
		all = all.Mul(n)
		if most, ok := all.Int(); !ok || most > math.MaxInt32 {
			at = e.Convert(at, types.I64)
		}
		if !isOne(n) {
			at = e.Binary("mul", at, e.Splat(&types.Tensor{Elem: at.Elem()}, e.wholeSize(a)))
		}
		at = e.Binary("add", at, e.Convert(x, at.Elem()))
	}
	return at
}

// arranged is x with its dimensions in the order of the letters.
func (l *lowering) arranged(x term, letters []int) term {
	dims := make([]int, len(letters))
	for i, c := range letters {
		dims[i] = slices.Index(x.letters, c)
	}
	return term{l.Transpose(x.v, dims...), letters}
}

// product is x times y. Letters of both that are not kept are contracted.
func (l *lowering) product(x, y term, keep []int) term {
	var sums bool
	all := slices.Clone(x.letters)
	for _, c := range y.letters {
		if !slices.Contains(all, c) {
			all = append(all, c)
		}
		sums = sums || slices.Contains(x.letters, c) && !slices.Contains(keep, c)
	}
	if sums { // within blocks: a product of matrices
		var out []int
		for _, c := range all {
			if slices.Contains(keep, c) {
				out = append(out, c)
			}
		}
		return l.contracted(x, y, out)
	}
	return term{l.Binary("mul", l.spread(x, all), l.spread(y, all)), all}
}

// contracted is the einsum of x and y with the letters of out.
func (l *lowering) contracted(x, y term, out []int) term {
	var names []int
	text := func(ls []int) string {
		s := ""
		for _, c := range ls {
			at := slices.Index(names, c)
			if at < 0 {
				at = len(names)
				names = append(names, c)
			}
			s += string(rune('a' + at))
		}
		return s
	}
	eq := text(x.letters) + "," + text(y.letters) + "->"
	return term{l.Value("einsum", []*ir.Value{x.v, y.v}, named("equation", types.Str(eq+text(out)))), out}
}

// spread is x with dimensions of size 1 for the letters that it lacks, for a broadcast.
func (l *lowering) spread(x term, all []int) *ir.Value {
	var own []int
	for _, c := range all {
		if slices.Contains(x.letters, c) {
			own = append(own, c)
		}
	}
	x = l.arranged(x, own)
	shape := make([]dim.Dim, len(all))
	for i, c := range all {
		shape[i] = dim.Const(1)
		if slices.Contains(own, c) {
			shape[i] = x.size(c)
		}
	}
	return l.Reshape(x.v, shape...)
}

// reduced is x without the letters that are not kept, reduced over.
func (l *lowering) reduced(kind string, x term, keep []int) term {
	var dims, letters []int
	for i, c := range x.letters {
		if slices.Contains(keep, c) {
			letters = append(letters, c)
		} else {
			dims = append(dims, i)
		}
	}
	return term{l.reduce(kind, x.v, dims...), letters}
}

func (l *lowering) reduce(kind string, x *ir.Value, dims ...int) *ir.Value {
	if len(dims) == 0 {
		return x
	}
	return l.Value("reduce", []*ir.Value{x}, append(named("kind", types.Keyword(kind)), named("dims", IntList(dims...))...))
}

// place is x, of the entries of a level, in a tensor with a dimension for each of the levels
// that the output has; those that meet are reduced, and where there is none is the kind's
// identity.
func (c *contractedSparse) place(kind string, x term, level int) term {
	rest, sizes := x.letters[1:], asTensor(x.v.Type).Shape[1:]
	if level < 0 {
		return term{c.Reshape(x.v, sizes...), rest}
	}
	kept := c.wanted()
	var levels []int
	dense := true
	for i := range level + 1 {
		dense = dense && c.levels()[i].Kind == types.DenseLevel
		if slices.Contains(kept, c.letter(i)) {
			levels = append(levels, i)
		}
	}
	var shape []dim.Dim
	var letters []int
	for _, i := range levels {
		shape, letters = append(shape, c.size(i)), append(letters, c.letter(i))
	}
	letters = append(letters, rest...)
	whole := append(slices.Clone(shape), sizes...)
	if dense && len(levels) == level+1 {
		return term{c.Reshape(x.v, whole...), letters}
	}
	at := c.linear(levels, level)
	if is := c.stored(level); is != nil { // padding is at no place
		at = c.Value("select", []*ir.Value{is, at, c.Splat(&types.Tensor{Elem: at.Elem()}, -1)}, nil)
	}
	to := &types.Tensor{Shape: append([]dim.Dim{dim.Prod(shape...)}, sizes...), Elem: x.v.Elem()}
	r, _ := types.ReductionOf(kind)
	base := c.Value("constant", nil, named("value", Neutral(r, to)), to)
	v := c.Value("scatter", []*ir.Value{base, at, x.v}, append(named("kind", types.Keyword(kind)), named("dim", intAttr(0))...))
	return term{c.Reshape(v, whole...), letters}
}
