package linalg

import (
	"math"
	"slices"
	"strings"

	"dmir/compile/pass"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// A sparse tensor is one of sparse_tensor: its type states the format, but not for how many
// elements there is room. An op on sparse tensors is a linalg.generic, of which MLIR's
// sparsifier makes loops over what is stored; where a function of scalars says nothing
// about elements that are not, sparse_tensor.unary, binary and reduce do.

// Sparse decides how the sparse tensors of u's function are written: as such where all of its
// ops have a form for them, else, with a warning that names one without, as their components.
func Sparse(u *pass.Unit) {
	fs := pass.Reached(u.Module, u.Func)
	found, without := false, (*ir.Op)(nil)
	for _, f := range fs {
		if f.Body == nil {
			continue
		}
		for _, t := range append(ir.Types(f.Args), f.Results...) {
			s, ok := t.(*types.Tensor)
			found = found || ok && s.Format != nil
		}
		ir.Walk(f.Body.Ops, func(o *ir.Op) bool {
			is := op.IsSparse(o)
			found = found || is
			last := o.Name == op.Return || o.Name == op.Call
			if without == nil && (op.Grouped(o) || o.Name == op.Grad || is && !last && sparseForm(o) == nil) {
				without = o
			}
			return true
		})
	}
	switch {
	case !found:
	case u.Options.Grad:
		u.Warn(pass.Errorf(u.Func.Op, "DM809", "sparse tensors are written as their components: gradients are computed by these"))
	case without != nil:
		u.Warn(pass.Errorf(without, "DM809", "sparse tensors are written as their components: %s has no form for them", without.Name))
	default:
		u.Options.Sparse = true
	}
}

// stored is the type of a tensor that is stored as t is, with elements of e.
func stored(t *types.Tensor, e types.Elem) *types.Tensor {
	return &types.Tensor{Elem: e, Shape: t.Shape, Enc: t.Format.Encoding(t.Rank())}
}

// sparseForm writes o, an op on sparse tensors; nil where it has no form.
func sparseForm(o *ir.Op) func(c *call) (values, error) {
	d := op.Of(o)
	into := false
	for k, vs := range [2][]*ir.Value{o.Operands, o.Results} {
		for _, v := range vs {
			t := v.Tensor()
			if t == nil || t.Format != nil && !upstream(t) {
				return nil
			}
			into = into || k == 1 && t.Format != nil
		}
	}
	switch {
	case d == nil || d.Sparse == nil, into && slices.Contains([]string{"einsum", "matmul", "reduce"}, d.Name), d.Name == "softmax" && blocked(o.Operands[0].Tensor().Format):
		return nil
	case d.Name == "reduce" && op.Str(o, "kind") != "add":
		// The loops visit what is stored alone, where other reductions see the zeros as well.
		if op.Str(o, "over") != "stored" || blocked(o.Operands[0].Tensor().Format) {
			return nil
		}
		return reducedStored
	case sparseForms[d.Name] != nil:
		return sparseForms[d.Name]
	case elements[d.Name] != nil && len(o.Operands) == 1:
		return eachStored
	case elements[d.Name] != nil && len(o.Operands) == 2:
		return merged
	}
	return nil
}

// upstream reports whether MLIR's sparsifier has code for elements and format of t.
func upstream(t *types.Tensor) bool {
	return t.Elem.Bits() >= 8 && !slices.ContainsFunc(t.Format.Levels, func(l types.Level) bool { return l.Kind == types.StructuredLevel })
}

// blocked reports whether two levels of f walk a dimension. The sparsifier begins a reduction by
// a region again in each iteration of the outer one.
func blocked(f *types.Format) bool {
	return slices.ContainsFunc(f.Levels, func(l types.Level) bool { return l.Div > 0 })
}

// sparseForms are those that element-wise ops do not have in common.
var sparseForms map[string]func(c *call) (values, error)

func init() {
	sparseForms = map[string]func(c *call) (values, error){
		"einsum": contraction, "matmul": contraction, "reduce": reduction, "stop_gradient": whole,
		"convert_format": reformatted, "transpose": transposed, "sample": sampled, "softmax": normalized, "merge": aligned,
	}
}

// like is the type of result 0, with elements of e.
func (c *call) like(e types.Elem) *types.Tensor { return stored(c.o.Results[0].Tensor(), e) }

// reformatted is an op of its own there.
func reformatted(c *call) (values, error) {
	t, err := c.typ(c.o, c.o.Results[0].Type)
	if err != nil {
		return nil, err
	}
	return values{c.make("sparse_tensor.convert", t, c.in)}, nil
}

// transposed reads the same levels, which walk other dimensions.
func transposed(c *call) (values, error) {
	t := c.like(c.in[0].Elem())
	names, parallel := loops(t.Rank())
	dims, ok := op.Dims(c.o, "dims", t.Rank())
	if !ok {
		return nil, refuse(c.o, "dm.transpose without its dimensions")
	}
	from := make([]string, t.Rank())
	for i, d := range dims {
		from[d] = names[i]
	}
	return c.generic(c.in, values{c.empty(t)}, [][]string{from, names}, parallel, func(_ builder, x values) values { return x[:1] }), nil
}

// mapStored is a tensor stored as x is whose elements are f of those that x stores.
func (b builder) mapStored(x *ir.Value, t *types.Tensor, f func(in builder, x *ir.Value) *ir.Value) *ir.Value {
	names, parallel := loops(t.Rank())
	return b.generic(values{x}, values{b.empty(t)}, [][]string{names, names}, parallel, func(in builder, v values) values {
		return values{in.semiring("unary", t.Elem, v[:1], func(in builder, v values) *ir.Value { return f(in, v[0]) }, nil)}
	})[0]
}

// semiring is sparse_tensor.unary or binary: its regions say what the result is where the
// operands store an element (present, overlap), and where they do not; nil: nothing.
func (b builder) semiring(name string, e types.Elem, x values, regions ...func(in builder, x values) *ir.Value) *ir.Value {
	o := b.Op("sparse_tensor."+name, x, nil, types.Scalar{Elem: e})
	for i, f := range regions {
		if f == nil {
			o.Regions = append(o.Regions, &ir.Region{Op: o})
			continue
		}
		block, args := o.AddRegion(), x
		switch {
		case name == "unary" && i == 1:
			args = nil
		case name == "binary" && i > 0:
			args = x[i-1 : i]
		case name == "reduce":
			args = x[:2]
		}
		in := builder{&ir.Builder{Block: block, At: b.At}}
		for _, a := range args {
			block.AddArg("", types.Scalar{Elem: a.Elem()})
		}
		in.Op("sparse_tensor.yield", values{f(in, block.Args)}, nil)
	}
	return o.Results[0]
}

// eachStored is an element-wise op of one operand, of the elements that are stored.
func eachStored(c *call) (values, error) {
	d, to := op.Of(c.o), c.o.Results[0].Elem()
	return values{c.mapStored(c.in[0], c.like(signless(to)), func(in builder, x *ir.Value) *ir.Value {
		return in.element(c.o, elements[d.Name], values{x}, to)
	})}, nil
}

// merged is an element-wise op of two operands: of two sparse ones where one of them stores an
// element, or, where 0 makes the result 0 and where one is dense, both.
func merged(c *call) (values, error) {
	d, to := op.Of(c.o), c.o.Results[0].Elem()
	it := d.Maps(c.o)
	f := func(in builder, x ...*ir.Value) *ir.Value { return in.element(c.o, elements[d.Name], x, to) }
	both := func(in builder, x values) *ir.Value { return f(in, x...) }
	var left, right func(in builder, x values) *ir.Value
	if slices.Contains([]string{"add", "sub", "max", "min"}, d.Name) {
		left = func(in builder, x values) *ir.Value { return f(in, x[0], in.number(x[0].Elem(), 0)) }
		right = func(in builder, x values) *ir.Value { return f(in, in.number(x[0].Elem(), 0), x[0]) }
	}
	return c.generic(c.in, values{c.empty(c.like(signless(to)))}, affine(it.Operands, it.Results), it.Reduces, func(in builder, x values) values {
		return values{in.semiring("binary", signless(to), x[:2], both, left, right)}
	}), nil
}

// sampled sums products at the places that the first operand stores, of whose elements it
// reads none.
func sampled(c *call) (values, error) {
	eq, problem := op.SampleEquation(c.o)
	if problem != nil {
		return nil, refuse(c.o, "%s", problem.Msg)
	}
	letters := func(s string) []string {
		e := make([]string, len(s))
		for i := range s {
			e[i] = expr(strings.IndexByte(eq.Letters, s[i]), 1, 0)
		}
		return e
	}
	maps := [][]string{letters(eq.Output)}
	for _, s := range eq.Inputs {
		maps = append(maps, letters(s))
	}
	maps = append(maps, letters(eq.Output))
	_, reduces := loops(len(eq.Letters))
	for i := range reduces {
		reduces[i] = i >= len(eq.Output)
	}
	e, to := c.elem(1), c.o.Results[0].Elem()
	acc := sum(c.o, to)
	sums := slices.Contains(reduces, true)
	y := c.generic(c.in, values{c.empty(c.like(acc))}, maps, reduces, func(b builder, x values) values {
		product := b.cast(x[1], e, acc)
		for _, v := range x[2 : len(x)-1] {
			product = b.combine("mul", e, product, b.cast(v, e, acc))
		}
		at := b.semiring("binary", acc, values{x[0], product}, func(_ builder, x values) *ir.Value { return x[1] }, nil, nil)
		if sums {
			at = b.combine("add", e, x[len(x)-1], at)
		}
		return values{at}
	})[0]
	if acc != signless(to) || sums && c.widened() {
		y = c.mapStored(y, c.like(signless(to)), func(in builder, x *ir.Value) *ir.Value { return in.cast(x, acc, to) })
	}
	return values{y}, nil
}

// widened reports whether the only use of a result makes it dense. The sparsifier writes that
// and the loops that compute the result as one, into memory that it sets to 0 only where
// the loops add nothing up: of sums a copy stands between.
func (c *call) widened() bool {
	us := c.o.Results[0].Uses
	return len(us) == 1 && us[0].Op.Name == op.Prefix+"convert_format"
}

// normalized is softmax over the stored elements of a row: their maximum, exponentials, sum
// and quotients.
func normalized(c *call) (values, error) {
	to := c.o.Results[0].Tensor()
	d, ok := op.Dim(c.o, "dim", to.Rank())
	if !ok {
		return nil, refuse(c.o, "dm.softmax without its dimension")
	}
	e := to.Elem
	acc := wide(e)
	names, parallel := loops(to.Rank())
	_, reduces := loops(to.Rank())
	reduces[d] = true
	rest := slices.Delete(slices.Clone(names), d, d+1)
	shape := slices.Delete(sizes(c.o.Results[0]), d, d+1)
	over := func(kind string, x *ir.Value, first float64) *ir.Value {
		out := c.filled(tensorOf(acc, shape...), c.number(acc, first))
		if kind != "add" {
			return c.overStored(kind, x, out, c.number(acc, first), [][]string{names, rest}, reduces)
		}
		return c.generic(values{x}, values{out}, [][]string{names, rest}, reduces, func(b builder, v values) values {
			return values{b.combine(kind, acc, v[1], v[0])}
		})[0]
	}
	with := func(x, y *ir.Value, t *types.Tensor, f func(in builder, x values) *ir.Value) *ir.Value {
		return c.generic(values{x, y}, values{c.empty(t)}, [][]string{names, rest, names}, parallel, func(b builder, v values) values {
			return values{b.semiring("binary", t.Elem, v[:2], f, nil, nil)}
		})[0]
	}
	x := c.in[0]
	if acc != e {
		x = c.mapStored(x, c.like(acc), func(in builder, x *ir.Value) *ir.Value { return in.cast(x, e, acc) })
	}
	x = with(x, over("max", x, math.Inf(-1)), c.like(acc), func(in builder, v values) *ir.Value {
		return in.make("math.exp", v[0].Type, values{in.two("arith.subf", v[0], v[1])})
	})
	return values{with(x, over("add", x, 0), c.like(signless(e)), func(in builder, v values) *ir.Value {
		return in.cast(in.two("arith.divf", v[0], v[1]), acc, e)
	})}, nil
}
