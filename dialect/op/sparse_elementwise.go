package op

import (
	"math"
	"slices"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// eachStored is how ops that keep zeros take a sparse operand: they compute what is stored.
var eachStored = storedElements(func(l *lowering, values []*ir.Value, _ int) []*ir.Value { return l.apply(values...) })

// steepStored is eachStored of an op of one operand whose derivative at 0 is infinite: the op of padding is that of 1.
var steepStored = storedElements(func(l *lowering, _ []*ir.Value, i int) []*ir.Value {
	e := l.entries(i)
	y := l.apply(e.unpadded(e.values(), e.core, 1))[0]
	return []*ir.Value{e.flat(e.unpadded(y, e.core, 0))}
})

// storedElements is how an op of elements takes sparse operands of one pattern, that of operand i: compute gives the values of its results.
func storedElements(compute func(l *lowering, values []*ir.Value, i int) []*ir.Value) *Sparse {
	return &Sparse{
		Doc:   "A sparse operand: computed for the elements that it stores; the result stores the same.",
		Infer: keptFormat, Keeps: keptAlways,
		lower: func(l *lowering) {
			values := make([]*ir.Value, len(l.in))
			one := -1
			for i, vs := range l.in {
				values[i] = last(vs)
				switch {
				case !l.sparse(i):
					l.refuse(problem("DM134", i, "%s takes either sparse or dense operands, not both", l.o.Name).help("convert one of them: dm.convert_format"))
				case one < 0:
					one = i
				case !l.samePattern(one, i):
					l.refuse(otherPattern(l.o, one, i))
				}
			}
			l.give(compute(l, values, one), one)
		},
	}
}

// apply is o, element by element, of other operands: the values of its results.
func (l *lowering) apply(values ...*ir.Value) []*ir.Value {
	var ts []types.Type
	for _, t := range l.out {
		ts = append(ts, &types.Tensor{Shape: asTensor(values[0].Type).Shape, Elem: t.Elem})
	}
	attrs := slices.DeleteFunc(slices.Clone(l.o.Attrs), func(a types.Named) bool { return a.Name == ShardingAttr })
	return l.Value(l.o.Name, values, attrs, ts...).Op.Results
}

// give makes the results tensors with those values, stored as operand i is.
func (l *lowering) give(values []*ir.Value, i int) {
	for r, v := range values {
		l.results[r] = append(slices.Clone(l.in[i][:len(l.in[i])-1]), v)
	}
}

// samePattern is SamePattern of operands i and j, by which their types follow as well.
func (l *lowering) samePattern(i, j int) bool {
	return SamePattern(l.of.Operands[i], l.of.Operands[j])
}

// last is the values among the components of a sparse tensor.
func last(parts []*ir.Value) *ir.Value { return parts[len(parts)-1] }

func otherPattern(o *ir.Op, i, j int) *Problem {
	return problem("DM134", j, "%s and %s need not store the same elements", valueName(o.Operands[i]), valueName(o.Operands[j])).
		help("use values computed from one of them, or dm.sample, which takes the elements that another tensor stores")
}

// atStored are the elements of dense operand j that operand i stores, as its values lie, and another number for padding.
func (l *lowering) atStored(i, j int, padding float64) *ir.Value {
	c := l.elementsOf(i)
	t := asTensor(l.o.Operands[j].Type)
	x := term{v: l.in[j][0]}
	var shape []dim.Dim
	for d, n := range t.Shape {
		if !isOne(n) || isOne(c.t.Shape[c.t.Rank()-t.Rank()+d]) {
			shape = append(shape, n)
			x.letters = append(x.letters, c.dims[c.t.Rank()-t.Rank()+d])
		}
	}
	x.v = l.Reshape(x.v, shape...)
	if len(shape) == 0 {
		return x.v
	}
	return c.flat(c.unpadded(c.whole(c.atEntries(x)), c.core, padding))
}

// elementsOf is operand i with letters of its own for its dimensions, all of them in the output.
func (l *lowering) elementsOf(i int) *contractedSparse {
	c := &contractedSparse{entries: l.entries(i)}
	for d := range c.t.Rank() {
		c.dims = append(c.dims, d+1)
	}
	c.output = c.dims
	return c
}

// atEntries is x at the coordinates of the entries of core, if it has dimensions along them.
func (c *contractedSparse) atEntries(x term) term {
	x = c.blocked(x)
	if c.deepest(x) < 0 { // it has those of blocks alone
		return x
	}
	return c.at(x, c.core)
}

// whole is x, of some of the letters of the values, broadcast to all of them.
func (c *contractedSparse) whole(x term) *ir.Value {
	v := c.spread(x, c.ofValues())
	to := &types.Tensor{Shape: append([]dim.Dim{c.count(c.core)}, c.inner()...), Elem: v.Elem()}
	if slices.EqualFunc(asTensor(v.Type).Shape, to.Shape, dim.Dim.Equal) {
		return v
	}
	return c.Value("broadcast", []*ir.Value{v}, nil, to)
}

// transposed is how dm.transpose takes a sparse operand: the levels walk other dimensions.
var transposed = &Sparse{
	Doc: "A sparse operand: nothing moves. The result stores the same, and its levels walk the dimensions where they are now: compressed rows become compressed columns.",
	Infer: func(o *ir.Op, dense []types.Type) ([]types.Type, *Problem) {
		x, r := in(o, 0), *dense[0].(*types.Tensor)
		dims, ok := Dims(o, "dims", x.Rank())
		if !ok {
			return dense, nil
		}
		to := make([]int, len(dims))
		for i, d := range dims {
			to[d] = i
		}
		r.Format = x.Format.Transposed(to)
		return one(&r), nil
	},
	lower: func(l *lowering) { l.results[0] = l.in[0] },
}

// summed is how dm.reduce takes a sparse operand.
var summed = &Sparse{
	Doc: "`add`, `mul`, `max` or `min` of a sparse operand, which gives a dense tensor. What is not stored is 0, and counts: the maximum of a row with room for another element is at least 0, its product is 0; with `over = stored` it takes no part.",
	lower: func(l *lowering) {
		kind := Str(l.o, "kind")
		if !slices.Contains([]string{"add", "mul", "max", "min"}, kind) || len(l.in) > 1 {
			l.refuse(problem("DM134", 0, "of the elements of a sparse tensor only sums, products, maxima and minima can be reduced").help("make it dense: dm.convert_format"))
		}
		c, total := l.overRows()
		y := c.rows(kind, c.Convert(c.values(), wide(c.t.Elem)))
		if kind != "add" && Str(l.o, "over") != "stored" {
			ones := &types.Tensor{Shape: append([]dim.Dim{c.count(c.core)}, c.inner()...), Elem: types.I32}
			missing := c.compared("lt", c.rows("add", c.Splat(ones, 1)), c.constant(types.I32, total))
			zero := c.Splat(&types.Tensor{Elem: y.Elem()}, 0)
			with := zero
			if kind != "mul" {
				with = c.Binary(kind, y, zero)
			}
			y = c.Value("select", []*ir.Value{missing, with, y}, nil)
		}
		l.results[0] = []*ir.Value{l.Convert(l.Reshape(y, l.out[0].Shape...), l.out[0].Elem)}
	},
}

// averaged is how dm.mean takes a sparse operand.
var averaged = &Sparse{
	Doc: "A sparse operand, which gives a dense tensor: the sum of what is stored, divided by the number of all elements.",
	lower: func(l *lowering) {
		c, total := l.overRows()
		y := c.rows("add", c.Convert(c.values(), wide(c.t.Elem)))
		y = c.Binary("div", y, c.constant(y.Elem(), total))
		l.results[0] = []*ir.Value{l.Convert(l.Reshape(y, l.out[0].Shape...), l.out[0].Elem)}
	},
}

// overRows is the operand of o, with the dimensions that o leaves as the output, and how many
// elements become one.
func (l *lowering) overRows() (c *contractedSparse, total dim.Dim) {
	c = l.elementsOf(0)
	dims, _ := reducedDims(l.o)
	c.output, total = nil, dim.Const(1)
	for d, letter := range c.dims {
		if slices.Contains(dims, d) {
			total = total.Mul(c.t.Shape[d])
		} else {
			c.output = append(c.output, letter)
		}
	}
	return c, total
}

// rows reduces x, of the shape of the values.
func (c *contractedSparse) rows(kind string, x *ir.Value) *ir.Value {
	return c.unblocked(c.contract(kind, term{x, c.ofValues()}, nil))
}

// normalized is how softmax takes a sparse operand: what is not stored has probability 0.
var normalized = &Sparse{
	Doc:   "A sparse operand: over the elements of a row that it stores; the others have probability 0. The result stores the same.",
	Infer: keptFormat, Keeps: keptAlways,
	lower: func(l *lowering) {
		c := l.elementsOf(0)
		d, _ := Dim(l.o, "dim", c.t.Rank())
		c.output = slices.Delete(slices.Clone(c.dims), d, d+1)
		x := term{c.Convert(c.values(), wide(c.t.Elem)), c.ofValues()}
		each := func(kind string, x term) *ir.Value { // of the row that an element is in
			return c.whole(c.atEntries(term{c.unblocked(c.contract(kind, x, nil)), c.output}))
		}
		x.v = c.Unary("exp", c.unpadded(c.Binary("sub", x.v, each("max", x)), c.core, math.Inf(-1)))
		y := c.Binary("div", x.v, c.unpadded(each("add", x), c.core, 1))
		l.give([]*ir.Value{c.Convert(c.flat(y), l.out[0].Elem)}, 0)
	},
}

// sampleDef computes products at the places that another tensor stores.
var sampleDef = &Def{
	Name: "sample", Family: SparseTensors, Class: ClassContraction,
	Summary: "elements of a product where another tensor stores some",
	Foreign: []Foreign{{Names: "sddmm sampled_addmm"}},
	Doc: "The result stores what the first operand, a sparse tensor, does; its elements are those of the product of the other operands, an Einstein summation whose equation has a term for each of them: " +
		"`\"ik,jk->ij\"` are the scores of queries and keys. A dimension of the pattern that no operand has repeats them: `\"i->ij\"` is the number of the row for each element of it. Nothing is computed for elements that are not stored, and the first operand's own values are not read. " +
		"Without an equation there is one other operand, of the first one's shape.\n\nCounts 2 FLOP for each stored element and each index that is summed over, less the first addition.",
	Example: `func.func @example(%mask: tensor<4x4xf32, #dm.csr<nnz = 6>>, %q: tensor<4x8xf32>, %k: tensor<4x8xf32>) -> tensor<4x4xf32, #dm.csr<nnz = 6>> {
  %s = dm.sample "ik,jk->ij" %mask, %q, %k : (tensor<4x4xf32, #dm.csr<nnz = 6>>, tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x4xf32, #dm.csr<nnz = 6>>
  return %s : tensor<4x4xf32, #dm.csr<nnz = 6>>
}`,
	Operands: []Param{
		{Name: "pattern", Elems: numeric, Doc: "a sparse tensor"},
		{Name: "operands", Elems: numeric, Variadic: true, Doc: "one for each comma-separated part of the equation; one element type"},
	},
	Results: []Param{{Name: "y", Elems: numeric, Doc: "the pattern's shape and format, the operands' element type"}},
	Attrs:   []AttrDef{{Name: "equation", Kind: KindString, Lead: true, Optional: true, Doc: "letters of the operands, `->`, letters of the output"}, productsAttr},
	Traits:  Pure,
	Infer:   inferSample,
	Whole:   "What is stored of a row is known to the device that runs.",
	Kernel:  Structure,
}

func inferSample(o *ir.Op) ([]types.Type, *Problem) {
	p := in(o, 0)
	switch {
	case p.Format == nil:
		return nil, problem("DM134", 0, "%s is dense, and dm.sample takes the elements that a sparse tensor stores", valueName(o.Operands[0])).help("give it a format, such as #dm.csr, or compute the product with dm.einsum")
	case len(o.Operands) < 2:
		return nil, problem("DM124", -1, "dm.sample needs at least one operand besides the pattern")
	}
	if q := contractionElems(o, 1, len(o.Operands)); q != nil {
		return nil, q
	}
	eq, q := SampleEquation(o)
	if q != nil {
		return nil, q
	}
	sizes, err := eq.Sizes(operandShapes(o)[1:])
	if err != nil {
		return nil, problem("DM121", -1, "%s", err)
	}
	shape := make([]dim.Dim, len(eq.Output))
	for i := range shape {
		size, ok := sizes[eq.Output[i]]
		if !ok && i < p.Rank() {
			size = p.Shape[i]
		}
		shape[i] = size
	}
	if !sameShape(shape, p.Shape) {
		return nil, problem("DM121", -1, "the product has the shape %s, but the pattern %s", shapeText(shape), shapeText(p.Shape)).help("the output's letters are the pattern's dimensions")
	}
	return one(tensor(p, in(o, 1).Elem, unify(shape, p.Shape)...)), nil
}

// SampleEquation is the equation of o, a dm.sample: of its operands but the first.
func SampleEquation(o *ir.Op) (*Equation, *Problem) {
	text := Str(o, "equation")
	if text == "" {
		letters := "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"[:min(in(o, 0).Rank(), 52)]
		text = letters + "->" + letters
		if len(o.Operands) > 2 {
			return nil, attrProblem("DM120", "equation", "the product of %d operands needs an equation", len(o.Operands)-1).help(`write one before the operands: "ik,jk->ij"`)
		}
	}
	eq, err := parseEquation(text, len(o.Operands)-1)
	if err == nil && eq.Diagonal() {
		return nil, attrProblem("DM120", "equation", "a letter stands twice in an operand of %q", text).help("take the diagonal with dm.einsum first")
	}
	if err != nil {
		return nil, attrProblem("DM120", "equation", "%s", err)
	}
	return eq, nil
}

var sampledProduct = &Sparse{
	Doc: "The first operand is sparse; the result stores what it does. Of the others any may be, and are joined by the coordinates that they share, beginning with the first operand's: " +
		"a masked product of sparse matrices. Where one is walked for each combination of elements so far, `products` states how many there are at most; without it they are made dense. " +
		"Two matrices of which no format has blocks are multiplied by rows ([`dm.segment_sample`](#dmsegment_sample)), and `products` is how many they have with each other.",
	Infer: keptFormat, Keeps: keptAlways,
	lower: func(l *lowering) {
		eq, p := SampleEquation(l.o)
		if p != nil {
			l.refuse(p)
		}
		if l.compressed(0) && slices.ContainsFunc(l.o.Operands[1:], compressed) {
			if j := l.joined(eq); j != nil {
				if p := j.matrices(in(l.o, 0), 1); p != nil && !l.entries(0).loose() {
					l.give([]*ir.Value{j.sampled(p)}, 0)
					return
				}
				c := j.folded(j.combine(true))
				l.give([]*ir.Value{l.Convert(j.ofPattern(c), l.out[0].Elem)}, 0)
				return
			}
		}
		c := &contractedSparse{entries: l.entries(0), dims: lettersOf(eq.Output), output: lettersOf(eq.Output)}
		elem := wide(in(l.o, 1).Elem)
		var x term
		keep := append([]int{entry}, c.wanted()...)
		if len(eq.Inputs) == 2 {
			var sides [2]term
			for i := range sides {
				sides[i] = c.blocked(term{l.denseOf(i + 1), lettersOf(eq.Inputs[i])})
			}
			if y, ok := c.blockSamples(sides[0], sides[1], elem); ok {
				l.give([]*ir.Value{c.flat(c.whole(term{l.Convert(y.v, l.out[0].Elem), y.letters}))}, 0)
				return
			}
		}
		for i := range eq.Inputs {
			y := c.atEntries(term{l.Convert(l.denseOf(i+1), elem), lettersOf(eq.Inputs[i])})
			if slices.Contains(y.letters, entry) {
				y.v = c.counted(y.v, c.core)
			}
			switch {
			case i == 0:
				x = y
			case len(c.inner()) > 0 && i == len(eq.Inputs)-1:
				x = c.product(x, y, keep)
			default: // one kernel with the sum
				x = c.product(x, y, append(slices.Concat(keep, x.letters), y.letters...))
			}
		}
		x = c.reduced("add", x, keep)
		l.give([]*ir.Value{l.Convert(c.flat(c.unpadded(c.whole(x), c.core, 0)), l.out[0].Elem)}, 0)
	},
}
