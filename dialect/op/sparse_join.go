package op

import (
	"slices"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// ProductsAttr bounds how many products of stored elements an op on several sparse operands has.
const ProductsAttr = "products"

var productsAttr = AttrDef{
	Name: ProductsAttr, Kind: KindSize, Optional: true,
	Doc: "how many products of stored elements of sparse operands there is room for, a number or, in quotes, a formula; it is an error if there are more",
}

// joining multiplies sparse operands. It keeps combinations of entries, one of each operand that
// has joined, which agree in the coordinates that they share (as the join of relations
// does), and with each its coordinates and the product of its values. An operand all of
// whose letters the combinations have is looked up; of another one each combination is
// repeated for every entry that agrees with it, which is Gustavson's order for a product
// of matrices in rows (ACM TOMS 4(3), 1978).
type joining struct {
	*lowering
	output []int
	sizes  map[int]dim.Dim // of letters
	blocks map[int]int64   // the size of the blocks along a letter, where operands have such levels and agree
	terms  [][]int         // the letters of the operands
	sides  []*side         // the sparse ones, in the order in which they join
	dense  []term          // what is left to multiply by
	room   dim.Dim         // that ProductsAttr states
	bound  bool            // it is stated
}

// side is a sparse operand of a join: its entries at a level, with a letter for each
// coordinate.
type side struct {
	*entries
	level   int
	letters []int // of the tensor's dimensions
	outer   []int // of the entries, as their levels lie
	values  term
	whole   bool // each element is an entry, also those of blocks
}

// sideOf is operand i with a letter for each of its dimensions; with whole each element of a
// block is an entry of its own.
func (l *lowering) sideOf(i int, letters []int, whole bool) *side {
	e := l.entries(i)
	s := &side{entries: e, level: e.core, letters: letters, values: term{letters: []int{entry}}, whole: whole}
	if whole {
		s.level = len(e.levels()) - 1
	}
	for k, level := range e.levels() {
		c := letters[level.Dim]
		if !whole && level.Mod > 0 {
			c = inside(c)
		}
		switch {
		case k > s.level:
			s.values.letters = append(s.values.letters, c)
		case !slices.Contains(s.outer, c):
			s.outer = append(s.outer, c)
		}
	}
	return s
}

// coordinate is, for each entry, that along a letter.
func (s *side) coordinate(c int) *ir.Value {
	if !s.whole {
		for k := range s.level + 1 {
			if level := s.levels()[k]; c == s.letters[level.Dim] && level.Mod == 0 || c == inside(s.letters[level.Dim]) && level.Mod > 0 {
				return s.coordinates(k, s.level)
			}
		}
	}
	return s.coordinateAt(slices.Index(s.letters, c), types.I32, s.level)
}

// repeated is which entries have one coordinate along letters that stand twice; nil: no letter does.
func (s *side) repeated() (is *ir.Value) {
	for d, c := range s.letters {
		if first := slices.Index(s.letters, c); first < d {
			same := s.compared("eq", s.coordinateAt(first, types.I32, s.level), s.coordinateAt(d, types.I32, s.level))
			is = s.both(is, same)
		}
	}
	return is
}

// both is whether a and b are; nil is all.
func (l *lowering) both(a, b *ir.Value) *ir.Value {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return l.Binary("and", a, b)
}

// joinOf is the join of the operands. Where the equation has one input less, the first operand
// is a pattern of the output.
func (l *lowering) joinOf(eq *Equation) *joining {
	output := lettersOf(eq.Output)
	j := &joining{lowering: l, output: output, sizes: map[int]dim.Dim{}, blocks: map[int]int64{}}
	j.room, j.bound = Size(l.o, ProductsAttr)
	terms := l.terms(eq, len(l.in)-len(eq.Inputs))
	if len(terms) < len(l.in) { // the first operand is the pattern
		terms = slices.Insert(terms, 0, output)
	}
	for i, letters := range terms {
		for d, n := range asTensor(l.o.Operands[i].Type).Shape {
			if old, ok := j.sizes[letters[d]]; ok {
				n = known(old, n)
			}
			j.sizes[letters[d]] = n
		}
	}
	whole := !j.agree(terms)
	if whole {
		clear(j.blocks)
	}
	for i, letters := range terms {
		if l.compressed(i) {
			j.sides = append(j.sides, l.sideOf(i, letters, whole))
		}
	}
	for c, b := range j.blocks {
		j.sizes[inside(c)] = dim.Const(b)
		j.sizes[c] = dim.Quotient(j.sizes[c], b)
	}
	j.terms = terms
	j.order()
	return j
}

// begin makes the operands what is multiplied.
func (j *joining) begin() {
	elem := wide(asTensor(j.o.Operands[len(j.in)-1].Type).Elem)
	if j.out[0].Elem.Bytes() > elem.Bytes() {
		elem = j.out[0].Elem
	}
	for i, letters := range j.terms {
		if !j.compressed(i) {
			j.dense = append(j.dense, j.blocked(j.plain(term{j.Convert(j.denseOf(i), elem), letters})))
		}
	}
	for _, s := range j.sides {
		v := last(s.parts)
		if !s.whole {
			v = s.entries.values()
		}
		s.values.v = j.Convert(v, elem)
	}
}

// ownLetter is the first of the letters of dimensions that are broadcast: a letter of its own, of
// size 1, that the output lacks.
const ownLetter = 256

// terms are the letters of the operands from number first on, those of the equation.
func (l *lowering) terms(eq *Equation, first int) (out [][]int) {
	sizes, err := eq.Sizes(operandShapes(l.o)[first:])
	if err != nil {
		l.refuse(problem("DM121", -1, "%s", err))
	}
	for i, text := range eq.Inputs {
		letters := lettersOf(text)
		for d, n := range asTensor(l.o.Operands[first+i].Type).Shape {
			if isOne(n) && !isOne(sizes[text[d]]) {
				letters[d] = ownLetter + 64*i + d
			}
		}
		out = append(out, letters)
	}
	return out
}

func twice(letters []int) bool {
	for i, c := range letters {
		if slices.Contains(letters[:i], c) {
			return true
		}
	}
	return false
}

// compressed reports whether v does not store every element.
func compressed(v *ir.Value) bool {
	t := asTensor(v.Type)
	return t != nil && t.Format != nil && !t.Format.Full()
}

func (l *lowering) compressed(i int) bool { return compressed(l.o.Operands[i]) }

// denseOf is operand i as a dense tensor.
func (l *lowering) denseOf(i int) *ir.Value {
	if !l.sparse(i) {
		return l.in[i][0]
	}
	c := l.elementsOf(i)
	return c.unblocked(c.contract("add", term{c.values(), c.ofValues()}, nil))
}

// agree reports whether the operands, and the result, have the same blocks along each letter,
// and none has a letter within its entries that another one has entries along; it fills blocks.
func (j *joining) agree(terms [][]int) bool {
	type use struct{ div, plain, outer, inner bool }
	uses := map[int]*use{}
	ok := true
	note := func(t *types.Tensor, letters []int, core int) {
		if core < 0 {
			return
		}
		for k, level := range t.Format.Levels {
			c := letters[level.Dim]
			at := c
			if level.Mod > 0 {
				at = inside(c)
			}
			for _, x := range [2]int{c, at} {
				if uses[x] == nil {
					uses[x] = &use{}
				}
			}
			u, v := uses[c], uses[at]
			switch {
			case level.Div > 0:
				u.div = true
				if b := j.blocks[c]; b != 0 && b != level.Div {
					ok = false
				}
				j.blocks[c] = level.Div
			case level.Mod == 0:
				u.plain = true
			}
			if k <= core {
				v.outer = true
			} else {
				v.inner = true
			}
		}
	}
	for i, letters := range terms {
		if j.compressed(i) {
			ok = ok && !twice(letters)
			note(asTensor(j.o.Operands[i].Type), letters, j.entries(i).core)
		}
	}
	if to := j.out[0]; to.Format != nil {
		note(to, j.output, j.entriesOf(to, nil).core)
	}
	for _, u := range uses {
		ok = ok && !(u.div && u.plain) && !(u.outer && u.inner)
	}
	return ok
}

// order puts the operands in the order in which they join: next is always one that is looked up,
// else one that shares a letter, as they are written.
func (j *joining) order() {
	left := j.sides
	j.sides = nil
	has := map[int]bool{}
	for len(left) > 0 {
		best, at := -1, 0
		for k, s := range left {
			shared := 0
			for _, c := range s.outer {
				if has[c] {
					shared++
				}
			}
			score := min(shared, 1)
			if len(j.sides) > 0 && shared == len(s.outer) {
				score = 2
			}
			if score > best {
				best, at = score, k
			}
		}
		for _, c := range left[at].outer {
			has[c] = true
		}
		j.sides = append(j.sides, left[at])
		left = slices.Delete(slices.Clone(left), at, at+1)
	}
}

// expands reports whether there may be more combinations than the first operand has entries.
func (j *joining) expands() bool {
	has := map[int]bool{}
	for k, s := range j.sides {
		for _, c := range s.outer {
			if !has[c] && k > 0 {
				return true
			}
			has[c] = true
		}
	}
	return false
}

// plain is x, dense, with each letter once, and without dimensions that are broadcast.
func (l *lowering) plain(x term) term {
	var shape []dim.Dim
	var letters, once []int
	for d, n := range asTensor(x.v.Type).Shape {
		if c := x.letters[d]; c < ownLetter {
			shape, letters = append(shape, n), append(letters, c)
			if !slices.Contains(once, c) {
				once = append(once, c)
			}
		}
	}
	x = term{l.Reshape(x.v, shape...), letters}
	if len(once) == len(letters) {
		return x
	}
	text := func(letters []int) (s string) {
		for _, c := range letters {
			s += string(rune(c))
		}
		return s
	}
	return term{l.Value("einsum", []*ir.Value{x.v}, named("equation", types.Str(text(letters)+"->"+text(once)))), once}
}

// blocked divides the dimensions of x along which there are blocks.
func (j *joining) blocked(x term) term {
	var shape []dim.Dim
	var letters []int
	for i, d := range asTensor(x.v.Type).Shape {
		if b := j.blocks[x.letters[i]]; b > 0 {
			shape = append(shape, dim.Quotient(d, b), dim.Const(b))
			letters = append(letters, x.letters[i], inside(x.letters[i]))
			continue
		}
		shape, letters = append(shape, d), append(letters, x.letters[i])
	}
	return term{j.Reshape(x.v, shape...), letters}
}

// wanted are the letters of the result, with those of blocks.
func (j *joining) wanted() (out []int) {
	for _, c := range j.output {
		out = append(out, c)
		if j.blocks[c] > 0 {
			out = append(out, inside(c))
		}
	}
	return out
}

// unblocked is y, which has wanted's letters, with output's.
func (j *joining) unblocked(y term) *ir.Value {
	shape := make([]dim.Dim, len(j.output))
	for i, c := range j.output {
		shape[i] = j.sizes[c]
		if b := j.blocks[c]; b > 0 {
			shape[i] = shape[i].Scale(b)
		}
	}
	return j.Reshape(j.arranged(y, j.wanted()).v, shape...)
}
