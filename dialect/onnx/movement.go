package onnx

import (
	"encoding/binary"
	"math"
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// Constants, shapes and ops that move elements.

func init() {
	register(map[string]conversion{
		"CenterCropPad": convertCenterCropPad, "Concat": convertConcat, "Constant": convertConstant, "ConstantOfShape": convertConstantOfShape,
		"DepthToSpace": convertDepthToSpace, "Expand": convertExpand, "EyeLike": convertEyeLike, "Flatten": convertFlatten,
		"Pad": convertPad, "Range": convertRange, "Reshape": convertReshape, "ReverseSequence": convertReverseSequence, "Shape": convertShape, "Size": convertSize,
		"Slice": convertSlice, "SpaceToDepth": convertSpaceToDepth, "Split": convertSplit, "Squeeze": convertSqueeze,
		"Tile": convertTile, "Transpose": convertTranspose, "Trilu": convertTrilu, "Unsqueeze": convertUnsqueeze,
	})
}

func convertConstant(n *node) []*ir.Value {
	for _, own := range n.p.attrs {
		a := n.resolve(own) // which a call of a function calls otherwise
		if a == nil {
			continue
		}
		n.used[own.name] = true
		switch own.name {
		case "value":
			if a.t == nil {
				fail("the value is no tensor")
			}
			return one(n.literal(a.t.dense(n.opts)))
		case "value_int":
			return one(n.reshape(n.numbers(int(a.i))))
		case "value_ints":
			return one(n.numbers(n.ints(own.name)...))
		case "value_float":
			return one(n.scalar(types.F32, float64(a.f)))
		case "value_floats":
			data := make([]byte, 0, 4*len(a.floats))
			for _, f := range a.floats {
				data = binary.LittleEndian.AppendUint32(data, math.Float32bits(f))
			}
			return one(n.literal(types.DenseOf(tensorOf(types.F32, []int{len(a.floats)}), data)))
		case "value_string", "value_strings":
			unsupported("elements of type string")
		case "sparse_value":
			if a.sparse == nil {
				fail("no value")
			}
			return one(n.sparse(a.sparse))
		}
	}
	fail("no value")
	return nil
}

// target is the list of sizes that input i gives.
func (n *node) target(i int) []int {
	d := n.value(i)
	if d == nil {
		fail("input %d is missing", i)
	}
	var dims []int64
	for _, v := range integers(d) {
		dims = append(dims, int64(v))
	}
	return shapeOf("the result", dims)
}

func convertConstantOfShape(n *node) []*ir.Value {
	shape := n.target(0)
	a := n.attr("value")
	if a == nil || a.t == nil {
		return one(n.splat(types.F32, 0, shape...))
	}
	return one(n.broadcast(n.reshape(n.literal(a.t.dense(n.opts))), shape...))
}

func convertExpand(n *node) []*ir.Value {
	x, shape := n.in(0), n.target(1)
	return one(n.broadcast(x, together(n.shape(x), shape)...))
}

// together is the shape that two broadcast to.
func together(a, b []int) []int {
	out := make([]int, max(len(a), len(b)))
	for i := range out {
		p, q := 1, 1
		if k := i - len(out) + len(a); k >= 0 {
			p = a[k]
		}
		if k := i - len(out) + len(b); k >= 0 {
			q = b[k]
		}
		if p != q && p != 1 && q != 1 {
			fail("%v and %v do not broadcast", a, b)
		}
		out[i] = p
		if p == 1 {
			out[i] = q
		}
	}
	return out
}

func convertReshape(n *node) []*ir.Value {
	x := n.in(0)
	have, want := n.shape(x), slices.Clone(n.list("shape", 1))
	open, rest := -1, 1
	for i, d := range want {
		switch {
		case d == 0 && n.int("allowzero", 0) == 0:
			if i >= len(have) {
				fail("size 0 keeps dimension %d of %d", i, len(have))
			}
			want[i] = have[i]
		case d == -1 && open < 0:
			open = i
			continue
		case d < 0:
			fail("size %d in %v", d, want)
		}
		if rest *= want[i]; rest > maxElements {
			fail("%v are too many elements", want)
		}
	}
	if open >= 0 {
		if rest == 0 || product(have)%rest != 0 {
			fail("%v has no shape %v", have, want)
		}
		want[open] = product(have) / rest
	}
	if product(want) != product(have) {
		fail("%v has no shape %v", have, want)
	}
	return one(n.reshape(x, want...))
}

func convertFlatten(n *node) []*ir.Value {
	shape := n.shape(n.in(0))
	a := n.int("axis", 1)
	if a < 0 {
		a += len(shape)
	}
	if a < 0 || a > len(shape) {
		fail("axis %d of %d dimensions", a, len(shape))
	}
	return one(n.reshape(n.in(0), product(shape[:a]), product(shape[a:])))
}

func convertSqueeze(n *node) []*ir.Value {
	shape := n.shape(n.in(0))
	list := n.list("axes", 1)
	at := axes(list, len(shape))
	var out []int
	for i, d := range shape {
		switch {
		case list == nil && d == 1:
		case slices.Contains(at, i):
			if d != 1 {
				fail("dimension %d of size %d cannot be left out", i, d)
			}
		default:
			out = append(out, d)
		}
	}
	return one(n.reshape(n.in(0), out...))
}

func convertUnsqueeze(n *node) []*ir.Value {
	shape := n.shape(n.in(0))
	list := n.list("axes", 1)
	at := axes(list, len(shape)+len(list))
	out := make([]int, 0, len(shape)+len(at))
	for i := range cap(out) {
		if slices.Contains(at, i) {
			out = append(out, 1)
		} else {
			out, shape = append(out, shape[0]), shape[1:]
		}
	}
	return one(n.reshape(n.in(0), out...))
}

func convertShape(n *node) []*ir.Value {
	shape := n.shape(n.in(0))
	end := len(shape)
	bound := func(v int) int {
		if v < 0 {
			v += len(shape)
		}
		return min(max(v, 0), len(shape))
	}
	if n.attr("end") != nil {
		end = bound(n.int("end", 0))
	}
	start := bound(n.int("start", 0))
	return one(n.numbers(shape[start:max(start, end)]...))
}

func convertSize(n *node) []*ir.Value { return one(n.reshape(n.numbers(product(n.shape(n.in(0)))))) }

func convertTranspose(n *node) []*ir.Value {
	rank := n.rank(n.in(0))
	order := n.ints("perm")
	if order == nil {
		for i := range rank {
			order = append(order, rank-1-i)
		}
	}
	if len(order) != rank {
		fail("perm has %d entries for %d dimensions", len(order), rank)
	}
	return one(n.transpose(n.in(0), axes(order, rank)...))
}

func convertConcat(n *node) []*ir.Value {
	for i := range n.ins {
		n.in(i)
	}
	otherwise := 0
	if n.opset < 4 {
		otherwise = 1
	}
	return one(n.concatenate(axis(n.int("axis", otherwise), n.rank(n.in(0))), n.ins...))
}

func convertSlice(n *node) []*ir.Value {
	x := n.in(0)
	shape := n.shape(x)
	starts, ends, at, steps := n.list("starts", 1), n.list("ends", 2), n.list("axes", 3), n.list("steps", 4)
	if at == nil {
		for i := range starts {
			at = append(at, i)
		}
	}
	if steps == nil {
		steps = slices.Repeat([]int{1}, len(starts))
	}
	if len(ends) != len(starts) || len(at) != len(starts) || len(steps) != len(starts) {
		fail("%d starts, %d ends, %d axes, %d steps", len(starts), len(ends), len(at), len(steps))
	}
	start, limit, step := make([]int, len(shape)), slices.Clone(shape), slices.Repeat([]int{1}, len(shape))
	var back []int
	for i, d := range axes(at, len(shape)) {
		size := shape[d]
		s, e, by := starts[i], ends[i], steps[i]
		if s < 0 {
			s += size
		}
		if e < 0 {
			e += size
		}
		switch {
		case by == 0 || by < -maxElements:
			fail("step %d", by)
		case by > 0:
			s, e = min(max(s, 0), size), min(max(e, 0), size)
			e = max(s, e)
		default: // of the reversed dimension, from its other end
			s, e = min(max(s, -1), size-1), min(max(e, -1), size-1)
			back = append(back, d)
			s, e, by = size-1-s, max(size-1-e, size-1-s), -by
		}
		n.note(s, e)
		start[d], limit[d], step[d] = s, e, min(by, max(size, 1))
	}
	if len(back) > 0 {
		x = n.make("reverse", []*ir.Value{x}, named("dims", back))
	}
	return one(n.slice(x, start, limit, step))
}

func convertSplit(n *node) []*ir.Value {
	x := n.in(0)
	d := axis(n.int("axis", 0), n.rank(x))
	size := n.shape(x)[d]
	parts := n.list("split", 1)
	if parts == nil {
		count := n.int("num_outputs", len(n.p.outputs))
		if count < 1 || count != len(n.p.outputs) {
			fail("%d parts for %d outputs", count, len(n.p.outputs))
		}
		each := (size + count - 1) / count
		for i := range count {
			parts = append(parts, max(0, min(each, size-i*each)))
		}
	}
	var out []*ir.Value
	at := 0
	for _, p := range parts {
		if p < 0 || at+p > size {
			fail("parts %v of size %d", parts, size)
		}
		out = append(out, n.part(x, d, at, at+p))
		n.note(at)
		at += p
	}
	if at != size {
		fail("parts %v of size %d", parts, size)
	}
	return out
}

func convertTile(n *node) []*ir.Value {
	x := n.in(0)
	shape := n.shape(x)
	repeats := n.list("", 1)
	if n.opset < 6 {
		repeats = slices.Repeat([]int{1}, len(shape))
		times, at := n.list("", 1), n.list("", 2)
		if len(times) != 1 || len(at) != 1 {
			fail("tiles and axis are one number")
		}
		repeats[axis(at[0], len(shape))] = times[0]
	}
	if len(repeats) != len(shape) {
		fail("%d repeats of %d dimensions", len(repeats), len(shape))
	}
	var split, wide, out []int
	for i, r := range repeats {
		if r < 0 || r > maxElements {
			fail("%d repeats", r)
		}
		split, wide, out = append(split, 1, shape[i]), append(wide, r, shape[i]), append(out, r*shape[i])
	}
	return one(n.reshape(n.broadcast(n.reshape(x, split...), wide...), out...))
}

func convertPad(n *node) []*ir.Value {
	x := n.in(0)
	rank := n.rank(x)
	name := "pads"
	if n.opset < 2 {
		name = "paddings"
	}
	pads := n.list(name, 1)
	value := n.opt(2)
	if value == nil {
		value = n.scalar(x.Elem(), n.float("value", 0))
	}
	at := make([]int, rank)
	for i := range at {
		at[i] = i
	}
	if d := n.value(3); d != nil {
		at = axes(integers(d), rank)
	}
	if len(pads) != 2*len(at) {
		fail("%d pads for %d dimensions", len(pads), len(at))
	}
	low, high := make([]int, rank), make([]int, rank)
	for i, d := range at {
		low[d], high[d] = pads[i], pads[len(at)+i]
	}
	mode := n.str("mode", "constant")
	// Negative numbers leave elements out.
	shape := n.shape(x)
	start, limit := make([]int, rank), slices.Clone(shape)
	for d := range shape {
		start[d], limit[d] = max(0, -low[d]), shape[d]-max(0, -high[d])
		if start[d] > limit[d] {
			if mode != "constant" {
				fail("pads %v leave nothing of %v", pads, shape)
			}
			start[d], limit[d] = min(start[d], shape[d]), min(start[d], shape[d])
		}
		low[d], high[d] = max(0, low[d]), max(0, high[d])
		if low[d] > maxElements || high[d] > maxElements {
			fail("pads %v", pads)
		}
	}
	x = n.slice(x, start, limit, nil)
	if mode == "constant" {
		return one(n.pad(x, n.single(value), low, high))
	}
	for d, size := range n.shape(x) {
		if low[d] == 0 && high[d] == 0 {
			continue
		}
		x = n.gather(x, n.numbers(mirrored(mode, size, low[d], high[d])...), d)
	}
	return one(x)
}

// mirrored are the positions of the elements of a dimension that is padded with its
// own elements.
func mirrored(mode string, size, low, high int) []int {
	if size == 0 || low+size+high > maxCounted {
		unsupported("pads %d and %d of size %d", low, high, size)
	}
	out := make([]int, 0, low+size+high)
	for i := -low; i < size+high; i++ {
		p := i
		switch mode {
		case "edge":
			p = min(max(i, 0), size-1)
		case "wrap":
			p = ((i % size) + size) % size
		case "reflect":
			if period := 2 * (size - 1); period > 0 {
				p = ((i % period) + period) % period
				p = min(p, period-p)
			} else {
				p = 0
			}
		default:
			fail("mode %q", mode)
		}
		out = append(out, p)
	}
	return out
}

func (n *node) gather(x, at *ir.Value, d int) *ir.Value {
	return n.make("gather", []*ir.Value{x, at}, named("dim", d))
}

// convertCenterCropPad cuts or pads dimensions in the middle.
func convertCenterCropPad(n *node) []*ir.Value {
	x := n.in(0)
	rank := n.rank(x)
	want := n.target(1)
	at := n.ints("axes")
	if at == nil {
		for i := range rank {
			at = append(at, i)
		}
	}
	if len(at) != len(want) {
		fail("%d sizes for %d dimensions", len(want), len(at))
	}
	for i, d := range axes(at, rank) {
		low, high := make([]int, rank), make([]int, rank)
		size := n.shape(x)[d]
		if more := want[i] - size; more > 0 {
			low[d], high[d] = more/2, more-more/2
			x = n.pad(x, n.scalar(x.Elem(), 0), low, high)
		} else {
			x = n.part(x, d, -more/2, -more/2+want[i])
		}
	}
	return one(x)
}

func convertDepthToSpace(n *node) []*ir.Value {
	x := n.in(0)
	s, b := n.image(x)
	if s[1]%(b*b) != 0 {
		fail("%d channels for blocks of %d", s[1], b)
	}
	c := s[1] / (b * b)
	if n.str("mode", "DCR") == "CRD" {
		x = n.transpose(n.reshape(x, s[0], c, b, b, s[2], s[3]), 0, 1, 4, 2, 5, 3)
	} else {
		x = n.transpose(n.reshape(x, s[0], b, b, c, s[2], s[3]), 0, 3, 4, 1, 5, 2)
	}
	return one(n.reshape(x, s[0], c, s[2]*b, s[3]*b))
}

func convertSpaceToDepth(n *node) []*ir.Value {
	x := n.in(0)
	s, b := n.image(x)
	if s[2]%b != 0 || s[3]%b != 0 {
		fail("an image of %d by %d in blocks of %d", s[2], s[3], b)
	}
	x = n.transpose(n.reshape(x, s[0], s[1], s[2]/b, b, s[3]/b, b), 0, 3, 5, 1, 2, 4)
	return one(n.reshape(x, s[0], s[1]*b*b, s[2]/b, s[3]/b))
}

// image is the shape of images and the size of blocks.
func (n *node) image(x *ir.Value) (shape []int, block int) {
	shape, block = n.shape(x), n.int("blocksize", 0)
	if len(shape) != 4 || block < 1 || block > 1<<20 {
		fail("%d dimensions, blocks of %d", len(shape), block)
	}
	return shape, block
}

// convertEyeLike is ones on a diagonal.
func convertEyeLike(n *node) []*ir.Value {
	shape := n.shape(n.in(0))
	if len(shape) != 2 {
		fail("%d dimensions", len(shape))
	}
	e := n.in(0).Elem()
	if a := n.attr("dtype"); a != nil {
		e = elemOf("", a.i)
	}
	on := n.compare("eq", n.diagonal(shape), n.scalar(types.I64, float64(n.int("k", 0))))
	return one(n.convertTo(on, e))
}

// diagonal is, for the last two dimensions of a shape, the column less the row.
func (n *node) diagonal(shape []int) *ir.Value {
	last := shape[len(shape)-2:]
	return n.binary("sub", n.iota(types.I64, 1, last...), n.iota(types.I64, 0, last...))
}

func convertTrilu(n *node) []*ir.Value {
	x := n.in(0)
	shape := n.shape(x)
	if len(shape) < 2 {
		fail("%d dimensions", len(shape))
	}
	k := n.opt(1)
	if k == nil {
		k = n.scalar(types.I64, 0)
	}
	direction := "le"
	if n.int("upper", 1) != 0 {
		direction = "ge"
	}
	keep := n.compare(direction, n.diagonal(shape), n.single(k))
	return one(n.choose(keep, x, n.scalar(x.Elem(), 0)))
}

func convertRange(n *node) []*ir.Value {
	start, limit, step := n.value(0), n.value(1), n.value(2)
	if start == nil || limit == nil || step == nil || start.Len() != 1 || limit.Len() != 1 || step.Len() != 1 {
		fail("start, limit and step are one number each")
	}
	by := first(step)
	count := math.Ceil((first(limit) - first(start)) / by)
	if math.IsNaN(count) || count > maxElements {
		fail("a range from %v to %v by %v", first(start), first(limit), by)
	}
	e := start.Elem
	size := max(0, int(count))
	if size == 0 {
		return one(n.splat(e, 0, 0))
	}
	return one(n.make("iota", nil, named("dim", 0, "start", first(start), "step", by), tensorOf(e, []int{size})))
}

// convertReverseSequence reverses the first elements of each row, as many as its
// length, along the time axis.
func convertReverseSequence(n *node) []*ir.Value {
	x, lengths := n.in(0), n.in(1)
	shape := n.shape(x)
	time, batch := axis(n.int("time_axis", 0), len(shape)), axis(n.int("batch_axis", 1), len(shape))
	if time > 1 || batch > 1 || time == batch {
		unsupported("axes %d and %d", time, batch)
	}
	if time == 0 {
		order := axesFrom(len(shape))
		order[0], order[1] = 1, 0
		x = n.transpose(x, order...)
	}
	y := n.firstReversed(x, lengths)
	if time == 0 {
		order := axesFrom(len(shape))
		order[0], order[1] = 1, 0
		y = n.transpose(y, order...)
	}
	return one(y)
}

// firstReversed reverses the first elements of each row of [batch, time, …], as many
// as its length.
func (n *node) firstReversed(x, lengths *ir.Value) *ir.Value {
	s := n.shape(x)
	at := n.iota(types.I64, 1, s[0], s[1])
	length := n.reshape(n.convertTo(lengths, types.I64), s[0], 1)
	back := n.binary("sub", n.with("sub", length, 1), at)
	at = n.choose(n.compare("lt", at, length), back, at)
	return n.make("gather", []*ir.Value{x, at}, named("dim", 1, "batch_dims", 1))
}

// reversed is firstReversed of [time, batch, …].
func (n *node) reversed(x, lengths *ir.Value) *ir.Value {
	order := axesFrom(n.rank(x))
	order[0], order[1] = 1, 0
	return n.transpose(n.firstReversed(n.transpose(x, order...), lengths), order...)
}

// axesFrom is 0 … rank-1.
func axesFrom(rank int) []int {
	out := make([]int, rank)
	for i := range out {
		out[i] = i
	}
	return out
}
