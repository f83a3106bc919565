package linalg

import (
	"errors"
	"slices"
	"strings"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/syntax/ast"
	"dmir/syntax/diag"
)

// scalar is a value in the region of a linalg.generic: a product of tensors that each vary
// along some loops, or a number; what is added to the result's former value, by the op
// called into.
type scalar struct {
	factors []term
	number  float64 // where there are no factors
	elem    types.Elem
	into    string
	former  bool // the result's former value itself
	// ofStored: what is not stored takes no part in the reduction into.
	ofStored bool
	index    bool // it is the number of an iteration
}

// term is a tensor with the loop that each of its dimensions follows.
type term struct {
	v       *ir.Value
	letters []int
}

// functions are the scalar ops and the element-wise ops that they are.
var functions = map[string]string{
	"arith.addf": "add", "arith.addi": "add", "arith.subf": "sub", "arith.subi": "sub", "arith.mulf": "mul", "arith.muli": "mul", "arith.divf": "div",
	"arith.maximumf": "max", "arith.maxsi": "max", "arith.minimumf": "min", "arith.minsi": "min", "arith.negf": "neg",
	"math.absf": "abs", "math.exp": "exp", "math.expm1": "expm1", "math.log": "log", "math.log1p": "log1p", "math.sqrt": "sqrt", "math.rsqrt": "rsqrt",
	"math.tanh": "tanh", "math.sin": "sin", "math.cos": "cos", "math.erf": "erf", "math.floor": "floor", "math.ceil": "ceil", "math.absi": "abs",
	"arith.andi": "and", "arith.ori": "or", "arith.xori": "xor", "arith.remsi": "rem",
}

// binary are those of functions that take two operands.
var binary = []string{"add", "sub", "mul", "div", "max", "min", "and", "or", "xor", "rem"}

// conversions are those that keep a number as far as it fits.
var conversions = []string{"arith.extf", "arith.truncf", "arith.sitofp", "arith.extsi", "arith.index_cast", "arith.trunci", "arith.fptosi"}

// reductions are the ops by which loops may reduce.
var reductions = []string{"add", "mul", "max", "min"}

// generic imports a linalg.generic, or a named op that is a sum of products.
func (x *function) generic(o *ast.Op) error {
	l, err := x.loopsOf(o)
	if err != nil {
		return err
	}
	if len(l.maps) != len(o.Operands) || len(o.Results) != 1 {
		return unsupported(o, "%s with %d results is not imported", o.Name, len(o.Results))
	}
	last := len(o.Operands) - 1
	former, err := x.tensor(o, last)
	if err != nil {
		return err
	}
	if former.t.Rank() != len(l.maps[last]) {
		return unsupported(o, "the map of the result of %s has %d dimensions", o.Name, len(l.maps[last]))
	}
	for _, m := range l.maps {
		sorted := slices.Sorted(slices.Values(m))
		if len(slices.Compact(sorted)) != len(m) || slices.Contains(m, -1) {
			return unsupported(o, "%s with a map that has a dimension twice, or a constant, is not imported", o.Name)
		}
	}
	y := &scalar{elem: former.t.Elem, into: "add"}
	l.sizes = make([]dim.Dim, len(l.reduces))
	for i, u := range o.Operands {
		for k, n := range x.shape(u.Name) {
			if k < len(l.maps[i]) {
				l.sizes[l.maps[i][k]] = n
			}
		}
	}
	ins := make([]*scalar, len(o.Operands))
	for i := range o.Operands {
		v, err := x.of(o, i)
		if err != nil {
			return err
		}
		switch {
		case i == last:
			ins[i] = &scalar{former: true, elem: former.t.Elem}
		case v.t == nil && !v.index:
			ins[i] = &scalar{number: v.number, elem: former.t.Elem}
		case v.t == nil || len(l.maps[i]) != v.t.Rank():
			return unsupported(o, "operand %d of %s is not imported", i, o.Name)
		default:
			ins[i] = &scalar{factors: []term{{x.built(v), l.maps[i]}}, elem: v.t.Elem}
			y.factors = append(y.factors, ins[i].factors...)
		}
	}
	if o.Name == "linalg.generic" {
		if len(o.Regions) != 1 || len(o.Regions[0].Blocks) != 1 {
			return unsupported(o, "linalg.generic without a region of one block is not imported")
		}
		if y, err = x.region(o.Regions[0].Blocks[0], ins, l, former, nil); err != nil {
			return err
		}
	}
	return x.result(o, y, l, former)
}

