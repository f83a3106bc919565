package op

import (
	"math"
	"slices"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// convertFormatDef changes how a tensor is stored.
var convertFormatDef = &Def{
	Name: "convert_format", Family: SparseTensors, Class: ClassMovement,
	Summary: "the tensor in another format, or dense",
	Foreign: []Foreign{{Names: "to_dense to_sparse tocsr tocsc tocoo"}},
	Doc: "The elements stay; the format is the one written. A dense tensor becomes a sparse one by the elements that are not 0 (of blocks, those with such an element); " +
		"the written `nnz` is how many it has room for, and it is an error if there are more. A sparse tensor becomes dense with 0 where nothing is stored, and another sparse one with the same elements stored, " +
		"0 or not.\n\nCounts no FLOP.",
	Example: `func.func @example(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %a = dm.convert_format %x : (tensor<4x6xf32>) -> tensor<4x6xf32, #dm.csr<nnz = 24>>
  %t = dm.convert_format %a : (tensor<4x6xf32, #dm.csr<nnz = 24>>) -> tensor<4x6xf32, #dm.csc<nnz = 24>>
  %y = dm.convert_format %t : (tensor<4x6xf32, #dm.csc<nnz = 24>>) -> tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}`,
	Operands: []Param{{Name: "x", Elems: numeric, Doc: "any shape, sparse or dense"}},
	Results:  []Param{{Name: "y", Elems: numeric, Doc: "x's shape and element type, the format as written"}},
	Traits:   Pure | Cast,
	Infer: func(o *ir.Op) ([]types.Type, *Problem) {
		if len(o.Results) == 0 || asTensor(o.Results[0].Type) == nil {
			return nil, noResult("convert_format")
		}
		x := in(o, 0)
		return one(tensor(x, x.Elem, x.Shape...)), nil
	},
	Whole:  "The elements that are stored are numbered throughout.",
	Kernel: Structure,
}

var converted = &Sparse{
	Doc: "Any formats.", Assembles: true,
	Infer: func(o *ir.Op, dense []types.Type) ([]types.Type, *Problem) {
		r := *dense[0].(*types.Tensor)
		r.Format = out(o, 0).Format
		return one(&r), nil
	},
	lower: func(l *lowering) {
		to := l.out[0]
		switch {
		case to.Format != nil && to.Format.Full():
			e := l.entriesOf(to, nil)
			l.results[0] = []*ir.Value{e.flat(e.leveled(l.denseOf(0)))}
		case structuredLevel(to) != nil:
			l.results[0] = l.largest(l.denseOf(0), to, true)
		case !l.sparse(0):
			l.assemble(to, l.nonzero(to))
		case to.Format == nil:
			c := l.elementsOf(0)
			y := c.contract("add", term{c.values(), c.ofValues()}, nil)
			l.results[0] = []*ir.Value{c.unblocked(y)}
		case to.Format.Alike(in(l.o, 0).Format) && slices.EqualFunc(to.Format.Stored, in(l.o, 0).Format.Stored, dim.Dim.Equal):
			l.results[0] = l.in[0]
		default:
			l.assemble(to, l.storedAs(0, to))
		}
	},
}

// keys are what a tensor stores: for each entry of core its number in a row-major tensor of
// the levels up to it, rising, and for padding end, which is beyond all, and its values.
type keys struct {
	key, values *ir.Value
	end         dim.Dim
}

// order is the levels of t up to core as dimensions, and their sizes.
func (e *entries) order() (sizes []dim.Dim) {
	for i := range e.core + 1 {
		sizes = append(sizes, e.size(i))
	}
	return sizes
}

// keyElem is an integer type that holds n.
func (l *lowering) keyElem(n dim.Dim) types.Elem {
	if most, ok := n.Int(); ok && most < math.MaxInt32 {
		return types.I32
	}
	return types.I64
}

// constant is n as a scalar.
func (l *lowering) constant(elem types.Elem, n dim.Dim) *ir.Value {
	v, ok := n.Int()
	if !ok || v > 1<<53 {
		l.refuse(problem("DM134", -1, "%s numbers the places of a tensor, for which it needs %s as a number below 2^53", l.o.Name, n).help("bind the symbols"))
	}
	return l.Splat(&types.Tensor{Elem: elem}, float64(v))
}

// leveled is a dense x with the levels of t as dimensions.
func (e *entries) leveled(x *ir.Value) *ir.Value {
	var shape []dim.Dim
	at := make([]int, len(e.levels())) // the dimension that each level is before they are put in order
	for d := range e.t.Shape {
		for i, l := range e.levels() {
			if l.Dim == d {
				at[i] = len(shape)
				shape = append(shape, e.size(i))
			}
		}
	}
	return e.Transpose(e.Reshape(x, shape...), at...)
}

// nonzero are the keys of the entries of a dense operand that are not 0, as to stores them.
func (l *lowering) nonzero(to *types.Tensor) keys {
	e := l.entriesOf(to, nil)
	end := dim.Prod(e.order()...)
	elem := l.keyElem(end)
	x := e.leveled(l.in[0][0])
	x = l.Reshape(x, append([]dim.Dim{end}, e.inner()...)...)
	is := l.compared("ne", x, l.Splat(&types.Tensor{Elem: x.Elem()}, 0))
	n := l.Convert(is, elem)
	for range e.inner() {
		n = l.reduce("max", n, 1)
	}
	upTo := l.Value("cumsum", []*ir.Value{n}, named("dim", intAttr(0)))
	one := l.constant(elem, dim.Const(1))
	some := l.compared("ne", n, l.constant(elem, dim.Const(0)))
	at := l.Value("select", []*ir.Value{some, l.Binary("sub", upTo, one), l.constant(elem, dim.Const(-1))}, nil)
	room := e.count(e.core)
	k := keys{end: end}
	cells := l.Value("iota", nil, named("dim", intAttr(0)), l.vector(elem, end))
	l.fit(at, end, room)
	k.key = l.moved(cells, at, room, l.constant(elem, end))
	k.values = l.padded(l.take(x, k.key), k.key, end)
	return k
}

// padded is x with 0 for the entries whose key is end.
func (l *lowering) padded(x, key *ir.Value, end dim.Dim) *ir.Value {
	is := l.compared("lt", key, l.constant(key.Elem(), end))
	shape := asTensor(x.Type).Shape
	ones := make([]dim.Dim, len(shape))
	for i := range ones {
		ones[i] = dim.Const(1)
	}
	ones[0] = shape[0]
	return l.Value("select", []*ir.Value{l.Reshape(is, ones...), x, l.Splat(&types.Tensor{Elem: x.Elem()}, 0)}, nil)
}

// coordinateAt is, for each entry of a level, its coordinate along a dimension of which no level
// is below it.
func (e *entries) coordinateAt(d int, elem types.Elem, level int) *ir.Value {
	var sum *ir.Value
	for i, of := range e.levels() {
		if of.Dim != d {
			continue
		}
		x := e.Convert(e.coordinates(i, level), elem)
		if of.Div > 0 {
			x = e.Binary("mul", x, e.constant(elem, dim.Const(of.Div)))
		}
		if sum != nil {
			x = e.Binary("add", sum, x)
		}
		sum = x
	}
	return sum
}

// ended is key, of the entries of core, with end for padding.
func (e *entries) ended(key *ir.Value, end dim.Dim) *ir.Value {
	is := e.stored(e.core)
	if is == nil {
		return key
	}
	return e.Value("select", []*ir.Value{is, key, e.constant(key.Elem(), end)}, nil)
}

// lengthOf is the number of elements of x, a vector, as a scalar.
func (l *lowering) lengthOf(x *ir.Value) *ir.Value {
	n := asTensor(x.Type).Shape[0]
	if v, ok := n.Int(); ok {
		return l.Splat(&types.Tensor{Elem: types.I32}, float64(v))
	}
	ones := l.Splat(&types.Tensor{Shape: []dim.Dim{n}, Elem: types.I32}, 1)
	return l.reduce("add", ones, 0)
}

// assemble makes the result a tensor with the entries of k.
func (l *lowering) assemble(to *types.Tensor, k keys) {
	e := l.entriesOf(to, nil)
	elem := k.key.Elem()
	sizes := e.order()
	below := func(level int) dim.Dim { return dim.Prod(sizes[level+1:]...) } // cells of an entry of a level
	var parts []*ir.Value
	// cells are the keys of the entries of the level before, nil where there is one for each cell.
	var cells *ir.Value
	for i := range e.core + 1 {
		level := e.levels()[i]
		if level.Kind == types.StructuredLevel {
			l.refuse(problem("DM134", -1, "%s stores %d of each %d neighbours, and %s may give others", to, level.N, level.M, l.o.Name).
				help("give the result another format, and choose what to keep with dm.prune"))
		}
		if level.Kind == types.DenseLevel {
			if cells != nil {
				l.refuse(problem("DM134", -1, "level %d of %s is dense below a compressed one and not the innermost", i, to))
			}
			continue
		}
		unique := i < e.core && e.levels()[i+1].Kind != types.SingletonLevel
		own := k.key // of each entry of this level a key
		if level.HasPositions() {
			n := dim.Prod(sizes[:i]...)
			starts := l.Value("iota", nil, append(named("dim", intAttr(0)), types.Named{Name: "step", Value: stepOf(below(i - 1))}), l.vector(elem, n.Add(dim.Const(1))))
			if cells != nil { // those of the level before, and the end
				n = e.count(i - 1)
				last := l.Reshape(l.constant(elem, k.end), dim.Const(1))
				starts = l.Value("concatenate", []*ir.Value{cells, last}, named("dim", intAttr(0)))
			}
			if unique {
				own = l.distinct(k, below(i), e.count(i))
			}
			p := l.Value("searchsorted", []*ir.Value{own, starts}, nil, l.vector(types.I32, n.Add(dim.Const(1))))
			if level.Kind == types.LooseCompressedLevel { // where one ends, the next begins
				i := l.Binary("add", l.numbers(n.Scale(2)), l.Splat(&types.Tensor{Elem: types.I32}, 1))
				p = l.take(p, e.halved(i))
			}
			parts = append(parts, l.Convert(p, to.Components()[len(parts)].Tensor.Elem))
		}
		at := own
		if b := below(i); !isOne(b) {
			at = l.Binary("div", at, l.constant(elem, b))
		}
		if i > 0 {
			at = l.Binary("rem", at, l.constant(elem, sizes[i]))
		}
		end := l.compared("lt", own, l.constant(elem, k.end))
		at = l.Value("select", []*ir.Value{end, at, l.constant(elem, dim.Const(0))}, nil)
		parts = append(parts, l.Convert(at, to.Components()[len(parts)].Tensor.Elem))
		cells = own
	}
	l.results[0] = append(parts, e.flat(k.values))
}

func stepOf(n dim.Dim) types.Attr {
	v, _ := n.Int()
	return types.Float{V: float64(v)}
}

// distinct are the first keys of the groups of cells that k has entries in.
func (l *lowering) distinct(k keys, cells, room dim.Dim) *ir.Value {
	elem := k.key.Elem()
	group := l.Binary("div", k.key, l.constant(elem, cells))
	number, first := l.groups(group, l.compared("lt", k.key, l.constant(elem, k.end)))
	at := l.placed(first, number)
	start := l.Binary("mul", group, l.constant(elem, cells))
	l.fit(at, asTensor(k.key.Type).Shape[0], room)
	return l.moved(start, at, room, l.constant(elem, k.end))
}

// fit checks that places, of which there are at most so many, lie below room.
func (l *lowering) fit(at *ir.Value, most, room dim.Dim) {
	if !room.AtLeast(most) {
		n := l.Binary("add", l.reduce("max", at, 0), l.constant(at.Elem(), dim.Const(1)))
		l.within(n, room, valueName(l.o.Results[0]))
	}
}

// within checks that n is at most room; what is of RoomAttr.
func (l *lowering) within(n *ir.Value, room dim.Dim, what string) {
	limit := l.Convert(l.lengthOf(l.Splat(&types.Tensor{Shape: []dim.Dim{room}, Elem: types.I32}, 0)), n.Elem())
	l.Op("check.expect_eq", []*ir.Value{n, l.Binary("min", n, limit)}, named(RoomAttr, types.Str(what)))
}
