package stablehlo

import (
	"slices"
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// coded is the type of numbers that a tensor of another element type stands for. Ops
// compute with the numbers and round their results, as StableHLO's interpreter does.
type coded interface {
	compound
	// real is the type of the numbers.
	real() types.Type
	// decoded are the numbers that x, of the type of the part, stands for.
	decoded(n *node, x *ir.Value) *ir.Value
	// encoded is what stands for the numbers x, rounded.
	encoded(n *node, x *ir.Value) *ir.Value
	// literal is the value of the op as a literal of the type of the part.
	literal(n *node, part *types.Tensor) *types.Dense
}

// inElemOf is t, a tensor or a number, with another element type.
func inElemOf(t types.Type, e types.Elem) types.Type { return inElem(&ir.Value{Type: t}, e) }

// isCoded reports whether an operand or a result of the op is coded.
func (n *node) isCoded() bool {
	is := func(t types.Type) bool { _, ok := t.(coded); return ok }
	return slices.ContainsFunc(kinds(n.in), is) || slices.ContainsFunc(n.out, is)
}

// codedConversion is the conversion of an op with coded operands or results, where f is
// that of others.
func (n *node) codedConversion(short string, f conversion) conversion {
	switch short {
	case "constant":
		return codedConstant
	case "bitcast_convert":
		return quantizedBits
	case "check.expect_eq_const", "check.expect_almost_eq_const", "check.expect_close_const":
		return checkCodedConstant
	case "uniform_quantize", "uniform_dequantize":
		f = same
	}
	if name := n.applied(); name != "" {
		return func(n *node) []*ir.Value { return n.foldApplied(name) }
	}
	if n.batch == nil && !n.bare && len(n.t.Regions) > 0 {
		return inParts(f)
	}
	return func(n *node) []*ir.Value {
		m := *n
		m.in, m.out = slices.Clone(n.in), slices.Clone(n.out)
		for i, v := range n.in {
			if t, ok := v.Type.(coded); ok {
				m.in[i] = t.decoded(n, n.parts[v][0])
			}
		}
		for i, t := range n.out {
			if c, ok := t.(coded); ok {
				m.out[i] = c.real()
			}
		}
		out := slices.Clone(f(&m))
		for i, t := range n.out {
			if c, ok := t.(coded); ok && i < len(out) {
				n.must(out[i].Elem() == types.ElemOf(c.real()), "DM143", "%s of %s gives %s", n.name, out[i].Type, c)
				out[i] = n.compounded(c, c.encoded(n, out[i]))
			}
		}
		return out
	}
}

func codedConstant(n *node) []*ir.Value {
	n.takes(0)
	t := n.out[0].(coded)
	return []*ir.Value{n.compounded(t, n.constant(t.literal(n, n.partOfType(t))))}
}

// partOfType is the part of t, a tensor.
func (n *node) partOfType(t coded) *types.Tensor {
	part, ok := t.parts()[0].(*types.Tensor)
	n.must(ok, "DM142", "%s is no tensor", t)
	n.must(part.Rank() == 0 || n.batch == nil && !n.bare, Unsupported, "a constant with dimensions inside the region of a reduction is not supported")
	return part
}

// quantizedBits is the integers as quantized numbers, or the inverse.
func quantizedBits(n *node) []*ir.Value {
	n.takes(1)
	for _, t := range append(kinds(n.in), n.out...) {
		if _, ok := t.(narrowType); ok {
			n.unsupported("%s of %s is not supported", n.name, t)
		}
	}
	m := *n
	m.in, m.out = n.split(n.in), splitTypes(n.out)
	return n.joined(bitcastConvert(&m), n.out)
}

func checkCodedConstant(n *node) []*ir.Value {
	n.takes(1)
	t, ok := plain(n.in[0].Type).(coded)
	n.must(ok, "DM142", "%s compares tensors, not %s", n.name, n.in[0].Type)
	want := n.constant(t.literal(n, n.partOfType(t)))
	want.Name = "%expected"
	m := *n
	m.name = strings.TrimSuffix(n.name, "_const")
	m.in = []*ir.Value{n.parts[n.in[0]][0], want}
	return check(&m)
}