// region is what a block of scalar ops yields, in which those of the regions around it are known.
func (x *function) region(b *ast.Block, args []*scalar, l *loops, former *value, outer map[string]*scalar) (*scalar, error) {
	env := within(outer)
	for i, a := range b.Args {
		if i < len(args) {
			env[a.Name] = args[i]
		}
	}
	sums := slices.Contains(l.reduces, true)
	for _, o := range b.Ops {
		var in []*scalar
		for _, u := range o.Operands {
			v := env[u.Name]
			if v == nil {
				outer := x.values[u.Name]
				if outer == nil || outer.t != nil || outer.index {
					return nil, unsupported(o, "%s in a region is not imported", u.Name)
				}
				v = &scalar{number: outer.number}
			}
			if v.former && !sums {
				v = &scalar{factors: []term{{x.built(former), l.maps[len(l.maps)-1]}}, elem: v.elem}
			}
			if x.pattern != nil {
				var err error
				if v, err = x.atPattern(o, *x.pattern, v); err != nil {
					return nil, err
				}
			}
			in = append(in, v)
		}
		if o.Name == "linalg.yield" || o.Name == "sparse_tensor.yield" {
			if len(in) != 1 {
				return nil, unsupported(o, "a region that yields %d values is not imported", len(in))
			}
			return in[0], nil
		}
		var y *scalar
		var err error
		switch {
		case len(o.Results) != 1:
			err = unsupported(o, "%s in a region is not imported", diag.Name(o.Name))
		case strings.HasPrefix(o.Name, "sparse_tensor."):
			y, err = x.semiring(o, in, l, former, env)
		case o.Name == "linalg.index":
			y, err = x.place(o, l)
		case o.Name == "arith.cmpi" || o.Name == "arith.cmpf":
			y, err = x.compared(o, in)
		case o.Name == "arith.select":
			y, err = x.selected(o, in, l)
		default:
			y, err = x.scalarOp(o, in)
		}
		if err != nil {
			return nil, err
		}
		env[o.Results[0].Name] = y
	}
	return nil, errors.New("a region without linalg.yield is not imported")
}

