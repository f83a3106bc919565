package op

import (
	"slices"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// Products with what stores blocks are products of matrices where the blocks are as large as the tiles of tensor cores: a row of blocks, side by side, is
// the one operand of a dm.grouped_matmul, and what its columns meet is the other one.

// tileSide is the least side of a block, and the least number of columns, of which a product is one of matrices.
const tileSide = 16

// hasTiles reports whether the last level of coordinates has blocks that products of matrices take: below dense levels, of tileSide or
// more along both its own dimension and the others. Pieces have no form for it.
func (c *contractedSparse) hasTiles() bool {
	if c.of != c.o || c.core < 1 || c.levels()[c.core].Kind != types.CompressedLevel || !c.t.Elem.IsFloat() || c.t.Elem.Bytes() < 2 {
		return false
	}
	own := c.block(c.letter(c.core))
	rest := int64(1)
	for i := c.core + 1; i < len(c.levels()); i++ {
		n, ok := c.size(i).Int()
		if !ok || c.levels()[i].Mod == 0 {
			return false
		}
		rest *= n
	}
	return own >= tileSide && rest/own >= tileSide && rest/own*own == rest
}

// without are the letters of t but those given.
func (t term) without(letters ...int) (rest []int) {
	for _, x := range t.letters {
		if !slices.Contains(letters, x) {
			rest = append(rest, x)
		}
	}
	return rest
}

// columns reports whether letters, along which a term has at least tileSide elements, are all in kept and none in beside.
func (t term) columns(letters, kept, beside []int) bool {
	size := int64(1)
	for _, x := range letters {
		n, ok := t.size(x).Int()
		if !slices.Contains(kept, x) || slices.Contains(beside, x) {
			return false
		}
		if ok {
			size *= n
		} else {
			size = tileSide
		}
	}
	return size >= tileSide
}

// blockProducts multiplies x, the values, by the operand that meets them in their blocks, as a product of matrices. What it gives has the entries of the level,
// and others are left; done: they are at their places in the result. Where there is none it gives back what it was given.
func (c *contractedSparse) blockProducts(x term, others []term, elem types.Elem) (_ term, left []term, level int, done bool) {
	if !c.hasTiles() || len(others) == 0 {
		return x, others, c.core, false
	}
	kept := append([]int{entry}, c.wanted()...)
	key, row := c.letter(c.core), c.letter(c.core-1)
	switch first := others[0]; {
	case !slices.Contains(kept, key) && c.deepest(first) == c.core && slices.Contains(first.letters, inside(key)) && len(others) == 1:
		// The sum over a row of blocks.
		own, cols := x.without(entry, inside(key)), first.without(key, inside(key))
		if !x.columns(own, kept, first.letters) || !first.columns(cols, kept, x.letters) || c.takesUpper(first) {
			break
		}
		y := c.at(first, c.core)
		a, b := c.arranged(x, append([]int{entry, inside(key)}, own...)), c.arranged(y, append([]int{entry, inside(key)}, cols...))
		v := c.grouped(c.matrix(a.v, 2), c.matrix(b.v, 2), c.block(key), false, elem)
		shape := []dim.Dim{c.count(c.core - 1)}
		return term{c.Reshape(v, append(shape, slices.Concat(sizesOf(x, own), sizesOf(first, cols))...)...), slices.Concat([]int{entry}, own, cols)}, nil, c.core - 1, false
	case slices.Contains(kept, key) && !slices.Contains(kept, row) && len(others) == 1 && c.deepest(first) == c.core-1 && slices.Contains(first.letters, inside(row)) && !slices.Contains(first.letters, key):
		// The sum over columns of blocks: what each block gives, added up at its place.
		own, cols := x.without(entry, inside(row)), first.without(append(c.upper(), inside(row))...)
		if !slices.Equal(own, []int{inside(key)}) || !first.columns(cols, kept, x.letters) {
			break
		}
		a := c.arranged(x, []int{entry, inside(key), inside(row)})
		v := c.grouped(c.matrix(a.v, 2), c.matrices(first, inside(row), cols), c.block(key), false, elem)
		shape := []dim.Dim{c.count(c.core), dim.Const(c.block(key))}
		return term{c.Reshape(v, append(shape, sizesOf(first, cols)...)...), slices.Concat([]int{entry, inside(key)}, cols)}, nil, c.core, true
	}
	return x, others, c.core, false
}

// blockSamples is the product of x and y for each entry, its blocks in the order of rows within, then keys; ok is false where that is none of matrices.
func (c *contractedSparse) blockSamples(x, y term, elem types.Elem) (_ term, ok bool) {
	if !c.hasTiles() {
		return x, false
	}
	key, row := c.letter(c.core), c.letter(c.core-1)
	if slices.Contains(x.letters, key) {
		x, y = y, x
	}
	depth := x.without(append(c.upper(), inside(row))...)
	if c.deepest(x) != c.core-1 || c.deepest(y) != c.core || !slices.Contains(x.letters, inside(row)) || !slices.Contains(y.letters, inside(key)) || slices.Contains(y.letters, inside(row)) ||
		!y.columns(depth, y.letters, slices.Concat(c.upper(), []int{key, inside(key), inside(row)})) || len(y.without(append(slices.Concat(c.upper(), depth), key, inside(key))...)) > 0 {
		return x, false
	}
	a := c.arranged(c.at(y, c.core), append([]int{entry, inside(key)}, depth...))
	v := c.grouped(c.matrix(a.v, 2), c.matrices(x, inside(row), depth), c.block(key), true, elem)
	return term{c.Reshape(v, c.count(c.core), dim.Const(c.block(key)), dim.Const(c.block(row))), []int{entry, inside(key), inside(row)}}, true
}

// upper are the letters of the levels above the last one with coordinates.
func (c *contractedSparse) upper() (letters []int) {
	for i := range c.core {
		letters = append(letters, c.letter(i))
	}
	return letters
}

// takesUpper reports whether x has a dimension along a level above the last one with coordinates.
func (c *contractedSparse) takesUpper(x term) bool {
	return slices.ContainsFunc(c.upper(), func(letter int) bool { return slices.Contains(x.letters, letter) })
}

// matrices is x for each entry of the level above the last one with coordinates, with the letter row along rows and those of cols along columns.
func (c *contractedSparse) matrices(x term, row int, cols []int) *ir.Value {
	var v term
	upper := c.upper()
	dense := !slices.ContainsFunc(c.levels()[:c.core], func(l types.Level) bool { return l.Kind != types.DenseLevel })
	if dense && !slices.ContainsFunc(upper, func(letter int) bool { return !slices.Contains(x.letters, letter) }) {
		v = c.arranged(x, slices.Concat(upper, []int{row}, cols)) // the entries lie as its dimensions do
	} else {
		v = c.arranged(c.at(x, c.core-1), append([]int{entry, row}, cols...))
	}
	return c.Reshape(v.v, c.count(c.core-1), x.size(row), dim.Prod(sizesOf(x, cols)...))
}

func sizesOf(t term, letters []int) (sizes []dim.Dim) {
	for _, x := range letters {
		sizes = append(sizes, t.size(x))
	}
	return sizes
}

// matrix is v with its first dimensions as the rows of a matrix, and the others as its columns.
func (c *contractedSparse) matrix(v *ir.Value, rows int) *ir.Value {
	shape := asTensor(v.Type).Shape
	return c.Reshape(v, dim.Prod(shape[:rows]...), dim.Prod(shape[rows:]...))
}

// grouped is the dm.grouped_matmul of the segments of the last level with coordinates, with sums that are not rounded.
func (c *contractedSparse) grouped(x, w *ir.Value, block int64, turned bool, elem types.Elem) *ir.Value {
	attrs := append(inherited(c.o), blockAttr(block)...)
	if turned {
		attrs = append(attrs, named("transpose_b", types.Bool(true))...)
	}
	t, groups := asTensor(x.Type), c.count(c.core-1)
	shape := []dim.Dim{groups, t.Shape[1], asTensor(w.Type).Shape[1]}
	if m := asTensor(w.Type); m.Rank() == 3 {
		if shape = []dim.Dim{t.Shape[0], m.Shape[2]}; turned {
			shape[1] = m.Shape[1]
		}
	}
	return c.Value("grouped_matmul", []*ir.Value{x, w, c.positions(c.core)}, attrs, &types.Tensor{Shape: shape, Elem: elem})
}

// BlocksByColumn is the results of o, a dm.scatter that adds up blocks which a grouped product gives, in the order of their places: a product for each place, of the blocks
// that have it, which keeps none of them in memory. It returns nil of other ops.
func BlocksByColumn(b *ir.Builder, o *ir.Op) []*ir.Value {
	if o.Name != Prefix+"scatter" || !Valid(o) || Str(o, "kind") != "add" || Int(o, "batch_dims") != 0 || !isZero(o.Operands[0]) {
		return nil
	}
	to, at, x := in(o, 0), in(o, 1), in(o, 2)
	v := o.Operands[2]
	for v.Op != nil && len(v.Uses) == 1 && (v.Op.Name == Prefix+"reshape" || v.Op.Name == Prefix+"convert") {
		v = v.Op.Operands[0]
	}
	g := v.Op
	if d, ok := Dim(o, "dim", to.Rank()); !ok || d != 0 || g == nil || Of(g) != groupedMatmulDef || !Valid(g) || len(v.Uses) != 1 || !GroupedRows(g) {
		return nil
	}
	block, cols := GroupBlock(g), groupedCols(g)
	entries, e := at.Shape[0].Int()
	places, p := to.Shape[0].Int()
	groups, m := in(g, 1).Shape[0].Int()
	depth, k := in(g, 0).Shape[1].Int()
	if at.Rank() != 1 || !e || !p || !m || !k || to.Rank() < 2 || !to.Elem.IsFloat() || !in(g, 0).Elem.IsFloat() || block < tileSide || depth < tileSide ||
		!sameShape(x.Shape[:2], []dim.Dim{dim.Const(entries), dim.Const(block)}) || !sameDim(dim.Prod(x.Shape[2:]...), cols) {
		return nil
	}
	w := NewBuilder(b, nil)
	vector := func(elem types.Elem, n int64) *types.Tensor { return tensor(at, elem, dim.Const(n)) }
	positions, matrices := g.Operands[2], g.Operands[1]
	edge := func(i int64) *ir.Value {
		return w.part(positions, []int{0}, []int{int(i)}, []int{int(i + 1)}, []int{1})
	}
	number := w.count(vector(positions.Elem(), entries), 0)
	inside := w.Binary("and", w.compare("ge", number, edge(0)), w.compare("lt", number, edge(groups)))
	place := o.Operands[1]
	place = w.choose(inside, place, w.number(place, -1))
	sorted := w.Value("sort", []*ir.Value{place}, named("dim", intAttr(0)), vector(at.Elem, entries), vector(types.I32, entries))
	if sorted == nil || w.failed {
		return nil
	}
	order := sorted.Op.Results[1]
	starts := w.Value("searchsorted", []*ir.Value{sorted, w.count(vector(at.Elem, places+1), 0)}, nil, vector(types.I32, places+1))
	of := w.Value("segment_ids", []*ir.Value{positions}, nil, vector(types.I32, entries))
	if Bool(g, "transpose_b") {
		matrices = w.Transpose(matrices, 0, 2, 1)
	}
	blocks := w.Transpose(w.Reshape(g.Operands[0], dim.Const(entries), dim.Const(block), dim.Const(depth)), 0, 2, 1)
	blocks = w.Reshape(w.gather(blocks, order, 0, 0), dim.Const(entries*depth), dim.Const(block))
	met := w.Reshape(w.gather(matrices, w.gather(of, order, 0, 0), 0, 0), dim.Const(entries*depth), cols)
	sums := &types.Tensor{Shape: []dim.Dim{to.Shape[0], dim.Const(block), cols}, Elem: wide(in(g, 0).Elem)}
	y := w.Value("grouped_matmul", []*ir.Value{blocks, met, starts}, append(inherited(g), blockAttr(depth)...), sums)
	return w.done(w.Convert(w.Reshape(y, to.Shape...), out(o, 0).Elem))
}

// isZero reports whether v is 0 everywhere.
func isZero(v *ir.Value) bool {
	for v.Op != nil && v.Op.Name == Prefix+"broadcast" {
		v = v.Op.Operands[0]
	}
	n, known := splat(v)
	return known && n == 0
}
