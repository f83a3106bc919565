package op

import (
	"fmt"
	"strings"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/types"
	"dmir/syntax/diag"
)

// Element types by what ops can do with them.
var (
	floats    = []types.Elem{types.F64, types.F32, types.F16, types.BF16}
	float8s   = []types.Elem{types.F8E4M3FN, types.F8E5M2}
	integers  = []types.Elem{types.I64, types.I32, types.I16, types.I8, types.UI64, types.UI32, types.UI16, types.UI8}
	int4s     = []types.Elem{types.I4, types.UI4}
	bools     = []types.Elem{types.I1}
	signed    = []types.Elem{types.I64, types.I32, types.I16, types.I8}
	indexes   = []types.Elem{types.I64, types.I32, types.UI64, types.UI32}
	numeric   = join(floats, integers)
	signedNum = join(floats, signed)
	logical   = join(integers, bools)
	ordered   = join(floats, integers, bools)
	multiply  = join(floats, float8s, integers)
	full      = join(floats[:2], integers)
	storable  = join(floats, float8s, integers, int4s, bools)
)

func join(lists ...[]types.Elem) []types.Elem {
	var out []types.Elem
	for _, l := range lists {
		out = append(out, l...)
	}
	return out
}

// asTensor sees a type as a tensor: a bare element type, as values in scalar
// regions have, is a tensor of rank 0. nil for anything else.
func asTensor(t types.Type) *types.Tensor {
	switch t := t.(type) {
	case *types.Tensor:
		return t
	case types.Scalar:
		return &types.Tensor{Elem: t.Elem, At: types.Placement{Space: types.HBM}}
	}
	return nil
}

// in and out are operand and result i as tensors; of an op with too few or with
// other types a rank-0 tensor of no element type, so that cost of a broken op
// is 0 and not a crash.
func in(o *ir.Op, i int) *types.Tensor {
	if i < len(o.Operands) {
		if t := asTensor(o.Operands[i].Type); t != nil {
			return t
		}
	}
	return &types.Tensor{}
}

func out(o *ir.Op, i int) *types.Tensor {
	if i < len(o.Results) {
		if t := asTensor(o.Results[i].Type); t != nil {
			return t
		}
	}
	return &types.Tensor{}
}

// scalars reports whether every operand is a bare element type, as in the
// region of dm.map.
func scalars(o *ir.Op) bool {
	for _, v := range o.Operands {
		if _, ok := v.Type.(types.Scalar); !ok {
			return false
		}
	}
	return len(o.Operands) > 0
}

// like gives t back as a bare element type where o works on those.
func like(o *ir.Op, t *types.Tensor) types.Type {
	if scalars(o) && t.Rank() == 0 {
		return types.Scalar{Elem: t.Elem}
	}
	return t
}

// tensor is a result type of the given shape in the memory space of t.
func tensor(t *types.Tensor, elem types.Elem, shape ...dim.Dim) *types.Tensor {
	r := t.With(shape...)
	r.Elem = elem
	return r
}

func one(t types.Type) []types.Type { return []types.Type{t} }

func problem(code string, operand int, format string, args ...any) *Problem {
	return &Problem{Code: code, Operand: operand, Msg: fmt.Sprintf(format, args...)}
}

func attrProblem(code, attr, format string, args ...any) *Problem {
	return &Problem{Code: code, Operand: -1, Attr: attr, Msg: fmt.Sprintf(format, args...)}
}

func (p *Problem) help(format string, args ...any) *Problem {
	p.Help = fmt.Sprintf(format, args...)
	return p
}

// sameDim reports whether two sizes are equal as far as can be known: they are
// the same number or formula, or one of them is unnamed.
func sameDim(a, b dim.Dim) bool { return a.Equal(b) || a.IsUnnamed() || b.IsUnnamed() }

// sameShape reports whether two shapes agree in rank and, by sameDim, in every size.
func sameShape(a, b []dim.Dim) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !sameDim(a[i], b[i]) {
			return false
		}
	}
	return true
}

