package stablehlo

import (
	"slices"
	"strconv"
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/types"
	"dmir/syntax/ast"
)

// quantization is how integers stand for real numbers: q for (q - zero) · scale, with one
// scale and zero point for all, or one for each index of a dimension.
type quantization struct {
	text              string // of the element type
	stored, expressed types.Elem
	low, high         int64 // the integers that there are
	axis              int   // the dimension with scales of its own, -1: none
	scales            []float64
	zeros             []int64
}

// quantizedType is a tensor of quantized numbers: one of the integers that stand for them.
type quantizedType struct {
	single
	q *quantization
}

func (t quantizedType) with(parts []types.Type) compound { return quantizedType{single{parts[0]}, t.q} }

func (t quantizedType) elem() string { return t.q.text }

func (t quantizedType) String() string { return textOf(t.part, t.q.text) }

func (t quantizedType) real() types.Type { return inElemOf(t.part, t.q.expressed) }

// storages are the integer types in which quantized numbers are stored.
var storages = map[string]types.Elem{
	"i4": types.I4, "u4": types.UI4, "i8": types.I8, "u8": types.UI8, "i16": types.I16, "u16": types.UI16, "i32": types.I32, "u32": types.UI32,
}

// quantizationOf reads !quant.uniform<i8<-127:127>:f32:1, {0.5:3, 0.25}>; nil for a form
// that is not supported.
func quantizationOf(x *ast.TypeExpr) *quantization {
	kind, rest, ok := strings.Cut(x.Body, ",")
	if !ok {
		return nil
	}
	q := &quantization{text: x.Text, axis: -1}
	stored, kind, _ := strings.Cut(kind, ":")
	if name, limits, bounded := strings.Cut(strings.TrimSpace(stored), "<"); bounded {
		high, after, ok := strings.Cut(kind, ">:")
		low, err := strconv.ParseInt(strings.TrimSpace(limits), 10, 64)
		top, err2 := strconv.ParseInt(strings.TrimSpace(high), 10, 64)
		if err != nil || err2 != nil || !ok || low >= top {
			return nil
		}
		stored, kind, q.low, q.high = name, after, low, top
	}
	q.stored = storages[strings.TrimSpace(stored)]
	expressed, axis, perAxis := strings.Cut(kind, ":")
	q.expressed, _ = types.ElemByName(strings.TrimSpace(expressed))
	if q.stored == types.InvalidElem || !q.expressed.IsFloat() {
		return nil
	}
	if q.low == q.high {
		low, high := limits(q.stored)
		q.low, q.high = low.Int(0), high.Int(0)
	}
	rest = strings.TrimSpace(rest)
	if perAxis {
		d, err := strconv.Atoi(strings.TrimSpace(axis))
		inner, opens := strings.CutPrefix(rest, "{")
		inner, closes := strings.CutSuffix(inner, "}")
		if err != nil || d < 0 || !opens || !closes {
			return nil
		}
		q.axis, rest = d, inner
	}
	for _, entry := range strings.Split(rest, ",") {
		scale, zero, shifted := strings.Cut(strings.TrimSpace(entry), ":")
		s, err := strconv.ParseFloat(strings.TrimSpace(scale), 64)
		z := int64(0)
		var err2 error
		if shifted {
			z, err2 = strconv.ParseInt(strings.TrimSpace(zero), 10, 64)
		}
		if err != nil || err2 != nil || !(s > 0) {
			return nil
		}
		q.scales, q.zeros = append(q.scales, s), append(q.zeros, z)
	}
	if q.axis < 0 && len(q.scales) != 1 {
		return nil
	}
	return q
}

// alongAxis is list as a constant that broadcasts along the axis of q to tensors of the shape.
func (n *node) alongAxis(q *quantization, e types.Elem, list []float64, shape []int) *ir.Value {
	if q.axis < 0 {
		return n.fill(e, list[0])
	}
	n.must(q.axis < len(shape) && shape[q.axis] == len(list), "DM142", "%s has %d scales for dimension %d of %v", q.text, len(list), q.axis, shape)
	var data []byte
	for _, v := range list {
		data = append(data, types.SplatOf(tensorOf(e), v).Bytes()...)
	}
	wide := ones(len(shape) - q.axis)
	wide[0] = len(list)
	return n.constant(types.DenseOf(tensorOf(e, wide...), data))
}

func (q *quantization) shifted() bool {
	return slices.ContainsFunc(q.zeros, func(z int64) bool { return z != 0 })
}

func (q *quantization) floatZeros() []float64 {
	out := make([]float64, len(q.zeros))
	for i, z := range q.zeros {
		out[i] = float64(z)
	}
	return out
}

func (t quantizedType) decoded(n *node, x *ir.Value) *ir.Value {
	shape := n.shape(x)
	if t.q.shifted() {
		wide := either(t.q.stored.Bits() < 32, types.I32, types.I64)
		x = n.binary("sub", n.convert(n.convert(x, widened(t.q.stored)), wide), n.alongAxis(t.q, wide, t.q.floatZeros(), shape))
	}
	x = n.convert(n.convert(x, widened(x.Elem())), t.q.expressed)
	return n.binary("mul", x, n.alongAxis(t.q, t.q.expressed, t.q.scales, shape))
}

// encoded is the nearest of the numbers that there are, of two the one of an even integer.
func (t quantizedType) encoded(n *node, x *ir.Value) *ir.Value {
	shape, e := n.shape(x), x.Elem()
	y := n.binary("div", x, n.alongAxis(t.q, e, t.q.scales, shape))
	if t.q.shifted() {
		y = n.binary("add", y, n.alongAxis(t.q, e, t.q.floatZeros(), shape))
	}
	y = n.op("clamp", []*ir.Value{n.fill(e, float64(t.q.low)), y, n.fill(e, float64(t.q.high))})
	return n.convert(n.convert(n.unary("round", y), widened(t.q.stored)), t.q.stored)
}

// literal is the integers, as they are written.
func (t quantizedType) literal(n *node, part *types.Tensor) *types.Dense {
	return n.dense("value", part)
}