// scalarOp is one op of a region.
func (x *function) scalarOp(o *ast.Op, in []*scalar) (*scalar, error) {
	name := functions[o.Name]
	if len(o.Results) != 1 || o.Results[0].Count != 1 || x.b.Err() != nil {
		return nil, unsupported(o, "%s in a region is not imported", diag.Name(o.Name))
	}
	if o.Name == "arith.constant" {
		if err := x.constant(o); err != nil || x.values[o.Results[0].Name].t != nil {
			return nil, unsupported(o, "this constant is not imported")
		}
		return &scalar{number: x.values[o.Results[0].Name].number}, nil
	}
	ofBool := (o.Name == "arith.extui" || o.Name == "arith.uitofp") && len(in) == 1 && in[0].elem == types.I1
	if (slices.Contains(conversions, o.Name) || ofBool) && len(in) == 1 && !in[0].former && in[0].into == "" {
		to := types.InvalidElem
		text := o.Text(x.src, o.Sig)
		for _, sep := range []string{" to ", "->"} {
			if _, after, ok := strings.Cut(text, sep); ok {
				if t, err := x.typed(after); err == nil {
					to = types.ElemOf(t)
				}
				if strings.TrimSpace(after) == "index" {
					to = types.I64
				}
			}
		}
		if to == types.InvalidElem {
			return nil, unsupported(o, "%s of this type is not imported", o.Name)
		}
		t := x.one(in[0])
		return &scalar{factors: []term{{x.b.Convert(t.v, to), t.letters}}, elem: to}, nil
	}
	of := 1
	if slices.Contains(binary, name) {
		of = 2
	}
	if name == "" || len(in) != of {
		return nil, unsupported(o, "%s in a region is not imported", o.Name)
	}
	for i, v := range in {
		if v.into != "" || v.former && (len(in) != 2 || !slices.Contains(reductions, name)) {
			return nil, unsupported(o, "%s of a partial sum is not imported", o.Name)
		}
		if v.former {
			y := *in[1-i]
			if y.former {
				return nil, unsupported(o, "%s of a partial sum is not imported", o.Name)
			}
			y.into = name
			return &y, nil
		}
	}
	if name == "mul" && len(in[0].factors) > 0 && len(in[1].factors) > 0 {
		return &scalar{factors: slices.Concat(in[0].factors, in[1].factors), elem: in[0].elem}, nil
	}
	if len(in) == 1 {
		t := x.one(in[0])
		return &scalar{factors: []term{{x.b.Unary(name, t.v), t.letters}}, elem: in[0].elem}, nil
	}
	for i := range in {
		if len(in[i].factors) == 0 {
			n := *in[i]
			n.elem = in[1-i].elem
			in[i] = &n
		}
	}
	t := x.two(name, x.one(in[0]), x.one(in[1]))
	return &scalar{factors: []term{t}, elem: t.v.Elem()}, nil
}

// one is v as one tensor.
func (x *function) one(v *scalar) term {
	if len(v.factors) == 0 {
		return term{v: x.b.Splat(&types.Tensor{Elem: v.elem}, v.number)}
	}
	t := v.factors[0]
	for _, u := range v.factors[1:] {
		t = x.two("mul", t, u)
	}
	return t
}

// two is an element-wise op of a and b, whose dimensions are brought into one order: that of a
// sparse one, which stays as it is.
func (x *function) two(name string, a, b term) term {
	if x.b.Err() != nil {
		return a
	}
	order := slices.Clone(a.letters)
	if b.v.Tensor().Format != nil && a.v.Tensor().Format == nil || len(b.letters) > len(a.letters) && a.v.Tensor().Format == nil {
		order = slices.Clone(b.letters)
	}
	for _, c := range slices.Concat(a.letters, b.letters) {
		if !slices.Contains(order, c) {
			order = append(order, c)
		}
	}
	return term{x.b.Binary(name, x.along(a, order), x.along(b, order)), order}
}

// along is t with its dimensions in that order, and of size 1 where it has none.
func (x *function) along(t term, order []int) *ir.Value {
	if len(t.letters) == 0 || slices.Equal(t.letters, order) {
		return t.v
	}
	var dims []int
	for _, c := range order {
		if i := slices.Index(t.letters, c); i >= 0 {
			dims = append(dims, i)
		}
	}
	v := x.b.Transpose(t.v, dims...)
	first := slices.IndexFunc(order, func(c int) bool { return slices.Contains(t.letters, c) })
	if len(order)-first == len(dims) { // broadcasting aligns at the last
		return v
	}
	var shape []dim.Dim
	for _, c := range order[first:] {
		n := dim.Const(1)
		if i := slices.Index(t.letters, c); i >= 0 {
			n = t.v.Tensor().Shape[i]
		}
		shape = append(shape, n)
	}
	return x.b.Reshape(v, shape...)
}