// Compatible reports whether a result written as written may stand for an
// inferred one: same element type, shape (sameShape) and memory space. The
// layout is the writer's choice.
func Compatible(inferred, written types.Type) bool {
	if g, ok := inferred.(*types.Tuple); ok && types.SameStructure(inferred, written) {
		for i, m := range g.Of {
			if !Compatible(m, written.(*types.Tuple).Of[i]) {
				return false
			}
		}
		return true
	}
	a, ok := inferred.(*types.Tensor)
	b, ok2 := written.(*types.Tensor)
	if !ok || !ok2 {
		return types.Equal(inferred, written)
	}
	return a.Elem == b.Elem && sameShape(a.Sizes(), b.Sizes()) && a.Format.Alike(b.Format) && a.At.In() == b.At.In()
}

// known picks the most specific size: a number, else a named formula, else any.
func known(a, b dim.Dim) dim.Dim {
	switch {
	case a.IsConst():
		return a
	case b.IsConst() || a.IsUnnamed():
		return b
	}
	return a
}

// unify merges two shapes of one rank dimension by dimension.
func unify(a, b []dim.Dim) []dim.Dim {
	r := make([]dim.Dim, len(a))
	for i := range a {
		r[i] = known(a[i], b[i])
	}
	return r
}

// shapeText is a shape for people: "[8, 512, n + 1]", "[]" for rank 0; an
// unnamed size is "?".
func shapeText(shape []dim.Dim) string {
	s := make([]string, len(shape))
	for i, d := range shape {
		s[i] = dimText(d)
	}
	return "[" + strings.Join(s, ", ") + "]"
}

// dimText is a size for people: a number, a formula, or "?" for an unnamed one.
func dimText(d dim.Dim) string {
	if d.IsUnnamed() {
		return "?"
	}
	return d.String()
}

// broadcastTwo is NumPy's rule: shapes are aligned at the last dimension, and
// sizes agree or one of them is 1.
func broadcastTwo(a, b []dim.Dim) ([]dim.Dim, bool) {
	if len(a) < len(b) {
		a, b = b, a
	}
	r := make([]dim.Dim, len(a))
	off := len(a) - len(b)
	copy(r, a[:off])
	for i, e := range b {
		d := a[off+i]
		switch {
		case isOne(d):
			r[off+i] = e
		case isOne(e):
			r[off+i] = d
		case sameDim(d, e):
			r[off+i] = known(d, e)
		default:
			return nil, false
		}
	}
	return r, true
}

func isOne(d dim.Dim) bool {
	n, ok := d.Int()
	return ok && n == 1
}

// broadcastAll is the common shape of o's operands from number first on.
func broadcastAll(o *ir.Op, first int) ([]dim.Dim, *Problem) {
	shape := []dim.Dim{}
	for i := first; i < len(o.Operands); i++ {
		s, ok := broadcastTwo(shape, in(o, i).Shape)
		if !ok {
			return nil, problem("DM110", i, "shapes %s and %s do not broadcast", shapeText(shape), shapeText(in(o, i).Shape)).
				help("sizes must be equal or 1, aligned at the last dimension; reshape or broadcast one of them")
		}
		shape = s
	}
	return shape, nil
}

// sameElems checks that operands first … agree in element type.
func sameElems(o *ir.Op, first int) *Problem {
	for i := first + 1; i < len(o.Operands); i++ {
		if a, b := in(o, first).Elem, in(o, i).Elem; a != b {
			return problem("DM111", i, "element types %s and %s differ", a, b).
				help("convert one of them with dm.convert")
		}
	}
	return nil
}

// dimOf reads the dimension in attribute name of an operand of the given shape.
func dimOf(o *ir.Op, name string, shape []dim.Dim) (int, *Problem) {
	d, ok := Dim(o, name, len(shape))
	if !ok {
		return 0, dimProblem(name, Int(o, name), shape)
	}
	return d, nil
}

