package onnx

import (
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// Ops with positions as an operand. A negative position counts from the back.

func init() {
	register(map[string]conversion{
		"Gather": convertGather, "GatherElements": convertGatherElements, "GatherND": convertGatherND, "OneHot": convertOneHot,
		"Scatter": convertScatterElements, "ScatterElements": convertScatterElements, "ScatterND": convertScatterND,
		"TensorScatter": convertTensorScatter, "Compress": convertCompress, "NonZero": convertNonZero,
	})
}

// counted is v, of positions in a dimension of a size, without negative ones.
func (n *node) counted(v *ir.Value, size int) *ir.Value {
	v = n.index(v)
	if v.Elem().IsUnsigned() {
		return v
	}
	if d := n.constant(v); d != nil {
		negative := func(i int) bool { return i < 0 }
		if !slices.ContainsFunc(integers(d), negative) {
			return v
		}
		n.note(1)
	}
	return n.choose(n.compare("lt", v, n.scalar(v.Elem(), 0)), n.with("add", v, float64(size)), v)
}

func convertGather(n *node) []*ir.Value {
	x := n.in(0)
	d := axis(n.int("axis", 0), n.rank(x))
	return one(n.gather(x, n.counted(n.in(1), n.shape(x)[d]), d))
}

// flat is the row-major position in x of each element that at, positions along
// dimension d, stands for.
func (n *node) flat(x, at *ir.Value, d int) *ir.Value {
	shape, out := n.shape(x), n.shape(at)
	if len(out) != len(shape) {
		fail("indices of %d dimensions for %d", len(out), len(shape))
	}
	v := n.convertTo(n.counted(at, shape[d]), types.I64)
	stride := 1
	var sum *ir.Value
	for i := len(shape) - 1; i >= 0; i-- {
		p := v
		if i != d {
			if out[i] > shape[i] {
				fail("indices of shape %v for %v", out, shape)
			}
			p = nil
			if out[i] > 1 {
				ones := slices.Repeat([]int{1}, len(out))
				ones[i] = out[i]
				p = n.reshape(n.iota(types.I64, 0, out[i]), ones...)
			}
		}
		if p != nil && stride != 1 {
			p = n.with("mul", p, float64(stride))
		}
		switch {
		case p == nil:
		case sum == nil:
			sum = p
		default:
			sum = n.binary("add", sum, p)
		}
		stride *= shape[i]
	}
	return sum
}

func convertGatherElements(n *node) []*ir.Value {
	x, at := n.in(0), n.in(1)
	d := axis(n.int("axis", 0), n.rank(x))
	if d == n.rank(x)-1 && n.rank(at) == d+1 && slices.Equal(n.shape(x)[:d], n.shape(at)[:d]) {
		return one(n.make("gather", []*ir.Value{x, n.counted(at, n.shape(x)[d])}, named("dim", d, "batch_dims", d)))
	}
	return one(n.gather(n.reshape(x, product(n.shape(x))), n.flat(x, at, d), 0))
}

// combine names the kind of a scatter.
func (n *node) combine() string {
	r := n.str("reduction", "none")
	kind := map[string]string{"none": "set", "add": "add", "mul": "mul", "max": "max", "min": "min"}[r]
	if kind == "" {
		fail("reduction %q", r)
	}
	return kind
}

func convertScatterElements(n *node) []*ir.Value {
	x, updates := n.in(0), n.in(2)
	shape := n.shape(x)
	at := n.flat(x, n.in(1), axis(n.int("axis", 0), len(shape)))
	size := product(n.shape(at))
	if !slices.Equal(n.shape(at), n.shape(updates)) {
		fail("indices of shape %v for updates of %v", n.shape(at), n.shape(updates))
	}
	in := []*ir.Value{n.reshape(x, product(shape)), n.reshape(at, size), n.reshape(updates, size)}
	return one(n.reshape(n.make("scatter", in, named("kind", n.combine(), "dim", 0)), shape...))
}

// vectors are the row-major positions that vectors of k numbers name in the dimensions
// shape, without the dimension of the vectors.
func (n *node) vectors(at *ir.Value, shape []int) *ir.Value {
	s := n.shape(at)
	last := len(s) - 1
	sum, stride := (*ir.Value)(nil), 1
	for i := len(shape) - 1; i >= 0; i-- {
		p := n.reshape(n.part(at, last, i, i+1), s[:last]...)
		p = n.convertTo(n.counted(p, shape[i]), types.I64)
		if stride != 1 {
			p = n.with("mul", p, float64(stride))
		}
		if sum == nil {
			sum = p
		} else {
			sum = n.binary("add", sum, p)
		}
		stride *= shape[i]
	}
	if sum == nil {
		return n.splat(types.I64, 0, s[:last]...)
	}
	return sum
}

func convertGatherND(n *node) []*ir.Value {
	x, at := n.in(0), n.in(1)
	shape, s, batch := n.shape(x), n.shape(at), n.int("batch_dims", 0)
	if len(s) == 0 || batch < 0 || batch >= len(s) || batch+s[len(s)-1] > len(shape) || !slices.Equal(shape[:batch], s[:batch]) {
		fail("indices of shape %v for %v, %d of them batches", s, shape, batch)
	}
	k := batch + s[len(s)-1]
	b := product(shape[:batch])
	places := s[batch : len(s)-1]
	pos := n.reshape(n.vectors(at, shape[batch:k]), b, product(places))
	v := n.make("gather", []*ir.Value{n.reshape(x, b, product(shape[batch:k]), product(shape[k:])), pos}, named("dim", 1, "batch_dims", 1))
	return one(n.reshape(v, slices.Concat(s[:len(s)-1], shape[k:])...))
}

func convertScatterND(n *node) []*ir.Value {
	x, at, updates := n.in(0), n.in(1), n.in(2)
	shape, s := n.shape(x), n.shape(at)
	if len(s) == 0 || s[len(s)-1] > len(shape) {
		fail("indices of shape %v for %v", s, shape)
	}
	k := s[len(s)-1]
	if !slices.Equal(n.shape(updates), slices.Concat(s[:len(s)-1], shape[k:])) {
		fail("updates of shape %v for indices of %v", n.shape(updates), s)
	}
	places, rest := product(s[:len(s)-1]), product(shape[k:])
	in := []*ir.Value{
		n.reshape(x, product(shape[:k]), rest), n.reshape(n.vectors(at, shape[:k]), places), n.reshape(updates, places, rest),
	}
	return one(n.reshape(n.make("scatter", in, named("kind", n.combine(), "dim", 0)), shape...))
}

// convertTensorScatter writes an update into each batch of a cache, from a position on.
func convertTensorScatter(n *node) []*ir.Value {
	x, update := n.in(0), n.in(1)
	shape, s := n.shape(x), n.shape(update)
	d := axis(n.int("axis", -2), len(shape))
	if d == 0 || len(s) != len(shape) {
		fail("axis %d, an update of %d dimensions for %d", d, len(s), len(shape))
	}
	at := n.iota(types.I64, 1, s[0], s[d])
	if w := n.opt(2); w != nil {
		at = n.binary("add", at, n.reshape(n.convertTo(w, types.I64), s[0], 1))
	}
	switch mode := n.str("mode", "linear"); mode {
	case "linear":
	case "circular":
		at = n.with("rem", at, float64(shape[d]))
	default:
		fail("mode %q", mode)
	}
	order := append([]int{0, d}, slices.DeleteFunc(axesFrom(len(shape))[1:], func(i int) bool { return i == d })...)
	v := n.make("scatter", []*ir.Value{n.transpose(x, order...), at, n.transpose(update, order...)}, named("kind", "set", "dim", 1, "batch_dims", 1))
	return one(n.transpose(v, op.Inverse(order)...))
}

func convertOneHot(n *node) []*ir.Value {
	at, values := n.in(0), n.in(2)
	depth := n.value(1)
	if depth == nil || depth.Len() != 1 || !(first(depth) >= 1 && first(depth) <= maxElements) {
		fail("the depth is one positive number")
	}
	size := int(first(depth))
	d := axis(n.int("axis", -1), n.rank(at)+1)
	if !at.Elem().IsInt() {
		at = n.convertTo(at, types.I64)
	}
	shape := slices.Insert(n.shape(at), d, size)
	on := n.make("one_hot", []*ir.Value{n.counted(at, size)}, named("classes", size, "dim", d), tensorOf(types.I1, shape))
	return one(n.choose(on, n.single(n.part(values, 0, 1, 2)), n.single(n.part(values, 0, 0, 1))))
}

// convertCompress keeps the elements, or the slices along an axis, where a condition is
// true.
func convertCompress(n *node) []*ir.Value {
	x := n.in(0)
	d := 0
	if n.attr("axis") == nil {
		x = n.reshape(x, product(n.shape(x)))
	} else {
		d = axis(n.int("axis", 0), n.rank(x))
	}
	c := n.value(1)
	if c == nil {
		fail("input 1 is missing")
	}
	var kept []int
	for i, v := range integers(c) {
		if v != 0 {
			kept = append(kept, i)
		}
	}
	return one(n.gather(x, n.numbers(kept...), d))
}

// convertNonZero are the positions of elements that are not 0, which are known where
// the elements are.
func convertNonZero(n *node) []*ir.Value {
	d := n.value(0)
	if d == nil {
		fail("input 0 is missing")
	}
	shape := n.shape(n.in(0))
	size := product(shape)
	places := make([][]int, len(shape))
	for i := range size {
		k := i
		if d.Splat {
			k = 0
		}
		if d.Float(k) == 0 {
			continue
		}
		rest := i
		for a := len(shape) - 1; a >= 0; a-- {
			places[a] = append(places[a], rest%shape[a])
			rest /= shape[a]
		}
	}
	count := 0
	if len(places) > 0 {
		count = len(places[0])
	}
	return one(n.reshape(n.numbers(slices.Concat(places...)...), len(shape), count))
}
