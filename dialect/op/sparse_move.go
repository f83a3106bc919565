package op

import (
	"maps"
	"slices"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// Ops that move elements take the entries of their operands, with coordinates of the result, and
// store them as the result does.

// elements are the entries of operand i as combinations, with a letter of its own for each
// dimension; with whole each element of a block is one.
func (l *lowering) elements(i int, whole bool) (*joining, *matched) {
	s := l.sideOf(i, rangeOf(1, asTensor(l.o.Operands[i].Type).Rank()+1), whole)
	j := &joining{lowering: l, output: s.letters, sizes: map[int]dim.Dim{}, blocks: map[int]int64{}}
	for d, n := range s.t.Shape {
		j.sizes[d+1] = n
	}
	if !whole {
		for _, level := range s.levels() {
			if level.Div > 0 {
				j.blocks[level.Dim+1] = level.Div
			}
		}
	}
	c := &matched{n: s.count(s.level), at: map[int]*ir.Value{}, padding: s.stored(s.level), side: s}
	c.is = c.padding
	for _, letter := range s.outer {
		c.at[letter] = s.coordinate(letter)
	}
	c.x = term{last(s.parts), s.values.letters}
	if !whole {
		c.x.v = s.entries.values()
	}
	return j, c
}

// sameLevels reports whether f and g have the same levels.
func sameLevels(f, g *types.Format) bool {
	return slices.EqualFunc(f.Levels, g.Levels, func(a, b types.Level) bool {
		return a.Dim == b.Dim && a.Div == b.Div && a.Mod == b.Mod && a.Kind == b.Kind
	})
}

// storedAs are operand i's elements as to stores them, which has room for them all.
func (l *lowering) storedAs(i int, to *types.Tensor) keys {
	from := asTensor(l.o.Operands[i].Type)
	j, c := l.elements(i, !sameLevels(from.Format, to.Format))
	return j.stored(c, to)
}

// roomy is t with room for n entries in each level.
func roomy(t *types.Tensor, n dim.Dim) *types.Tensor {
	r, f := *t, *t.Format
	f.Stored = slices.Repeat([]dim.Dim{n}, len(f.Stored))
	r.Format = &f
	return &r
}

// part is c of which the elements with coordinates of r along a letter are left, counted from
// its start in steps.
func (j *joining) part(c *matched, letter int, r Range) *matched {
	s := *c
	s.at = map[int]*ir.Value{}
	for k, v := range c.at {
		s.at[k] = v
	}
	at := j.Convert(c.at[letter], types.I64)
	at = j.Binary("sub", at, j.constant(types.I64, dim.Const(r.Start)))
	is := j.Binary("and", j.compared("ge", at, j.constant(types.I64, dim.Const(0))), j.compared("lt", at, j.constant(types.I64, dim.Const(r.Limit-r.Start))))
	if r.Stride > 1 {
		by := j.constant(types.I64, dim.Const(r.Stride))
		is = j.Binary("and", is, j.compared("eq", j.Binary("rem", at, by), j.constant(types.I64, dim.Const(0))))
		at = j.Binary("div", at, by)
	}
	s.at[letter] = at
	s.is = j.both(c.is, is)
	return &s
}

// movedElements is the Infer of ops that move elements: the result is stored as written, else as the first
// operand is, with room for all that are stored.
func movedElements(o *ir.Op, dense []types.Type) ([]types.Type, *Problem) {
	r := *asTensor(dense[0])
	if r.Format = out(o, 0).Format; r.Format == nil {
		f := *asTensor(pattern(o).Type).Format
		f.Stored = slices.Clone(f.Stored)
		for i := range f.Stored {
			for _, v := range o.Operands {
				if g := asTensor(v.Type).Format; v != pattern(o) && g != nil && i < len(g.Stored) {
					f.Stored[i] = f.Stored[i].Add(g.Stored[i])
				}
			}
		}
		r.Format = &f
	}
	return one(&r), nil
}

// slicedElements is how dm.slice takes a sparse operand.
var slicedElements = &Sparse{
	Doc: "A sparse operand: the elements that it stores in the part taken. The result is stored in the format written, else as the operand is; the written `nnz` is how many elements it has room for, " +
		"and it is an error if there are more.",
	Infer: movedElements,
	lower: func(l *lowering) {
		s, p := sliceOf(l.o)
		if p != nil {
			l.refuse(p)
		}
		from, to := asTensor(l.o.Operands[0].Type), l.out[0]
		if !l.compressed(0) || to.Format.Full() {
			l.refuse(problem("DM134", 0, "%s takes a part of tensors that do not store every element", l.o.Name).help("make it dense: dm.convert_format"))
		}
		whole := !sameLevels(from.Format, to.Format)
		for i, level := range from.Format.Levels { // only whole entries are taken
			inner := i > l.entries(0).core || level.Mod > 0 || level.Div > 0
			whole = whole || inner && !s.Whole[level.Dim]
		}
		j, c := l.elements(0, whole)
		if whole { // parts of blocks do not lie as they did
			c.side = nil
		}
		for d := range s.Start {
			if !s.Whole[d] {
				c = j.part(c, d+1, Range{s.Start[d], s.Limit[d], s.Stride[d]})
			}
		}
		for d, n := range to.Shape {
			j.sizes[d+1] = n
		}
		l.assemble(to, j.stored(c, to))
	},
}

// concatenatedElements is how dm.concatenate takes sparse operands.
var concatenatedElements = &Sparse{
	Doc: "Sparse operands, in any formats. The result is stored in the format written, else as the first one is; the written `nnz` is how many elements it has room for, and it is an error if there are more.",
	Infer: func(o *ir.Op, dense []types.Type) ([]types.Type, *Problem) {
		for i, v := range o.Operands {
			if asTensor(v.Type).Format == nil {
				return nil, problem("DM134", i, "%s is dense, and others of the operands are sparse", valueName(v)).help("convert one of them: dm.convert_format")
			}
		}
		return movedElements(o, dense)
	},
	lower: func(l *lowering) {
		to := l.out[0]
		d, _ := Dim(l.o, "dim", to.Rank())
		whole := false
		for i := range l.in {
			f := asTensor(l.o.Operands[i].Type).Format
			if !l.compressed(i) || to.Format.Full() {
				l.refuse(problem("DM134", i, "%s appends tensors that do not store every element", l.o.Name).help("make them dense: dm.convert_format"))
			}
			whole = whole || !sameLevels(f, to.Format)
			for k, level := range f.Levels {
				whole = whole || level.Dim == d && (k > l.entries(i).core || level.Mod > 0 || level.Div > 0)
			}
		}
		var all *joining
		sum := &matched{at: map[int]*ir.Value{}}
		var is, x []*ir.Value
		at := map[int][]*ir.Value{}
		var start dim.Dim
		for i := range l.in {
			j, c := l.elements(i, whole)
			if all == nil {
				all, sum.x.letters = j, c.x.letters
			}
			if sum.n = sum.n.Add(c.n); c.is == nil {
				c.is = l.Splat(&types.Tensor{Shape: []dim.Dim{c.n}, Elem: types.I1}, 1)
			}
			is, x = append(is, c.is), append(x, all.arranged(c.x, sum.x.letters).v)
			elem := all.keyElem(to.Shape[d])
			for letter, v := range c.at {
				if v = l.Convert(v, elem); letter == d+1 && i > 0 {
					v = l.Binary("add", v, l.constant(elem, start))
				}
				at[letter] = append(at[letter], v)
			}
			start = start.Add(asTensor(l.o.Operands[i].Type).Shape[d])
		}
		joined := func(vs []*ir.Value) *ir.Value { return l.Value("concatenate", vs, named("dim", intAttr(0))) }
		sum.is, sum.x.v = joined(is), joined(x)
		for _, letter := range slices.Sorted(maps.Keys(at)) {
			sum.at[letter] = joined(at[letter])
		}
		for k, n := range to.Shape {
			all.sizes[k+1] = n
		}
		first := to.Format.Levels[0]
		sum.inOrder = !whole && first.Dim == d
		l.assemble(to, all.stored(sum, to))
	},
}

func rangeOf(from, to int) (out []int) {
	for i := from; i < to; i++ {
		out = append(out, i)
	}
	return out
}
