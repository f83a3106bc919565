package stablehlo

import (
	"fmt"
	"slices"
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/types"
	"dmir/syntax/ast"
)

// complexType is a tensor of complex numbers: one of their real and one of their
// imaginary parts.
type complexType struct{ part types.Type }

func (t complexType) parts() []types.Type { return []types.Type{t.part, t.part} }

func (complexType) suffixes() []string { return []string{".re", ".im"} }

func (complexType) with(parts []types.Type) compound { return complexType{parts[0]} }

func (t complexType) elem() string { return fmt.Sprintf("complex<%s>", types.ElemOf(t.part)) }

func (t complexType) String() string { return textOf(t.part, t.elem()) }

// complexNumber is a complex number by its parts, or a tensor of such numbers.
type complexNumber struct{ re, im *ir.Value }

// value is z as one value.
func (n *node) complexValue(z complexNumber) *ir.Value {
	return n.compounded(complexType{z.re.Type}, z.re, z.im)
}

// complexOf is v, which may be real, as a complex number.
func (n *node) complexOf(v *ir.Value) complexNumber {
	if ps := n.parts[v]; len(ps) == 2 {
		return complexNumber{ps[0], ps[1]}
	}
	n.must(v.Elem().IsFloat(), "DM142", "%s takes complex numbers, not %s", n.name, v.Type)
	zero := n.fill(v.Elem(), 0)
	if v.Tensor() != nil {
		zero = n.trailing(zero, n.shape(v))
	}
	return complexNumber{v, zero}
}

// complexOps are the ops on complex numbers, by StableHLO's names.
var complexOps map[string]conversion

// complexRegions are the ops with a region that combines complex numbers; those that are
// false only add them.
var complexRegions = map[string]bool{"reduce": true, "reduce_window": true, "scatter": true, "all_reduce": false, "reduce_scatter": false}

func init() {
	complexOps = map[string]conversion{
		"complex": makeComplex, "real": realPart, "imag": imaginaryPart, "convert": convertComplex,
		"constant": complexConstant, "iota": complexIota, "dynamic_iota": complexIota, "compare": compareComplex, "chlo.broadcast_compare": implicitParts(compareComplex),
		"abs": func(n *node) []*ir.Value { n.takes(1); return []*ir.Value{n.modulus(n.complexOf(n.in[0]))} },
		"fft": fft, "dot_general": bilinear(dotGeneral), "dot": bilinear(dot), "einsum": bilinear(einsum), "convolution": bilinear(convolution),
		"check.expect_eq_const": checkComplexConstant, "check.expect_almost_eq_const": checkComplexConstant, "check.expect_close_const": checkComplexConstant,
	}
	for name, f := range complexSolvers() {
		complexOps[name] = f
	}
	for name, f := range complexUnaries {
		complexOps[name] = func(n *node) []*ir.Value {
			n.takes(1)
			return []*ir.Value{n.complexValue(f(n, n.complexOf(n.in[0])))}
		}
	}
	for name, f := range complexBinaries {
		g := func(n *node) []*ir.Value {
			n.takes(2)
			n.must(alikeElems(n.in), "DM142", "the operands of %s have the types %s and %s", n.name, n.in[0].Type, n.in[1].Type)
			return []*ir.Value{n.complexValue(f(n, n.complexOf(n.in[0]), n.complexOf(n.in[1])))}
		}
		complexOps[name] = unbroadcastParts(g)
		complexOps["chlo.broadcast_"+name] = implicitParts(g)
	}
}

// complexes are the ops that turn numbers into complex ones or back, whose operands may be
// real.
func complexes() map[string]conversion {
	return map[string]conversion{"real": realPart, "imag": imaginaryPart, "complex": makeComplex, "fft": fft}
}

// alikeElems reports whether values have one element type.
func alikeElems(vs []*ir.Value) bool {
	for _, v := range vs[1:] {
		a, ok := vs[0].Type.(compound)
		b, ok2 := v.Type.(compound)
		if ok != ok2 || ok && a.elem() != b.elem() {
			return false
		}
	}
	return true
}

// unbroadcastParts requires operands of one shape.
func unbroadcastParts(f conversion) conversion {
	return func(n *node) []*ir.Value {
		n.sameShapes(n.split(n.in))
		return f(n)
	}
}

