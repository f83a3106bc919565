package op

import (
	"slices"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// products is how contractions take sparse operands.
var products = &Sparse{
	Doc: "Any operands: products of the elements that they store. One sparse operand is walked, and what others have at its coordinates is multiplied. Several are joined by the coordinates that they share: " +
		"an operand all of whose letters those before it have is looked up; another one is walked for each combination of elements so far, as a product of two matrices row by row is, " +
		"and `products` states how many there are at most. Without it all operands but the one with most elements are made dense.\n\n" +
		"The result is dense or, as written, sparse in any format: it stores what some combination of stored elements gives, 0 or not, and the written `nnz` is how many that are at most. " +
		"It is an error if there are more, of either.",
	Assembles: true,
	Infer: func(o *ir.Op, dense []types.Type) ([]types.Type, *Problem) {
		if pattern(o) == nil {
			return dense, nil
		}
		r := *asTensor(dense[0])
		r.Format = out(o, 0).Format
		return one(&r), nil
	},
	lower: func(l *lowering) {
		eq, err := EquationOf(l.o)
		if err != nil {
			l.refuse(problem("DM120", -1, "%s", err))
		}
		if to := l.out[0]; to.Format != nil && to.Format.Full() {
			e := l.entriesOf(to, nil)
			l.results[0] = []*ir.Value{e.flat(e.leveled(l.contraction(eq)))}
			return
		}
		if l.out[0].Format == nil {
			l.results[0] = []*ir.Value{l.contraction(eq)}
			return
		}
		j := l.joined(eq)
		if j == nil {
			l.refuse(problem("DM134", -1, "the products of stored elements that %s sums are as many as the operands' elements make them, and the sparse result needs a bound", l.o.Name).
				help(`write how many there is room for, as %s = 1000000, or %[1]s = "4 * e"; a dense result needs none`, ProductsAttr))
		}
		if p := j.matrices(l.out[0], 0); p != nil {
			j.rowwise(p, l.out[0])
			return
		}
		c := j.folded(j.combine(false))
		l.assemble(l.out[0], j.stored(c, l.out[0]))
	},
}

// joined is the join of the operands, nil where it would need a bound that is not stated.
func (l *lowering) joined(eq *Equation) *joining {
	j := l.joinOf(eq)
	if len(j.sides) == 0 {
		l.refuse(problem("DM134", -1, "%s of tensors that store every element gives no sparse result", l.o.Name).help("convert the dense result: dm.convert_format"))
	}
	if j.expands() && !j.bound {
		return nil
	}
	return j
}

// contraction is the dense result of o.
func (l *lowering) contraction(eq *Equation) *ir.Value {
	walked, several := -1, false // the operand with most elements
	for i := range l.in {
		if !l.compressed(i) {
			continue
		}
		several = several || walked >= 0
		if walked < 0 || asTensor(l.o.Operands[i].Type).Values().AtLeast(asTensor(l.o.Operands[walked].Type).Values()) {
			walked = i
		}
	}
	switch {
	case walked < 0:
		return l.allDense(eq)
	case several || twice(lettersOf(eq.Inputs[walked])):
		j := l.joinOf(eq)
		if p := j.matrices(l.out[0], 0); p != nil {
			return j.filled(p)
		}
		if j = l.joined(eq); j != nil {
			return l.Convert(j.summed(j.folded(j.combine(false))), l.out[0].Elem)
		}
	}
	if twice(lettersOf(eq.Inputs[walked])) {
		return l.allDense(eq)
	}
	return l.walk(eq, walked)
}

// allDense is the result of o of its operands as dense tensors.
func (l *lowering) allDense(eq *Equation) *ir.Value {
	var operands []*ir.Value
	for i := range l.in {
		operands = append(operands, l.denseOf(i))
	}
	attrs := slices.DeleteFunc(slices.Clone(l.o.Attrs), func(a types.Named) bool { return a.Name == ShardingAttr || a.Name == ProductsAttr })
	return l.Value(l.o.Name, operands, attrs, &types.Tensor{Shape: l.out[0].Shape, Elem: l.out[0].Elem})
}

// walk is the result of o, of which one operand is walked. From the innermost level outwards, the
// others are multiplied at the level that has the last of their coordinates, and a level
// whose letter the output lacks is summed over: so what is common to several elements is
// computed once. What is left at a level that the output has is added up at its place.
func (l *lowering) walk(eq *Equation, walked int) *ir.Value {
	terms := l.terms(eq, 0)
	c := &contractedSparse{entries: l.entries(walked), dims: terms[walked], output: lettersOf(eq.Output)}
	elem := wide(c.t.Elem)
	if l.out[0].Elem.Bytes() > elem.Bytes() {
		elem = l.out[0].Elem
	}
	var others []term
	for i := range l.in {
		if i != walked {
			others = append(others, c.blocked(l.plain(term{l.denseOf(i), terms[i]})))
		}
	}
	if y := c.structured(term{c.values(), c.ofValues()}, others); y != nil {
		return y
	}
	x, others, level, done := c.blockProducts(term{c.values(), c.ofValues()}, others, elem)
	for i := range others {
		others[i].v = l.Convert(others[i].v, elem)
	}
	x.v = l.Convert(x.v, elem)
	if !done {
		x = c.contractFrom("add", x, others, level)
	} else {
		x = c.place("add", x, level)
	}
	return l.Convert(c.unblocked(x), l.out[0].Elem)
}

// masked is the product of each combination, 0 of those that are none.
func (j *joining) masked(c *matched) *ir.Value {
	if c.is == c.padding {
		return c.x.v
	}
	return j.where(c.is, c.x.v, 0)
}

// folded sums products of c of what they repeat, as long as that has all coordinates that the
// result asks for.
func (j *joining) folded(c *matched) *matched {
	wanted := j.wanted()
	x := j.reduced("add", c.x, append([]int{entry}, wanted...))
	for {
		r := *c
		r.x = x
		if c.of == nil || slices.ContainsFunc(wanted, func(letter int) bool { return c.has(letter) && !c.of.has(letter) }) {
			return &r
		}
		sum := func(v *ir.Value) *ir.Value {
			return j.Value("segment_reduce", []*ir.Value{v, c.positions}, named("kind", types.Keyword("add")))
		}
		of := *c.of
		if of.is = of.padding; j.out[0].Format != nil { // what no combination gives is not stored
			of.is = j.compared("ne", sum(j.Convert(c.is, types.I32)), j.Splat(&types.Tensor{Elem: types.I32}, 0))
		}
		x.v = sum(j.masked(&r))
		c = &of
	}
}

// summed is the dense result of c.
func (j *joining) summed(c *matched) *ir.Value {
	if w := j.walked(c); w != nil {
		return w.unblocked(w.contract("add", term{j.masked(c), c.x.letters}, nil))
	}
	var first []int
	for _, letter := range j.wanted() {
		if c.has(letter) {
			first = append(first, letter)
		}
	}
	x := j.arranged(c.x, append([]int{entry}, slices.DeleteFunc(j.wanted(), c.has)...))
	rest := x.letters[1:]
	if first == nil {
		x.v = j.masked(&matched{n: c.n, x: x, is: c.is})
		return j.unblocked(term{j.reduce("add", x.v, 0), rest})
	}
	var shape []dim.Dim
	for _, letter := range first {
		shape = append(shape, j.sizes[letter])
	}
	sizes := asTensor(x.v.Type).Shape[1:]
	v := j.addedUp(x.v, j.placed(c.is, j.numbered(c, first, j.keyElem(dim.Prod(shape...)))), dim.Prod(shape...))
	return j.unblocked(term{j.Reshape(v, append(shape, sizes...)...), append(first, rest...)})
}

// placed is at, and -1 where is does not hold: at no place.
func (l *lowering) placed(is, at *ir.Value) *ir.Value {
	if is == nil {
		return at
	}
	return l.Value("select", []*ir.Value{is, at, l.Splat(&types.Tensor{Elem: at.Elem()}, -1)}, nil)
}

// addedUp is the sums of x at the places of a tensor of n entries.
func (l *lowering) addedUp(x, at *ir.Value, n dim.Dim) *ir.Value {
	to := &types.Tensor{Shape: append([]dim.Dim{n}, asTensor(x.Type).Shape[1:]...), Elem: x.Elem()}
	return l.Value("scatter", []*ir.Value{l.Splat(to, 0), at, x}, append(named("kind", types.Keyword("add")), named("dim", intAttr(0))...))
}

// walked is the operand that c has the entries of, as one that is contracted alone; nil where c
// has others, or another operand has blocks that it lacks.
func (j *joining) walked(c *matched) *contractedSparse {
	if c.of != nil || c.side.whole || twice(c.side.letters) {
		return nil
	}
	w := &contractedSparse{entries: c.side.entries, dims: c.side.letters, output: j.output}
	for letter, n := range j.blocks {
		if w.block(letter) != n {
			return nil
		}
	}
	return w
}

// unrolled is c with an entry for each place along a letter within its entries.
func (j *joining) unrolled(c *matched, letter int) *matched {
	size := j.sizes[letter]
	letters := slices.DeleteFunc(slices.Clone(c.x.letters), func(x int) bool { return x == entry || x == letter })
	x := j.arranged(c.x, append([]int{entry, letter}, letters...))
	shape := asTensor(x.v.Type).Shape
	r := &matched{n: c.n.Mul(size), at: map[int]*ir.Value{}, unrolled: true}
	r.x = term{j.Reshape(x.v, append([]dim.Dim{r.n}, shape[2:]...)...), append([]int{entry}, letters...)}
	n, by := j.numbers(r.n), j.constant(types.I32, size)
	of := j.Binary("div", n, by)
	for letter, v := range c.at {
		r.at[letter] = v
		if v != nil {
			r.at[letter] = j.take(v, of)
		}
	}
	r.at[letter] = j.Binary("rem", n, by)
	if c.is != nil {
		r.is = j.take(c.is, of)
	}
	return r
}

// along is, for each combination, its coordinate along a level of the result.
func (j *joining) along(c *matched, level types.Level, elem types.Elem) *ir.Value {
	x := j.Convert(c.at[j.letterOf(level)], elem)
	switch {
	case j.blocks[j.output[level.Dim]] > 0: // these are of blocks
	case level.Div > 0:
		x = j.Binary("div", x, j.constant(elem, dim.Const(level.Div)))
	case level.Mod > 0:
		x = j.Binary("rem", x, j.constant(elem, dim.Const(level.Mod)))
	}
	return x
}

// letterOf is that of a level of the result.
func (j *joining) letterOf(level types.Level) int {
	if c := j.output[level.Dim]; level.Mod == 0 || j.blocks[c] == 0 {
		return c
	}
	return inside(j.output[level.Dim])
}

// stored is what the sparse result to stores of c: combinations with one place are summed.
func (j *joining) stored(c *matched, to *types.Tensor) keys {
	e := j.entriesOf(to, nil)
	outer, inner := e.levels()[:e.core+1], e.levels()[e.core+1:]
	for _, level := range outer {
		if letter := j.letterOf(level); !c.has(letter) {
			c = j.unrolled(c, letter)
		}
	}
	k := keys{end: dim.Prod(e.order()...)}
	elem := j.keyElem(k.end)
	var key *ir.Value
	for i, level := range outer {
		x := j.along(c, level, elem)
		if key != nil {
			x = j.Binary("add", j.Binary("mul", key, j.constant(elem, e.size(i))), x)
		}
		key = x
	}
	end := j.constant(elem, k.end)
	if c.is != nil {
		key = j.Value("select", []*ir.Value{c.is, key, end}, nil)
	}
	// The levels within an entry of the result along which combinations have coordinates are
	// places in it; the others are dimensions of the products.
	var places, rest []types.Level
	for _, level := range inner {
		if c.has(j.letterOf(level)) {
			places = append(places, level)
		} else {
			rest = append(rest, level)
		}
	}
	x := j.divided(c.x, rest)
	room := e.count(e.core)
	sorted, unique := j.ordered(c, outer)
	if sorted && unique && places == nil && c.is != nil {
		at := j.placed(c.is, j.counted(c.is))
		j.fit(at, c.n, room)
		k.key = j.moved(key, at, room, end)
		k.values = j.moved(x, at, room, j.Splat(&types.Tensor{Elem: x.Elem()}, 0))
		k.values = j.Convert(k.values, to.Elem)
		return k
	}
	var number *ir.Value // in the order of keys
	if !sorted || c.is != c.padding || c.side != nil && c.side.loose() {
		s := j.Value("sort", []*ir.Value{key}, named("dim", intAttr(0)), j.vector(elem, c.n), j.vector(types.I32, c.n)).Op
		key, number = s.Results[0], s.Results[1]
		x = j.take(x, number)
	}
	inside := j.compared("lt", key, end)
	group, first := j.groups(key, inside)
	at := j.placed(first, group)
	j.fit(at, c.n, room)
	k.key = j.moved(key, at, room, end)
	if places == nil {
		// A group begins at the number of its first combination; entries that are none, where the last one ends.
		starts := j.moved(j.numbers(c.n), at, room.Add(dim.Const(1)), j.reduce("add", j.Convert(inside, types.I32), 0))
		k.values = j.Value("segment_reduce", []*ir.Value{x, starts}, named("kind", types.Keyword("add")))
		k.values = j.Convert(k.values, to.Elem)
		return k
	}
	shape := []dim.Dim{room}
	all, place := room, group
	for _, level := range places {
		n := level.Size(to.Shape)
		shape, all = append(shape, n), all.Mul(n)
		own := j.along(c, level, group.Elem())
		if number != nil {
			own = j.take(own, number)
		}
		place = j.Binary("add", j.Binary("mul", place, j.constant(group.Elem(), n)), own)
	}
	v := j.addedUp(x, j.placed(inside, place), all)
	v = j.Reshape(v, append(shape, asTensor(x.Type).Shape[1:]...)...)
	order := []int{0}
	for _, level := range inner {
		order = append(order, 1+slices.Index(slices.Concat(places, rest), level))
	}
	k.values = j.Convert(j.Transpose(v, order...), to.Elem)
	return k
}

// divided is x with a dimension for the entries, then one for each of the levels within an entry
// of the result.
func (j *joining) divided(x term, levels []types.Level) *ir.Value {
	var shape []dim.Dim
	var letters []int
	for d, n := range asTensor(x.v.Type).Shape {
		c := x.letters[d]
		div := slices.IndexFunc(levels, func(l types.Level) bool { return c > entry && l.Div > 0 && j.letterOf(l) == c })
		if div >= 0 && j.blocks[c] == 0 {
			b := levels[div].Div
			shape, letters = append(shape, dim.Quotient(n, b), dim.Const(b)), append(letters, c, inside(c))
			continue
		}
		shape, letters = append(shape, n), append(letters, c)
	}
	order := []int{entry}
	for _, level := range levels {
		c := j.output[level.Dim]
		if level.Mod > 0 {
			c = inside(c)
		}
		order = append(order, c)
	}
	return j.arranged(term{j.Reshape(x.v, shape...), letters}, order).v
}

// ordered reports whether the combinations of c, entries of one operand, lie as the result's
// levels do, and whether no two of them have one place.
func (j *joining) ordered(c *matched, outer []types.Level) (sorted, unique bool) {
	s := c.side
	if c.of != nil || c.unrolled || s == nil || twice(s.letters) {
		return c.inOrder, c.inOrder
	}
	own := s.levels()[:s.level+1]
	sorted = len(own) >= len(outer)
	for i, level := range outer {
		sorted = sorted && j.output[level.Dim] == s.letters[own[i].Dim] && level.Div == own[i].Div && level.Mod == own[i].Mod
	}
	return sorted, sorted && len(own) == len(outer)
}

// groups are, of sorted keys, the number of the group of equal ones that each is in, and which are the
// first of one; those of which is does not hold are in none.
func (l *lowering) groups(key, is *ir.Value) (number, first *ir.Value) {
	i, zero, one := l.numbers(asTensor(key.Type).Shape[0]), l.Splat(&types.Tensor{Elem: types.I32}, 0), l.Splat(&types.Tensor{Elem: types.I32}, 1)
	before := l.take(key, l.Binary("max", l.Binary("sub", i, one), zero))
	first = l.Binary("or", l.compared("ne", key, before), l.compared("eq", i, zero))
	first = l.Binary("and", first, is)
	number = l.Value("cumsum", []*ir.Value{l.Convert(first, types.I32)}, named("dim", intAttr(0)))
	return l.Binary("sub", number, one), first
}

// ofPattern is c, which has the entries of the first operand, as values of what that stores.
func (j *joining) ofPattern(c *matched) *ir.Value {
	e := c.side
	of := &contractedSparse{entries: e.entries, dims: e.letters, output: j.output}
	letters := of.ofValues()
	if e.whole {
		letters = []int{entry}
	}
	v := j.spread(term{j.masked(c), c.x.letters}, letters)
	shape := []dim.Dim{c.n}
	if !e.whole {
		shape = append(shape, e.inner()...)
	}
	if !slices.EqualFunc(asTensor(v.Type).Shape, shape, dim.Dim.Equal) {
		v = j.Value("broadcast", []*ir.Value{v}, nil, &types.Tensor{Shape: shape, Elem: v.Elem()})
	}
	return j.Reshape(v, e.t.Values())
}
