package linalg

import (
	"fmt"
	"strings"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// values are several values.
type values = []*ir.Value

// builder makes ops of upstream dialects.
type builder struct{ *ir.Builder }

// signless is the type in which MLIR's own dialects hold elements of e.
func signless(e types.Elem) types.Elem {
	switch e {
	case types.UI64:
		return types.I64
	case types.UI32:
		return types.I32
	case types.UI16:
		return types.I16
	case types.UI8:
		return types.I8
	case types.UI4:
		return types.I4
	}
	return e
}

// wide is the type in which elements of e are computed.
func wide(e types.Elem) types.Elem {
	if e == types.F16 || e == types.BF16 {
		return types.F32
	}
	return signless(e)
}

func tensorOf(e types.Elem, shape ...int64) *types.Tensor {
	t := &types.Tensor{Elem: e}
	for _, n := range shape {
		t.Shape = append(t.Shape, dim.Const(n))
	}
	return t
}

func sizes(v *ir.Value) []int64 {
	if t := v.Tensor(); t != nil {
		return sizesOf(t)
	}
	return nil
}

func sizesOf(t *types.Tensor) []int64 {
	out := make([]int64, len(t.Shape))
	for i, d := range t.Shape {
		out[i], _ = d.Int() // Export refuses others
	}
	return out
}

// make inserts an op with one result.
func (b builder) make(name string, t types.Type, operands values, attrs ...types.Named) *ir.Value {
	return b.Op(name, operands, attrs, t).Results[0]
}

func attr(name string, v types.Attr) types.Named { return types.Named{Name: name, Value: v} }

// integer is an i64 as an attribute, as enumerations are held.
func integer(n int64) types.Attr { return types.Int{V: n, Elem: types.I64} }

// number is the scalar constant v.
func (b builder) number(e types.Elem, v float64) *ir.Value {
	if e.IsFloat() {
		return b.make("arith.constant", types.Scalar{Elem: e}, nil, attr("value", types.Float{V: v, Elem: e}))
	}
	return b.whole(e, int64(v))
}

// whole is the scalar constant v of an integer type.
func (b builder) whole(e types.Elem, v int64) *ir.Value {
	var a types.Attr = types.Int{V: v, Elem: e}
	if e == types.I1 {
		a = types.Bool(v != 0)
	}
	return b.make("arith.constant", types.Scalar{Elem: e}, nil, attr("value", a))
}

func (b builder) index(v int64) *ir.Value { return b.whole(types.Index, v) }

// two is an op of two scalars of one type.
func (b builder) two(name string, x, y *ir.Value) *ir.Value {
	return b.make(name, x.Type, values{x, y})
}

// The predicates of arith.cmpi and arith.cmpf.
var (
	intIs   = map[string]int64{"eq": 0, "ne": 1, "lt": 2, "le": 3, "gt": 4, "ge": 5}
	uintIs  = map[string]int64{"eq": 0, "ne": 1, "lt": 6, "le": 7, "gt": 8, "ge": 9}
	floatIs = map[string]int64{"eq": 1, "gt": 2, "ge": 3, "lt": 4, "le": 5, "ne": 13, "unordered": 14}
)

// is compares two scalars; unsigned is about integers.
func (b builder) is(kind string, x, y *ir.Value, unsigned bool) *ir.Value {
	name, of := "arith.cmpi", intIs
	switch {
	case x.Elem().IsFloat():
		name, of = "arith.cmpf", floatIs
	case unsigned:
		of = uintIs
	}
	return b.make(name, types.Scalar{Elem: types.I1}, values{x, y}, attr("predicate", integer(of[kind])))
}

func (b builder) choose(p, x, y *ir.Value) *ir.Value {
	return b.make("arith.select", x.Type, values{p, x, y})
}

// cast is x of element type from in another type: values are kept as far as they fit.
// What goes to an integer is cut towards zero and limited to the type; NaN is 0.
func (b builder) cast(x *ir.Value, from, to types.Elem) *ir.Value {
	have, want := x.Elem(), signless(to)
	t := types.Scalar{Elem: want}
	switch {
	case have.IsFloat() && want.IsFloat():
		switch {
		case have == want:
			return x
		case have.Bits() < want.Bits():
			return b.make("arith.extf", t, values{x})
		case have.Bits() > want.Bits():
			return b.make("arith.truncf", t, values{x})
		}
		return b.cast(b.cast(x, from, types.F32), types.F32, to)
	case to == types.I1:
		return b.is("ne", x, b.number(have, 0), false)
	case have.IsFloat():
		return b.cut(x, to)
	case want.IsFloat():
		name := "arith.sitofp"
		if from.IsUnsigned() {
			name = "arith.uitofp"
		}
		if want.Bits() < 32 { // rounded once, from a type that holds more
			return b.cast(b.make(name, types.Scalar{Elem: types.F64}, values{x}), types.F64, to)
		}
		return b.make(name, t, values{x})
	case width(have) < width(want):
		if from.IsUnsigned() {
			return b.make("arith.extui", t, values{x})
		}
		return b.make("arith.extsi", t, values{x})
	case width(have) > width(want):
		return b.make("arith.trunci", t, values{x})
	}
	return x
}

func width(e types.Elem) int64 {
	if e == types.I1 {
		return 1
	}
	return e.Bits()
}

// generic is a linalg.generic: maps are the affine expressions of ins, then of outs,
// over loops d0, d1 …; reduces says of each loop whether results leave it out.
func (b builder) generic(ins, outs values, maps [][]string, reduces []bool, body func(in builder, x values) values) values {
	names := make([]string, len(reduces))
	kinds := make(types.Array, len(reduces))
	for i, r := range reduces {
		names[i] = fmt.Sprintf("d%d", i)
		kinds[i] = types.Raw("#linalg.iterator_type<" + map[bool]string{false: "parallel", true: "reduction"}[r] + ">")
	}
	list := make(types.Array, len(maps))
	for i, m := range maps {
		list[i] = types.Raw("affine_map<(" + strings.Join(names, ", ") + ") -> (" + strings.Join(m, ", ") + ")>")
	}
	all := append(append(values{}, ins...), outs...)
	o := b.Op("linalg.generic", all, []types.Named{
		attr("indexing_maps", list), attr("iterator_types", kinds),
		attr("operandSegmentSizes", types.IntArray(types.I32, int64(len(ins)), int64(len(outs)))),
	}, ir.Types(outs)...)
	block := o.AddRegion()
	var args values
	for _, v := range all {
		args = append(args, block.AddArg("", types.Scalar{Elem: v.Elem()}))
	}
	in := builder{&ir.Builder{Block: block, At: b.At}}
	in.Op("linalg.yield", body(in, args), nil)
	return o.Results
}

// loops are the affine expressions of n loops, and their kinds if none reduces.
func loops(n int) (names []string, parallel []bool) {
	for i := range n {
		names = append(names, fmt.Sprintf("d%d", i))
	}
	return names, make([]bool, n)
}

// each is a tensor whose elements are computed one by one, from their place.
func (b builder) each(t *types.Tensor, element func(in builder, at values) *ir.Value) *ir.Value {
	names, parallel := loops(t.Rank())
	return b.generic(nil, values{b.empty(t)}, [][]string{names}, parallel, func(in builder, _ values) values {
		return values{element(in, in.place(t.Rank()))}
	})[0]
}

// place is the number of the current iteration of each loop.
func (b builder) place(n int) values {
	at := make(values, n)
	for i := range at {
		at[i] = b.make("linalg.index", types.Scalar{Elem: types.Index}, nil, attr("dim", integer(int64(i))))
	}
	return at
}

func (b builder) empty(t *types.Tensor) *ir.Value { return b.make("tensor.empty", t, nil) }

// filled is a tensor of one value, a scalar.
func (b builder) filled(t *types.Tensor, v *ir.Value) *ir.Value {
	names, parallel := loops(t.Rank())
	return b.generic(nil, values{b.empty(t)}, [][]string{names}, parallel, func(builder, values) values { return values{v} })[0]
}

// point maps each element of x through f; the result has the element type e.
func (b builder) point(x *ir.Value, e types.Elem, f func(in builder, x *ir.Value) *ir.Value) *ir.Value {
	if x.Elem() == e && f == nil {
		return x
	}
	names, parallel := loops(x.Tensor().Rank())
	return b.generic(values{x}, values{b.empty(tensorOf(e, sizes(x)...))}, [][]string{names, names}, parallel, func(in builder, v values) values {
		return values{f(in, v[0])}
	})[0]
}

// as is x in another element type.
func (b builder) as(x *ir.Value, from, to types.Elem) *ir.Value {
	if x.Elem() == signless(to) {
		return x
	}
	return b.point(x, signless(to), func(in builder, v *ir.Value) *ir.Value { return in.cast(v, from, to) })
}

func (b builder) extract(x *ir.Value, at ...*ir.Value) *ir.Value {
	return b.make("tensor.extract", types.Scalar{Elem: x.Elem()}, append(values{x}, at...))
}

func (b builder) insert(v, x *ir.Value, at ...*ir.Value) *ir.Value {
	return b.make("tensor.insert", x.Type, append(values{v, x}, at...))
}

// reshape gives x another shape of as many elements, by way of a list.
func (b builder) reshape(x *ir.Value, shape ...int64) *ir.Value {
	all := func(n int) types.Attr {
		if n == 0 {
			return types.Array{}
		}
		group := make(types.Array, n)
		for i := range group {
			group[i] = integer(int64(i))
		}
		return types.Array{group}
	}
	n := int64(1)
	for _, s := range sizes(x) {
		n *= s
	}
	if r := x.Tensor().Rank(); r > 1 {
		x = b.make("tensor.collapse_shape", tensorOf(x.Elem(), n), values{x}, attr("reassociation", all(r)))
	}
	r := x.Tensor().Rank()
	switch {
	case len(shape) == r:
	case len(shape) == 0:
		x = b.make("tensor.collapse_shape", tensorOf(x.Elem()), values{x}, attr("reassociation", types.Array{}))
	default:
		groups := all(len(shape))
		if r == 0 {
			groups = types.Array{}
		}
		x = b.make("tensor.expand_shape", tensorOf(x.Elem(), shape...), values{x},
			attr("reassociation", groups), attr("static_output_shape", types.IntArray(types.I64, shape...)))
	}
	return x
}

// nest is loops that count to each of sizes, one in another, and carry values.
func (b builder) nest(sizes []int64, carried values, body func(in builder, at, carried values) values) values {
	return b.nested(sizes, nil, carried, body)
}

func (b builder) nested(sizes []int64, at, carried values, body func(in builder, at, carried values) values) values {
	if len(sizes) == 0 {
		return body(b, at, carried)
	}
	o := b.Op("scf.for", append(values{b.index(0), b.index(sizes[0]), b.index(1)}, carried...), nil, ir.Types(carried)...)
	block := o.AddRegion()
	i := block.AddArg("", types.Scalar{Elem: types.Index})
	for _, v := range carried {
		block.AddArg("", v.Type)
	}
	in := builder{&ir.Builder{Block: block, At: b.At}}
	in.Op("scf.yield", in.nested(sizes[1:], append(append(values{}, at...), i), block.Args[1:], body), nil)
	return o.Results
}