// implicitParts permits operands that broadcast as in NumPy, along broadcast_dimensions
// too.
func implicitParts(f conversion) conversion {
	return func(n *node) []*ir.Value {
		n.must(!n.has("broadcast_dimensions"), Unsupported, "%s of complex numbers along broadcast_dimensions is not supported", n.name)
		return f(n)
	}
}

func makeComplex(n *node) []*ir.Value {
	n.takes(2)
	n.sameElems(n.in)
	n.sameShapes(n.in)
	return []*ir.Value{n.complexValue(complexNumber{n.in[0], n.in[1]})}
}

func realPart(n *node) []*ir.Value {
	n.takes(1)
	return []*ir.Value{n.complexOf(n.in[0]).re}
}

func imaginaryPart(n *node) []*ir.Value {
	n.takes(1)
	return []*ir.Value{n.complexOf(n.in[0]).im}
}

// convertComplex goes from real to complex numbers, between complex ones, or to the real
// part.
func convertComplex(n *node) []*ir.Value {
	n.takes(1)
	x := n.in[0]
	if to, ok := n.out[0].(compound); ok {
		e := types.ElemOf(to.parts()[0])
		if ps := n.parts[x]; ps != nil {
			return []*ir.Value{n.complexValue(complexNumber{n.convert(ps[0], e), n.convert(ps[1], e)})}
		}
		return []*ir.Value{n.complexValue(n.complexOf(n.convert(x, e)))}
	}
	m := *n
	m.in = []*ir.Value{n.complexOf(x).re}
	return convertElems(&m)
}

// complexIota counts in the real parts.
func complexIota(n *node) []*ir.Value {
	m := *n
	m.out = n.out[0].(compound).parts()[:1]
	return []*ir.Value{n.complexValue(n.complexOf(iota(&m)[0]))}
}

func complexConstant(n *node) []*ir.Value {
	n.takes(0)
	return []*ir.Value{n.complexLiteral("value", n.out[0].(complexType))}
}

// complexLiteral is the literal of an attribute: pairs in parentheses, or bytes with the
// parts one after the other.
func (n *node) complexLiteral(name string, t complexType) *ir.Value {
	a, ok := n.attrs[name]
	n.must(ok, "DM141", "%s needs the attribute %s", n.name, name)
	part, ok := t.part.(*types.Tensor)
	n.must(ok, "DM142", "%s is no tensor", t)
	n.must(part.Rank() == 0 || n.batch == nil && !n.bare, Unsupported, "a constant with dimensions inside the region of a reduction is not supported")
	var parts [2]*types.Dense
	if len(a.x.Elems) == 1 && a.x.Elems[0].Kind == ast.AString || a.x.Kind == ast.ADenseResource {
		wide := part.With(append(slices.Clone(part.Shape), tensorOf(part.Elem, 2).Shape[0])...)
		untyped := *a.x
		untyped.Type = nil
		n.attrs[name] = attr{&untyped, a.at}
		if part.Rank() > 0 && len(a.x.Elems) == 1 && len(a.x.Elems[0].Str) == len("0x")+4*int(part.Elem.Bytes()) { // one number for all
			wide = tensorOf(part.Elem, 2)
		}
		parts[0], parts[1] = n.halves(n.dense(name, wide), part)
	} else {
		n.must(a.x.Kind == ast.ADense, "DM141", "%s of %s is no dense<…> literal", name, n.name)
		for i := range parts {
			x := *a.x
			x.Type, x.Text, x.Elems = nil, "", nil
			for _, e := range a.x.Elems {
				x.Elems = append(x.Elems, n.partOf(e, i, a, nil))
			}
			d, err := types.DenseFromExpr(&x, part)
			if err != nil {
				n.failError(a.at, err)
			}
			parts[i] = d
		}
	}
	return n.complexValue(complexNumber{n.constant(parts[0]), n.constant(parts[1])})
}

// partOf is the literal x, which the path leads to, with the first or the second number of
// each pair.
func (n *node) partOf(x *ast.AttrExpr, i int, a attr, path []int) *ast.AttrExpr {
	pair := strings.HasPrefix(x.Text, "(")
	if x.Kind != ast.AArray || pair && len(x.Elems) != 2 {
		n.failError(a.at, &types.Error{Code: "DM154", Msg: x.Text + " is no complex number: (1.0, 2.0)", Path: path})
	}
	if pair {
		return x.Elems[i]
	}
	y := *x
	y.Elems = make([]*ast.AttrExpr, len(x.Elems))
	for k, e := range x.Elems {
		y.Elems[k] = n.partOf(e, i, a, append(slices.Clone(path), k))
	}
	return &y
}