func dimProblem(attr string, n int64, shape []dim.Dim) *Problem {
	p := attrProblem("DM112", attr, "%s = %d is not a dimension of %s", attr, n, shapeText(shape))
	if r := len(shape); r == 0 {
		return p.help("the operand is a scalar and has no dimensions")
	} else {
		return p.help("use %d to %d, or %d to -1 from the back", 0, r-1, -r)
	}
}

// dimsOf reads the list of dimensions in attribute name; all where absent.
func dimsOf(o *ir.Op, name string, shape []dim.Dim) ([]int, *Problem) {
	ds, ok := Dims(o, name, len(shape))
	if ok {
		return ds, nil
	}
	seen := map[int]bool{}
	for _, n := range Ints(o, name) {
		d, ok := wrapDim(n, len(shape))
		if !ok {
			return nil, dimProblem(name, n, shape)
		}
		if seen[d] {
			return nil, attrProblem("DM113", name, "%s names dimension %d of %s twice", name, d, shapeText(shape)).
				help("name every dimension at most once")
		}
		seen[d] = true
	}
	return nil, attrProblem("DM113", name, "%s is not a list of dimensions of %s", name, shapeText(shape))
}

// listOf reads a list with one integer for each of n dimensions; otherwise
// fills it where the attribute is absent.
func listOf(o *ir.Op, name string, n int, otherwise, least int64) ([]int64, *Problem) {
	if Attr(o, name) == nil {
		l := make([]int64, n)
		for i := range l {
			l[i] = otherwise
		}
		return l, nil
	}
	l := Ints(o, name)
	if len(l) != n {
		return nil, attrProblem("DM114", name, "%s has %d entries for %d dimensions", name, len(l), n).
			help("write one entry for each dimension")
	}
	for _, v := range l {
		if v < least {
			return nil, attrProblem("DM115", name, "%s contains %d; the minimum is %d", name, v, least)
		}
	}
	return l, nil
}

// pairsOf reads a list with a pair of integers ≥ 0 for each of n dimensions;
// zeros where absent.
func pairsOf(o *ir.Op, name string, n int) ([][2]int64, *Problem) {
	if Attr(o, name) == nil {
		return make([][2]int64, n), nil
	}
	ps := Pairs(o, name)
	if len(ps) != n {
		return nil, attrProblem("DM114", name, "%s has %d pairs for %d dimensions", name, len(ps), n).
			help("write [low, high] for each dimension: %s = [[1, 1], [0, 0]]", name)
	}
	for _, p := range ps {
		if p[0] < 0 || p[1] < 0 {
			return nil, attrProblem("DM115", name, "%s contains [%d, %d]; padding is never negative", name, p[0], p[1]).
				help("cut with dm.slice instead")
		}
	}
	return ps, nil
}

func rankAtLeast(o *ir.Op, operand, rank int, what string) *Problem {
	if t := in(o, operand); t.Rank() < rank {
		return problem("DM117", operand, "%s needs at least %s, but has shape %s", what, diag.Count(rank, "dimension"), shapeText(t.Shape))
	}
	return nil
}

func rankIs(o *ir.Op, operand, rank int, what string) *Problem {
	if t := in(o, operand); t.Rank() != rank {
		return problem("DM117", operand, "%s has shape %s where %s expected", what, shapeText(t.Shape), diag.CountAre(rank, "dimension"))
	}
	return nil
}

// wide is the element type in which half precision is computed.
func wide(e types.Elem) types.Elem {
	if e.IsFloat() && e.Bytes() < 4 {
		return types.F32
	}
	return e
}

// indexElem is the integer type in which positions are written: the written
// result's where it is one of i64 and i32, otherwise i64.
func indexElem(o *ir.Op, result int) types.Elem {
	if e := out(o, result).Elem; e == types.I32 {
		return e
	}
	return types.I64
}
