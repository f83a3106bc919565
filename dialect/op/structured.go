package op

import (
	"slices"
	"strings"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// structuredEinsumDef is what products with 2:4 matrices multiply with: tensor cores take the numbers that are stored, and two bits for
// each that say where it stands.
var structuredEinsumDef = &Def{
	Name: "structured_einsum", Family: Contraction, Class: ClassContraction,
	Summary: "a product of two tensors, of which the first has two of each four elements along its last dimension",
	Foreign: []Foreign{{Names: "_sparse_semi_structured_mm sparse_semi_structured_linear"}},
	Doc: "The equation has the letters of both as `dm.einsum` has them. Of the first tensor, w, the elements that it stores (2:4) are given, two of each four neighbours in their order, " +
		"and the metadata has two bits for each of them: its place among the four. A word is of 32 neighbours, and so of 16 elements: the first one's bits are the lowest. " +
		"The last letter of w is the one that is summed over, alone.\n\n" +
		"Products with `#dm.nm<2:4>` tensors are written out as this op. In f16 and bf16 a GPU computes it with `mma.sp`, where that is faster than the product with w made dense. " +
		"A place not above the one before it in its four is an error on such a device, and elsewhere gives some numbers. " + accumulateDoc +
		"\n\nCounts 2 FLOP for each element of the result and each stored element of a line of w; integers count none.",
	Example: `func.func @example(%w: tensor<8x16xf16>, %x: tensor<4x32xf16>) -> tensor<4x8xf16> {
  %places = dm.constant dense<0x44444444> : tensor<8x1xui32>
  %y = dm.structured_einsum "mk,nk->nm" %w, %x, %places : (tensor<8x16xf16>, tensor<4x32xf16>, tensor<8x1xui32>) -> tensor<4x8xf16>
  return %y : tensor<4x8xf16>
}`,
	Operands: []Param{
		{Name: "w", Elems: floats, Doc: "the stored elements: the last dimension is half of the letter's"},
		{Name: "x", Elems: floats, Doc: "the other tensor, w's element type"},
		{Name: "metadata", Elems: []types.Elem{types.UI32}, Doc: "w's dimensions, the last one a sixteenth of it"},
	},
	Results: []Param{{Name: "y", Elems: floats, Doc: "the output's letters as dimensions"}},
	Attrs: []AttrDef{
		{Name: "equation", Kind: KindString, Lead: true, Doc: "letters of w and x, `->`, letters of the output"},
		accumulateAttr,
	},
	Traits: Pure,
	Linear: func(*ir.Op) [][]int { return [][]int{{0}, {1}} },
	Factors: func(o *ir.Op) *Factors {
		f := newFactors(o)
		e, sizes, p := structuredEquation(o)
		if p != nil {
			return f
		}
		for d := range len(e.Output) {
			c := e.Output[d]
			n := f.factor(sizes[c], Parallel)
			f.Results[0][d] = []int{n}
			for i, letters := range []string{e.Inputs[0], e.Inputs[1], e.Inputs[0]} { // metadata lie as w does
				if k := strings.IndexByte(letters, c); k >= 0 {
					f.Operands[i][k] = []int{n}
				}
			}
		}
		return f
	},
	Divides: "The dimension of every letter of the output.",
	Infer:   inferStructuredEinsum,
	FLOP: func(o *ir.Op) dim.Dim {
		w := in(o, 0)
		if !w.Elem.IsFloat() || w.Rank() == 0 {
			return dim.Dim{}
		}
		return out(o, 0).Elements().Mul(w.Shape[w.Rank()-1]).Scale(2)
	},
	Expand: func(b *ir.Builder, o *ir.Op) []*ir.Value {
		w := NewBuilder(b, nil)
		attrs := []types.Named{{Name: "equation", Value: o.Attr("equation")}}
		if a := o.Attr("accumulate"); a != nil {
			attrs = append(attrs, types.Named{Name: "accumulate", Value: a})
		}
		return w.done(w.Value("einsum", []*ir.Value{w.unstructured(o.Operands[0], o.Operands[2]), o.Operands[1]}, attrs, out(o, 0)))
	},
	Derivative: &Derivative{
		Doc: "By x the product of dy and w, which is made dense: what is 2:4 along one dimension is not along another. By w the product of dy and x, of which it takes the stored elements. None by the metadata.",
		rule: func(g *backward) {
			e, _, p := structuredEquation(g.o)
			if p != nil {
				g.failed = true
				return
			}
			dy, xs := g.alike(g.dy[0], g.o.Operands[:2]...)
			metadata := g.o.Operands[2]
			product := func(other *ir.Value, from, to string) *ir.Value {
				return g.Value("einsum", []*ir.Value{dy, other}, []types.Named{{Name: "equation", Value: types.Str(e.Output + "," + from + "->" + to)}})
			}
			if g.want[0] {
				g.give(0, g.structuredOf(product(xs[1], e.Inputs[1], e.Inputs[0]), metadata))
			}
			if g.want[1] {
				g.give(1, product(g.unstructured(xs[0], metadata), e.Inputs[0], e.Inputs[1]))
			}
		},
	},
}

// The numbers of neighbours and of elements of a word of metadata, and of a group.
const (
	wordNeighbours = 32
	wordElements   = 16
	groupOf        = 4
	groupStored    = 2
)

// StructuredDepth is a multiple of what tensor cores sum over at a time.
const StructuredDepth = 2 * wordNeighbours

// IsStructured reports whether o is a product with a tensor of which two of each four elements are given.
func IsStructured(o *ir.Op) bool { return Of(o) == structuredEinsumDef }

// structuredEquation is the equation of o, a dm.structured_einsum, and the sizes of its letters.
func structuredEquation(o *ir.Op) (*Equation, map[byte]dim.Dim, *Problem) {
	e, err := ParseEquation(Str(o, "equation"), 2)
	if err != nil {
		return nil, nil, attrProblem("DM120", "equation", "equation %q: %s", Str(o, "equation"), err)
	}
	w, x := in(o, 0), in(o, 1)
	whole := slices.Clone(w.Shape)
	if n := len(whole); n > 0 {
		whole[n-1] = whole[n-1].Scale(groupOf / groupStored)
	}
	sizes, err := e.Sizes([][]dim.Dim{whole, x.Shape})
	if err != nil {
		return nil, nil, attrProblem("DM121", "equation", "equation %q: %s", Str(o, "equation"), err).
			help("one letter for each dimension, and one size for each letter; the last one of w is twice as long as its stored elements")
	}
	return e, sizes, nil
}

// StructuredEquation is that of o, nil where it has none.
func StructuredEquation(o *ir.Op) *Equation {
	e, _, _ := structuredEquation(o)
	return e
}

func inferStructuredEinsum(o *ir.Op) ([]types.Type, *Problem) {
	if p := contractionElems(o, 0, 2); p != nil {
		return nil, p
	}
	w, meta := in(o, 0), in(o, 2)
	if w.Rank() == 0 {
		return nil, problem("DM117", 0, "the first operand is a number").help("its last dimension has two of each four neighbours")
	}
	e, sizes, p := structuredEquation(o)
	if p != nil {
		return nil, p
	}
	letters := e.Inputs[0]
	sum := letters[len(letters)-1]
	if strings.IndexByte(e.Output, sum) >= 0 || strings.Count(e.Inputs[1], string(sum)) != 1 {
		return nil, attrProblem("DM120", "equation", "equation %q does not sum over %q, the last letter of w, with the other tensor", Str(o, "equation"), sum).
			help("a product that keeps it is dm.einsum with a dense tensor")
	}
	for i, term := range e.Inputs {
		for k := range len(term) {
			if strings.IndexByte(term, term[k]) != k || term[k] != sum && strings.IndexByte(e.Output, term[k]) < 0 {
				return nil, attrProblem("DM120", "equation", "equation %q has %q of operand %d twice, or sums over it", Str(o, "equation"), term[k], i).
					help("one letter is summed over, the last one of w, and a tensor has a letter once")
			}
		}
	}
	last := w.Shape[w.Rank()-1]
	if n, ok := last.Int(); ok && n%wordElements != 0 {
		return nil, problem("DM123", 0, "%d stored elements are not a multiple of the %d of a word of metadata", n, wordElements).help("a line has a multiple of %d elements", wordNeighbours)
	}
	want := append(slices.Clone(w.Shape[:w.Rank()-1]), dim.Quotient(last, wordElements))
	if !sameShape(meta.Shape, want) {
		return nil, problem("DM122", 2, "the metadata has shape %s where %s is expected", shapeText(meta.Shape), shapeText(want)).help("a word is of %d stored elements", wordElements)
	}
	elem, p := accumulated(o)
	if p != nil {
		return nil, p
	}
	shape := make([]dim.Dim, len(e.Output))
	for i := range shape {
		shape[i] = sizes[e.Output[i]]
	}
	return one(tensor(w, elem, shape...)), nil
}

// places are, of metadata, the places of stored elements, groups by two.
func (w *Builder) places(metadata *ir.Value) *ir.Value {
	t := asTensor(metadata.Type)
	words := w.Reshape(metadata, t.Elements(), dim.Const(1))
	bits := w.Binary("shift_right_logical", words, w.wordShifts(t.Elem))
	return w.Reshape(w.Binary("and", bits, w.number(bits, groupOf-1)), t.Elements().Scale(wordElements/groupStored), dim.Const(groupStored))
}

// wordShifts is where the bits of a word's elements begin.
func (w *Builder) wordShifts(elem types.Elem) *ir.Value {
	return w.Value("iota", nil, append(named("dim", intAttr(0)), types.Named{Name: "step", Value: stepOf(dim.Const(2))}), &types.Tensor{Shape: []dim.Dim{dim.Const(wordElements)}, Elem: elem})
}

// metadataOf are the words of places, of stored elements in lines of so many.
func (w *Builder) metadataOf(places *ir.Value, shape []dim.Dim) *ir.Value {
	n := len(shape) - 1
	words := append(slices.Clone(shape[:n]), dim.Quotient(shape[n], wordElements))
	x := w.Reshape(w.Convert(places, types.UI32), dim.Prod(words...), dim.Const(wordElements))
	x = w.Binary("shift_left", w.Binary("and", x, w.number(x, groupOf-1)), w.wordShifts(types.UI32))
	return w.Reshape(w.reduce("add", x, 1), words...)
}

// unstructured is the tensor of which two of each four elements are given, with zeros between them.
func (w *Builder) unstructured(values, metadata *ir.Value) *ir.Value {
	t := asTensor(values.Type)
	groups := dim.Quotient(t.Elements(), groupStored)
	at, v := w.places(metadata), w.Reshape(values, groups, dim.Const(groupStored))
	to := &types.Tensor{Shape: []dim.Dim{groups, dim.Const(groupOf)}, Elem: t.Elem}
	number := w.count(&types.Tensor{Shape: []dim.Dim{dim.Const(groupOf)}, Elem: types.UI32}, 0)
	column := func(x *ir.Value, i int) *ir.Value { return w.part(x, []int{1}, []int{i}, []int{i + 1}, []int{1}) }
	x := w.zeros(to)
	for i := range groupStored {
		all := w.Value("broadcast", []*ir.Value{column(v, i)}, named("dims", IntList(0, 1)), to)
		x = w.choose(w.compare("eq", column(at, i), number), all, x)
	}
	n := t.Rank() - 1
	return w.Reshape(x, append(slices.Clone(t.Shape[:n]), t.Shape[n].Scale(groupOf/groupStored))...)
}

// structuredOf are the elements of x that metadata names.
func (w *Builder) structuredOf(x, metadata *ir.Value) *ir.Value {
	t := asTensor(x.Type)
	n := t.Rank() - 1
	stored := append(slices.Clone(t.Shape[:n]), dim.Quotient(t.Shape[n], groupOf/groupStored))
	at := w.Convert(w.places(metadata), types.I32)
	first := w.Value("iota", nil, append(named("dim", intAttr(0)), types.Named{Name: "step", Value: stepOf(dim.Const(groupOf))}), asTensor(at.Type))
	at = w.Reshape(w.Binary("add", at, first), dim.Prod(stored...))
	return w.Reshape(w.Value("gather", []*ir.Value{w.Reshape(x, t.Elements()), at}, named("dim", intAttr(0))), stored...)
}

// structuredProduct is o as a product of matrices.
func structuredProduct(o *ir.Op) (p Product, ok bool) {
	e, sizes, problem := structuredEquation(o)
	if problem != nil {
		return p, false
	}
	one := dim.Const(1)
	p = Product{Batch: one, Rows: one, Cols: one, Depth: one, Structured: true}
	for i := range len(e.Letters) {
		c := e.Letters[i]
		a, b := strings.IndexByte(e.Inputs[0], c) >= 0, strings.IndexByte(e.Inputs[1], c) >= 0
		switch n := sizes[c]; {
		case strings.IndexByte(e.Output, c) < 0:
			p.Depth = p.Depth.Mul(n)
		case a && b:
			p.Batch = p.Batch.Mul(n)
		case b:
			p.Cols = p.Cols.Mul(n)
		default:
			p.Rows = p.Rows.Mul(n)
		}
	}
	if last := innermost(out(o, 0)); last >= 0 && strings.IndexByte(e.Inputs[1], e.Output[last]) < 0 {
		p.turn()
	}
	return p, true
}

// structuredColumns is the least number of columns of a product for which metadata are packed: for fewer ones reading the coordinates
// once for that takes longer than the sums of vector units, which read them as well.
const structuredColumns = 128

// columnsOf reports whether x has so many along the letters that are not among those of the other operand, or symbols.
func columnsOf(x term, beside []int) bool {
	size := int64(1)
	for _, l := range x.without(beside...) {
		n, ok := x.size(l).Int()
		if !ok {
			return true
		}
		size *= n
	}
	return size >= structuredColumns
}

// structured is the product of a 2:4 operand, as what tensor cores multiply; nil where it is none: of two-byte floats, summed over the level that has two of four.
func (c *contractedSparse) structured(x term, others []term) *ir.Value {
	level := structuredLevel(c.t)
	if level == nil || level.N != groupStored || level.M != groupOf || len(others) != 1 || c.t.Elem != types.F16 && c.t.Elem != types.BF16 || c.o.Attr("accumulate") != nil ||
		slices.ContainsFunc(c.levels(), func(l types.Level) bool { return l.Div > 0 || l.Mod > 0 }) {
		return nil
	}
	sum, other := c.letter(c.core), others[0]
	if n, ok := c.size(c.core).Int(); !ok || n%StructuredDepth != 0 || slices.Contains(c.output, sum) || !slices.Contains(other.letters, sum) || asTensor(other.v.Type).Elem != c.t.Elem {
		return nil
	}
	var shape []dim.Dim
	var letters []int
	for i := range c.levels() {
		shape, letters = append(shape, c.size(i)), append(letters, c.letter(i))
	}
	shape[c.core] = dim.Quotient(shape[c.core], groupOf/groupStored)
	kept := func(ls []int) bool {
		return !twice(ls) && !slices.ContainsFunc(ls, func(l int) bool { return l > 'z' || l != sum && !slices.Contains(c.output, l) })
	}
	if !kept(letters) || !kept(other.letters) || !columnsOf(other, letters) {
		return nil
	}
	text := func(ls []int) string {
		var b strings.Builder
		for _, l := range ls {
			b.WriteByte(byte(l))
		}
		return b.String()
	}
	equation := types.Str(text(letters) + "," + text(other.letters) + "->" + text(c.output))
	metadata := c.metadataOf(c.component(c.core, types.Coordinates), shape)
	return c.Value("structured_einsum", []*ir.Value{c.Reshape(x.v, shape...), other.v, metadata}, named("equation", equation), &types.Tensor{Shape: c.o.Results[0].Type.(*types.Tensor).Shape, Elem: c.out[0].Elem})
}
