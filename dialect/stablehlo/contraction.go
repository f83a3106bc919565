package stablehlo

import (
	"slices"
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

func contractions() map[string]conversion {
	return map[string]conversion{
		"dot_general": dotGeneral, "dot": dot, "einsum": einsum, "convolution": convolution,
	}
}

// dot contracts the last dimension with the first.
func dot(n *node) []*ir.Value {
	n.takes(2)
	a, b := len(n.shape(n.in[0])), len(n.shape(n.in[1]))
	n.must(a > 0 && b > 0, "DM142", "%s takes vectors and matrices, not scalars", n.name)
	return []*ir.Value{n.contracted(nil, nil, []int{a - 1}, []int{0})}
}

func dotGeneral(n *node) []*ir.Value {
	n.takes(2)
	a, b := len(n.shape(n.in[0])), len(n.shape(n.in[1]))
	return []*ir.Value{n.contracted(n.dims("lhs_batching_dimensions", a), n.dims("rhs_batching_dimensions", b),
		n.dims("lhs_contracting_dimensions", a), n.dims("rhs_contracting_dimensions", b))}
}

// contracted is the product of the operands, as dm.matmul where it is one: dimensions
// are a batch, or summed over, or free. The result has the batch, then the free ones
// of the first operand, then those of the second.
func (n *node) contracted(batchA, batchB, sumA, sumB []int) *ir.Value {
	x, y, to := n.in[0], n.in[1], n.result(0)
	a, b := n.shape(x), n.shape(y)
	n.must(len(batchA) == len(batchB) && len(sumA) == len(sumB), "DM141", "%s pairs dimensions of its operands, but names more of one", n.name)
	pairs := func(p, q []int) {
		for i := range p {
			n.must(a[p[i]] == b[q[i]], "DM142", "%s pairs dimension %d of %s with dimension %d of %s", n.name, p[i], x.Type, q[i], y.Type)
		}
	}
	pairs(batchA, batchB)
	pairs(sumA, sumB)
	for i, d := range batchA {
		n.must(!slices.Contains(sumA, d) && !slices.Contains(sumB, batchB[i]), "DM141", "%s names a dimension of its operands twice", n.name)
	}
	elem := commonElem(x.Elem(), y.Elem(), to.Elem)
	x, y = n.convert(x, elem), n.convert(y, elem)
	freeA, freeB := others(len(a), batchA, sumA), others(len(b), batchB, sumB)
	shape := slices.Concat(pick(a, batchA), pick(a, freeA), pick(b, freeB))
	out := tensorOf(to.Elem, shape...)
	if narrower(to.Elem, elem) {
		out.Elem = elem
	}
	batch := counting(len(batchA), len(batchA))
	product := func(name string, attrs ...types.Named) *ir.Value {
		if elem == types.F32 && out.Elem == types.F32 && n.rounds() {
			attrs = append(attrs, named(op.PrecisionAttr, types.Keyword("tf32")))
		}
		return n.convert(n.make(name, []*ir.Value{x, y}, attrs, out).Results[0], to.Elem)
	}
	if len(sumA) == 1 && len(freeA) == 1 && len(freeB) == 1 && slices.Equal(batchA, batch) && slices.Equal(batchB, batch) {
		var attrs []types.Named
		flip := func(name string, v *ir.Value, flipped bool) *ir.Value {
			if w, ok := untransposed(v); ok {
				v, flipped = w, !flipped
			}
			if flipped {
				attrs = append(attrs, named(name, types.Bool(true)))
			}
			return v
		}
		x = flip("transpose_a", x, sumA[0] == len(a)-2)
		y = flip("transpose_b", y, sumB[0] == len(b)-1)
		return product("matmul", attrs...)
	}
	next := 0
	letters := func(count int) []string {
		out := make([]string, count)
		for i := range out {
			n.must(next < 52, "DM142", "%s has more dimensions than letters", n.name)
			out[i] = string("ijklmnopqrstuvwxyzabcdefghABCDEFGHIJKLMNOPQRSTUVWXYZ"[next])
			next++
		}
		return out
	}
	inA, inB := make([]string, len(a)), make([]string, len(b))
	spread := func(names []string, places []int, in []string) {
		for i, p := range places {
			in[p] = names[i]
		}
	}
	shared, left, right, summed := letters(len(batchA)), letters(len(freeA)), letters(len(freeB)), letters(len(sumA))
	spread(shared, batchA, inA)
	spread(shared, batchB, inB)
	spread(left, freeA, inA)
	spread(right, freeB, inB)
	spread(summed, sumA, inA)
	spread(summed, sumB, inB)
	equation := strings.Join(inA, "") + "," + strings.Join(inB, "") + "->" + strings.Join(slices.Concat(shared, left, right), "")
	return product("einsum", named("equation", types.Str(equation)))
}

// rounds reports whether the algorithm that the op asks for rounds its operands to TF32, once: those of several products come near f32. A
// precision, DEFAULT or another, is no such request: what it means differs from machine to machine, and f32 is as precise as any.
func (n *node) rounds() bool {
	a, ok := n.attrs["algorithm"]
	if !ok {
		return false
	}
	text := strings.ReplaceAll(a.x.Text+a.x.Body, " ", "")
	return strings.Contains(text, "lhs_precision_type=tf32") && strings.Contains(text, "rhs_precision_type=tf32") && strings.Contains(text, "num_primitive_operations=1,")
}

// untransposed is what v is with its last two dimensions exchanged, if it is that.
func untransposed(v *ir.Value) (*ir.Value, bool) {
	if v.Op == nil || v.Op.Name != "dm.transpose" {
		return nil, false
	}
	dims := v.Op.Ints("dims")
	k := len(dims)
	for i, d := range dims {
		if want := either(i == k-1, k-2, either(i == k-2, k-1, i)); int(d) != want {
			return nil, false
		}
	}
	return v.Op.Operands[0], k >= 2
}

// commonElem is the element type in which operands of types a and b are multiplied.
func commonElem(a, b, to types.Elem) types.Elem {
	a, b = widenedInt(a), widenedInt(b)
	if a == b {
		return a
	}
	return widenedInt(to)
}

func widenedInt(e types.Elem) types.Elem {
	if e.Packed() || e == types.I1 {
		return widened(either(e == types.I1, types.UI8, e))
	}
	return e
}

// narrower reports whether numbers of to take fewer bytes than those of e, or are of
// another kind.
func narrower(to, e types.Elem) bool {
	return to.Bytes() < e.Bytes() || to.Bytes() == e.Bytes() && to != e || to.IsFloat() != e.IsFloat()
}

// einsum has the equation of two operands.
func einsum(n *node) []*ir.Value {
	n.takes(2)
	n.sameElems(n.in)
	return []*ir.Value{n.op("einsum", n.in, named("equation", types.Str(strings.ReplaceAll(n.keyword("einsum_config"), " ", ""))))}
}