// result makes y, what the region of o yields, the result of o.
func (x *function) result(o *ast.Op, y *scalar, l *loops, former *value) error {
	out := l.maps[len(l.maps)-1]
	if len(y.factors) == 0 && y.into == "" && !y.former {
		x.set(o, &value{t: former.t, number: y.number})
		return nil
	}
	if x.b.Err() != nil {
		return nil // which the caller reports
	}
	sums := slices.Contains(l.reduces, true)
	switch {
	case y.former || sums && y.into == "":
		return unsupported(o, "a region of %s that does not add to its result is not imported", o.Name)
	case len(y.factors) == 0:
		return unsupported(o, "a sum of numbers is not imported")
	}
	var v *ir.Value
	var err error
	if y.into != "" {
		v, err = x.reduced(o, y, l)
	} else {
		v, err = x.spread(o, x.one(y), out, former)
	}
	if err != nil {
		return err
	}
	if y.ofStored && former.t.Format != nil {
		return unsupported(o, "a reduction of what is stored with a sparse result is not imported")
	}
	if y.into != "" && (former.v != nil || former.number != 0 || y.into != "add") {
		v = x.b.Binary(y.into, x.built(former), x.stored(v, former.t.Format))
	}
	if x.b.Err() != nil {
		return nil // which the caller reports
	}
	if v = x.b.Convert(v, former.t.Elem); x.b.Err() == nil {
		v = x.stored(v, former.t.Format)
	}
	x.set(o, &value{v: v, t: v.Tensor()})
	return nil
}

// spread is t along the loops of the result.
func (x *function) spread(o *ast.Op, t term, out []int, former *value) (*ir.Value, error) {
	v := x.along(t, out)
	shape := x.shape(o.Results[0].Name)
	if have := v.Tensor(); have == nil || !slices.EqualFunc(have.Shape, shape, dim.Dim.Equal) {
		if len(t.letters) > len(out) {
			return nil, unsupported(o, "a region of %s that drops a loop is not imported", o.Name)
		}
		v = x.b.Value("broadcast", []*ir.Value{v}, nil, &types.Tensor{Elem: former.t.Elem, Shape: shape})
	}
	return v, nil
}

// reduced is what loops add up.
func (x *function) reduced(o *ast.Op, y *scalar, l *loops) (*ir.Value, error) {
	out := l.maps[len(l.maps)-1]
	var sparse []int
	used := map[int]bool{}
	for i, t := range y.factors {
		if t.v.Tensor().Format != nil {
			sparse = append(sparse, i)
		}
		for _, c := range t.letters {
			used[c] = true
		}
	}
	for c := range l.reduces {
		if !used[c] {
			return nil, unsupported(o, "a loop of %s along which nothing varies is not imported", o.Name)
		}
	}
	if y.into != "add" {
		t := x.one(y)
		var dims []int
		var rest []int
		for i, c := range t.letters {
			if l.reduces[c] {
				dims = append(dims, i)
			} else {
				rest = append(rest, c)
			}
		}
		attrs := []types.Named{{Name: "kind", Value: types.Keyword(y.into)}, {Name: "dims", Value: op.IntList(dims...)}}
		if y.ofStored {
			attrs = append(attrs, types.Named{Name: "over", Value: types.Keyword("stored")})
		}
		v := x.b.Value("reduce", []*ir.Value{t.v}, attrs)
		return x.along(term{v, rest}, out), nil
	}
	letters := func(m []int) string {
		var b strings.Builder
		for _, c := range m {
			b.WriteByte("ijklmnopqrstuvwxyzabcdefgh"[c%26])
		}
		return b.String()
	}
	if len(l.reduces) > 26 {
		return nil, unsupported(o, "%s of %d loops is not imported", o.Name, len(l.reduces))
	}
	einsum := func(name string, first []*ir.Value, ts []term) *ir.Value {
		var terms []string
		in := first
		for _, t := range ts {
			terms, in = append(terms, letters(t.letters)), append(in, t.v)
		}
		return x.b.Value(name, in, []types.Named{{Name: "equation", Value: types.Str(strings.Join(terms, ",") + "->" + letters(out))}})
	}
	if len(sparse) == 1 && slices.Equal(y.factors[sparse[0]].letters, out) && len(y.factors) > 1 { // sampled
		s := y.factors[sparse[0]].v
		rest := slices.Delete(slices.Clone(y.factors), sparse[0], sparse[0]+1)
		return x.b.Binary("mul", s, einsum("sample", []*ir.Value{s}, rest)), nil
	}
	return einsum("einsum", nil, y.factors), nil
}