// halves are the even and the odd elements of d as literals of type t.
func (n *node) halves(d *types.Dense, t *types.Tensor) (even, odd *types.Dense) {
	all, err := d.All()
	n.must(err == nil, "DM141", "the literal of %s cannot be read", n.name)
	size := int(t.Elem.Bytes())
	var parts [2][]byte
	for i := 0; i+size <= len(all); i += size {
		parts[i/size%2] = append(parts[i/size%2], all[i:i+size]...)
	}
	return types.DenseOf(t, parts[0]), types.DenseOf(t, parts[1])
}

func checkComplexConstant(n *node) []*ir.Value {
	n.takes(1)
	m := *n
	m.name = strings.TrimSuffix(n.name, "_const")
	m.in = []*ir.Value{n.in[0], n.complexLiteral("value", plain(n.in[0].Type).(complexType))}
	return eachPart(check)(&m)
}

// compareComplex is whether both parts are equal. Other comparisons than EQ and NE are no
// part of StableHLO.
func compareComplex(n *node) []*ir.Value {
	n.takes(2)
	word := n.keyword("comparison_direction")
	if word == "" && len(n.words) > 0 {
		word = n.words[0]
	}
	n.must(word == "EQ" || word == "NE", "DM141", "%s compares complex numbers by EQ or NE, not by %s", n.name, word)
	x, y := n.complexOf(n.in[0]), n.complexOf(n.in[1])
	direction := directions[word]
	re, im := n.compare(direction, x.re, y.re), n.compare(direction, x.im, y.im)
	return []*ir.Value{n.binary(either(word == "EQ", "and", "or"), re, im)}
}

// bilinear is a product f of complex operands by the products of their parts.
func bilinear(f conversion) conversion {
	return func(n *node) []*ir.Value {
		n.takes(2)
		to, ok := n.out[0].(compound)
		n.must(ok, "DM143", "%s of complex numbers is complex", n.name)
		product := func(x, y *ir.Value) *ir.Value {
			m := *n
			m.in, m.out = []*ir.Value{x, y}, to.parts()[:1]
			return f(&m)[0]
		}
		x, y := n.parts[n.in[0]], n.parts[n.in[1]]
		switch {
		case x == nil:
			return []*ir.Value{n.complexValue(complexNumber{product(n.in[0], y[0]), product(n.in[0], y[1])})}
		case y == nil:
			return []*ir.Value{n.complexValue(complexNumber{product(x[0], n.in[1]), product(x[1], n.in[1])})}
		}
		re := n.binary("sub", product(x[0], y[0]), product(x[1], y[1]))
		im := n.binary("add", product(x[0], y[1]), product(x[1], y[0]))
		return []*ir.Value{n.complexValue(complexNumber{re, im})}
	}
}

// complexRegion is an op f with a region that combines complex numbers: a sum, or the
// choice of the new number, part by part; any other function in the order of the numbers.
func (n *node) complexRegion(f conversion, all bool) conversion {
	name := n.applied()
	k := slices.IndexFunc(n.in, func(v *ir.Value) bool { return isCompound(v.Type) })
	if name == "" && len(n.in) <= 3 {
		both := [2]string{}
		for i := range both {
			m := *n
			m.side = i + 1
			both[i] = m.combiner(0, n.parts[n.in[k]][0].Elem())
		}
		if both[0] == both[1] {
			name = both[0]
		}
	}
	switch {
	case name == "add" || name == "set":
		return eachPart(f)
	case !all:
		n.unsupported("%s of complex numbers by another function than their sum is not supported", n.name)
	case n.applied() != "":
		return func(n *node) []*ir.Value { return n.foldApplied(name) }
	}
	return inParts(f)
}

// extreme orders numbers by their real parts, then by the imaginary ones.
func extreme(direction string) func(n *node, x, y complexNumber) complexNumber {
	return func(n *node, x, y complexNumber) complexNumber {
		first := n.compare(direction, x.re, y.re)
		second := n.binary("and", n.compare("eq", x.re, y.re), n.compare(direction, x.im, y.im))
		p := n.binary("or", first, second)
		return complexNumber{n.choose(p, x.re, y.re), n.choose(p, x.im, y.im)}
	}
}
