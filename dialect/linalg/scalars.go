package linalg

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/types"
	"dmir/syntax/ast"
)

// Ops of regions that are no arithmetic: comparisons, choices, and the numbers of loops.

// directions are the predicates of comparisons, and the directions that they are of numbers.
var directions = map[string]string{
	"oeq": "eq", "une": "ne", "olt": "lt", "ole": "le", "ogt": "gt", "oge": "ge",
	"eq": "eq", "ne": "ne", "slt": "lt", "sle": "le", "sgt": "gt", "sge": "ge",
	"ult": "lt", "ule": "le", "ugt": "gt", "uge": "ge",
}

// compared is a comparison in a region.
func (x *function) compared(o *ast.Op, in []*scalar) (*scalar, error) {
	m := comparison.FindStringSubmatch(x.text(o))
	if m == nil || len(in) != 2 {
		return nil, unsupported(o, "this comparison is not imported")
	}
	unsigned := strings.HasPrefix(m[1], "u") && m[1] != "une"
	for _, v := range in {
		unsigned = unsigned && !v.index
		if v.former || v.into != "" {
			return nil, unsupported(o, "a comparison of a partial sum is not imported")
		}
	}
	if directions[m[1]] == "" || unsigned {
		return nil, unsupported(o, "the comparison %s is not imported", m[1])
	}
	a, b := x.paired(in[0], in[1])
	order := slices.Clone(a.letters)
	for _, c := range b.letters {
		if !slices.Contains(order, c) {
			order = append(order, c)
		}
	}
	if sparse(a) || sparse(b) {
		return nil, unsupported(o, "a comparison of sparse tensors outside of sparse_tensor.select, unary and binary is not imported")
	}
	v := x.b.Value("compare", []*ir.Value{x.along(a, order), x.along(b, order)}, []types.Named{{Name: "direction", Value: types.Keyword(directions[m[1]])}})
	return &scalar{factors: []term{{v, order}}, elem: types.I1}, nil
}

// paired are a and b as terms, a number with the other's element type.
func (x *function) paired(a, b *scalar) (term, term) {
	typed := func(v, other *scalar) term {
		if len(v.factors) == 0 {
			n := *v
			n.elem = other.elem
			v = &n
		}
		return x.one(v)
	}
	return typed(a, b), typed(b, a)
}

// selected is arith.select in a region.
func (x *function) selected(o *ast.Op, in []*scalar, l *loops) (*scalar, error) {
	if len(in) != 3 || slices.ContainsFunc(in, func(v *scalar) bool { return v.former || v.into != "" }) || len(in[0].factors) == 0 {
		return nil, unsupported(o, "arith.select of a partial sum or a number is not imported")
	}
	a, b := x.paired(in[1], in[2])
	c := x.one(in[0])
	if sparse(a) && sparse(b) && !sparse(c) && slices.Equal(a.letters, b.letters) {
		return x.chosen(o, l, c, a, b)
	}
	if slices.ContainsFunc([]term{a, b, c}, sparse) {
		return nil, unsupported(o, "arith.select of sparse tensors outside of sparse_tensor.unary and binary is not imported")
	}
	if x.b.Err() != nil {
		return in[1], nil
	}
	return &scalar{factors: []term{x.three(c, a, b)}, elem: a.v.Elem()}, nil
}

// chosen is a where c, a dense mask, holds, and b elsewhere: what one of them stores.
func (x *function) chosen(o *ast.Op, l *loops, c, a, b term) (*scalar, error) {
	s := &semiring{function: x, o: o, l: l}
	first, second, _ := s.merge("union", a, b)
	if x.b.Err() != nil {
		return of(a), nil
	}
	p := term{first, a.letters}
	mask, err := x.atPattern(o, p, of(term{x.b.Convert(c.v, types.I8), c.letters}))
	if err != nil {
		return nil, err
	}
	is := x.b.Value("compare", []*ir.Value{x.one(mask).v, x.b.Splat(&types.Tensor{Elem: types.I8}, 0)}, []types.Named{{Name: "direction", Value: types.Keyword("ne")}})
	return of(s.packed(p, x.b.Value("select", []*ir.Value{is, last(x.components(first)), last(x.components(second))}, nil))), nil
}

// place is linalg.index: the number of a loop's iteration.
func (x *function) place(o *ast.Op, l *loops) (*scalar, error) {
	number := integers(x.attrs(o)["dim"])
	if at := regexp.MustCompile(`linalg\.index\s+(\d+)`).FindStringSubmatch(x.text(o)); at != nil {
		n, err := strconv.Atoi(at[1])
		if err != nil {
			return nil, unsupported(o, "this linalg.index is not imported")
		}
		number = []int{n}
	}
	if len(number) != 1 || number[0] >= len(l.sizes) || l.sizes[number[0]].IsZero() {
		return nil, unsupported(o, "this linalg.index is not imported")
	}
	d := number[0]
	v := x.b.Value("iota", nil, []types.Named{{Name: "dim", Value: types.Int{}}}, &types.Tensor{Elem: types.I64, Shape: l.sizes[d : d+1]})
	return &scalar{factors: []term{{v, []int{d}}}, elem: types.I64, index: true}, nil
}

// within is env with what regions in it define.
func within(env map[string]*scalar) map[string]*scalar {
	if env == nil {
		return map[string]*scalar{}
	}
	return maps.Clone(env)
}
