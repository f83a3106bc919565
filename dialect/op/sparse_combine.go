package op

import (
	"math"
	"slices"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// matched is combinations of entries.
type matched struct {
	n  dim.Dim           // how many there is room for
	at map[int]*ir.Value // of each its coordinate along a letter
	is *ir.Value         // which of them are some; nil: all
	// padding is which are no padding, and lie before all others.
	padding *ir.Value
	x       term // the product of the values of each; its value is nil for 1
	// of is what these repeat, the i-th of them from positions[i] to positions[i+1].
	of        *matched
	positions *ir.Value
	side      *side // whose entries these are, where of is nil
	unrolled  bool  // they are the places within entries
	inOrder   bool  // of more than one operand, but they lie as the result stores them, each once
}

// combine joins all operands and multiplies by the dense ones. pattern: the first one's own
// values are not read.
func (j *joining) combine(pattern bool) *matched {
	j.begin()
	first := j.sides[0]
	c := &matched{n: first.count(first.level), at: map[int]*ir.Value{}, padding: first.stored(first.level), side: first}
	c.is = j.both(c.padding, first.repeated())
	c.x = term{nil, first.values.letters}
	if !pattern {
		c.x.v = first.values.v
	}
	j.locate(c, first.outer, 1, first.coordinate)
	c = j.multiply(c, 1)
	for k, s := range j.sides[1:] {
		c = j.multiply(j.with(c, s, k+2), k+2)
	}
	return c
}

// needs reports whether the coordinates along a letter are asked for once n operands have joined.
func (j *joining) needs(letter, n int) bool {
	has := func(ls []int) bool { return slices.Contains(ls, letter) }
	return has(j.wanted()) || slices.ContainsFunc(j.dense, func(t term) bool { return has(t.letters) }) ||
		slices.ContainsFunc(j.sides[min(n, len(j.sides)):], func(s *side) bool { return has(s.outer) })
}

// locate gives c its coordinates along letters, as far as they are needed.
func (j *joining) locate(c *matched, letters []int, n int, coordinate func(letter int) *ir.Value) {
	for _, letter := range letters {
		if c.has(letter) {
			continue
		}
		c.at[letter] = nil
		if j.needs(letter, n) {
			c.at[letter] = coordinate(letter)
		}
	}
}

// multiply multiplies by the dense operands all of whose letters that entries have are
// known once n operands have joined.
func (j *joining) multiply(c *matched, n int) *matched {
	var left []term
	for i, t := range j.dense {
		if slices.ContainsFunc(t.letters, func(letter int) bool {
			return !c.has(letter) && slices.ContainsFunc(j.sides[n:], func(s *side) bool { return slices.Contains(s.outer, letter) })
		}) {
			left = append(left, t)
			continue
		}
		c.x = j.times(c, j.taken(c, t), slices.Concat(left, j.dense[i+1:]), n)
	}
	j.dense = left
	return c
}

// has reports whether c has coordinates along a letter.
func (c *matched) has(letter int) bool {
	_, ok := c.at[letter]
	return ok
}

// taken is x, dense, at the coordinates of c.
func (j *joining) taken(c *matched, x term) term {
	var first, rest []int
	for _, letter := range x.letters {
		if c.has(letter) {
			first = append(first, letter)
		} else {
			rest = append(rest, letter)
		}
	}
	if first == nil {
		return x
	}
	x = j.arranged(x, append(slices.Clone(first), rest...))
	shape := asTensor(x.v.Type).Shape
	n := len(first)
	all := dim.Prod(shape[:n]...)
	v := j.Reshape(x.v, append([]dim.Dim{all}, shape[n:]...)...)
	return term{j.met(c, j.take(v, j.numbered(c, first, j.keyElem(all)))), append([]int{entry}, rest...)}
}

// met is x, of combinations, with 0 for those that are none: what x is there, as an infinity, is in no product, and in no gradient.
func (j *joining) met(c *matched, x *ir.Value) *ir.Value {
	if j.costs {
		return x
	}
	return j.where(c.is, x, 0)
}

// numbered is, for each combination, the number of its place in a row-major tensor of letters.
func (j *joining) numbered(c *matched, letters []int, elem types.Elem) *ir.Value {
	var at *ir.Value
	for _, letter := range letters {
		x := j.Convert(c.at[letter], elem)
		if at != nil {
			x = j.Binary("add", j.Binary("mul", at, j.constant(elem, j.sizes[letter])), x)
		}
		at = x
	}
	if at == nil {
		return j.Splat(&types.Tensor{Shape: []dim.Dim{c.n}, Elem: elem}, 0)
	}
	return at
}

// times is c's product times x, of which letters that nothing asks for any more are summed.
func (j *joining) times(c *matched, x term, later []term, n int) term {
	switch {
	case c.x.v != nil:
	case slices.Contains(x.letters, entry):
		return x
	default: // the same for each combination
		shape := append([]dim.Dim{c.n}, asTensor(x.v.Type).Shape...)
		v := j.Reshape(x.v, append([]dim.Dim{dim.Const(1)}, shape[1:]...)...)
		return term{j.Value("broadcast", []*ir.Value{v}, nil, &types.Tensor{Shape: shape, Elem: v.Elem()}), append([]int{entry}, x.letters...)}
	}
	keep := append([]int{entry}, j.wanted()...)
	for _, t := range later {
		keep = append(keep, t.letters...)
	}
	for _, s := range j.sides[n:] {
		keep = append(keep, s.values.letters...)
	}
	return j.product(c.x, x, keep)
}

// with is c joined with s, which is the n-th operand to join.
func (j *joining) with(c *matched, s *side, n int) *matched {
	from, to, number := j.matches(c, s)
	entry := func(at *ir.Value) *ir.Value {
		if number == nil {
			return at
		}
		return j.take(number, at)
	}
	if !slices.ContainsFunc(s.outer, func(letter int) bool { return !c.has(letter) }) {
		r := *c
		r.is = j.both(c.is, j.compared("lt", from, to))
		r.x = j.times(c, term{j.met(&r, j.take(s.values.v, entry(from))), s.values.letters}, j.dense, n)
		return &r
	}
	counts := j.Convert(j.Binary("sub", to, from), types.I32)
	if c.is != nil {
		counts = j.Value("select", []*ir.Value{c.is, counts, j.Splat(asTensor(counts.Type), 0)}, nil)
	}
	most := dim.Const(1)
	for _, letter := range s.outer {
		if !c.has(letter) {
			most = most.Mul(j.sizes[letter])
		}
	}
	if e := s.count(s.level); most.AtLeast(e) {
		most = e
	}
	most = most.Mul(c.n)
	r := &matched{n: j.room, at: map[int]*ir.Value{}, of: c}
	if j.room.AtLeast(most) {
		r.n = most
	}
	elem := types.I64
	if v, ok := most.Int(); ok && v < math.MaxInt32 {
		elem = types.I32
	}
	sums := j.Value("cumsum", []*ir.Value{j.Convert(counts, elem)}, named("dim", intAttr(0)))
	none := j.Splat(&types.Tensor{Shape: []dim.Dim{dim.Const(1)}, Elem: elem}, 0)
	r.positions = j.Value("concatenate", []*ir.Value{none, sums}, named("dim", intAttr(0)))
	total := j.lastOf(r.positions)
	if !r.n.AtLeast(most) {
		j.within(j.Reshape(total), r.n, RoomForProducts+valueName(j.o.Results[0]))
	}
	place := j.numbers(r.n)
	r.is = j.compared("lt", j.Convert(place, elem), total)
	r.padding = r.is
	ids := j.Value("segment_ids", []*ir.Value{r.positions}, nil, j.vector(types.I32, r.n))
	at := j.Binary("add", j.take(from, ids), j.Binary("sub", place, j.Convert(j.take(r.positions, ids), types.I32)))
	at = entry(at)
	r.x = term{nil, c.x.letters}
	if c.x.v != nil {
		r.x.v = j.take(c.x.v, ids)
	}
	for letter, v := range c.at {
		r.at[letter] = nil
		if v != nil && j.needs(letter, n) {
			r.at[letter] = j.take(v, ids)
		}
	}
	j.locate(r, s.outer, n, func(letter int) *ir.Value { return j.take(s.coordinate(letter), at) })
	r.x = j.times(r, term{j.met(r, j.take(s.values.v, at)), s.values.letters}, j.dense, n)
	return r
}

// lastOf is the last element of x, a vector, [1].
func (l *lowering) lastOf(x *ir.Value) *ir.Value {
	end := l.Splat(&types.Tensor{Elem: types.I32}, math.MaxInt32) // moved to the last one
	return l.Value("dynamic_slice", []*ir.Value{x, end}, named("slice_sizes", IntList(1)))
}

// matches is, for each combination, from where to where the entries of s agree with it, and
// the numbers of these entries in the order in which they are counted; nil: their own.
func (j *joining) matches(c *matched, s *side) (from, to, number *ir.Value) {
	var shared []int
	for _, letter := range s.outer {
		if c.has(letter) {
			shared = append(shared, letter)
		}
	}
	ordered := s.repeated() == nil // by shared, one after the other
	k := 0
	for ; ordered && k < len(shared); k++ {
		level := s.levels()[k]
		ordered = shared[k] == s.outer[k] && (!s.whole || level.Div == 0 && level.Mod == 0)
	}
	dense := ordered && k <= s.level
	for i, level := range s.levels() {
		dense = dense && (i >= k || level.Kind == types.DenseLevel) && (i <= k || level.Kind != types.LooseCompressedLevel)
	}
	if dense {
		from, to = s.children(j.numbered(c, shared, j.keyElem(s.count(k-1))), k)
		return from, to, nil
	}
	end := dim.Const(1)
	for _, letter := range shared {
		end = end.Mul(j.sizes[letter])
	}
	elem := j.keyElem(end)
	var own *ir.Value
	for _, letter := range shared {
		x := j.Convert(s.coordinate(letter), elem)
		if own != nil {
			x = j.Binary("add", j.Binary("mul", own, j.constant(elem, j.sizes[letter])), x)
		}
		own = x
	}
	if own == nil { // all that are some agree
		own = j.Splat(j.vector(elem, s.count(s.level)), 0)
	}
	if is := j.both(s.stored(s.level), s.repeated()); is != nil {
		own = j.Value("select", []*ir.Value{is, own, j.constant(elem, end)}, nil)
	}
	if !ordered || s.loose() {
		n := s.count(s.level)
		sorted := j.Value("sort", []*ir.Value{own}, named("dim", intAttr(0)), j.vector(elem, n), j.vector(types.I32, n)).Op
		own, number = sorted.Results[0], sorted.Results[1]
	}
	x := j.numbered(c, shared, elem)
	v := j.vector(types.I32, c.n)
	from = j.Value("searchsorted", []*ir.Value{own, x}, nil, v)
	to = j.Value("searchsorted", []*ir.Value{own, x}, named("side", types.Keyword("right")), v)
	return from, to, number
}

// children are from where to where the entries lie that are below entries of the level before
// first, of which parents are some; nil: below the root.
func (s *side) children(parents *ir.Value, first int) (from, to *ir.Value) {
	one := s.Splat(&types.Tensor{Elem: parents.Elem()}, 1)
	from, to = parents, s.Binary("add", parents, one)
	for i := first; i <= s.level; i++ {
		switch s.levels()[i].Kind {
		case types.CompressedLevel, types.LooseCompressedLevel:
			from, to = s.bounds(i, from, to)
		case types.DenseLevel, types.StructuredLevel:
			size := s.wholeSize(i)
			if s.levels()[i].Kind == types.StructuredLevel {
				size = s.each(i)
			}
			n := s.Splat(&types.Tensor{Elem: from.Elem()}, size)
			from, to = s.Binary("mul", from, n), s.Binary("mul", to, n)
		}
	}
	return s.Convert(from, types.I32), s.Convert(to, types.I32)
}
