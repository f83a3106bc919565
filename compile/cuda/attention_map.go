package cuda

import (
	"cmp"
	"fmt"
	"slices"

	"dmir/compile/assemble"
	"dmir/compile/kernel"
	"dmir/dialect/ir"
	"dmir/gpu/artifact"
)

// attentionDim is a dimension of the tensor map of an operand of attention: columns,
// rows, or some dimensions of its batch.
type attentionDim struct {
	boxDim
	inner int64 // of batch dimensions: matrices from one index to the next
	at    code  // its coordinate, without `from`
}

// attentionMap is an operand copied by a tensor map.
type attentionMap struct {
	name  local
	field assemble.Param
	dims  []attentionDim
}

// The coordinates of a box of an operand.
const boxColumn, boxRow, boxMatrix ident = "col", "row", "matrix"

// steps are operand i's buffer, its shape, its first element, and the elements from one
// index to the next of each dimension.
func (a *attention) steps(i int) (buf *ir.Value, shape []int64, start int64, steps []int64) {
	buf = a.Op.Operands[i]
	shape, _ = kernel.ShapeOf(buf)
	if v := a.views[i]; v != nil {
		return v.Buf, shape, v.Start, v.Steps
	}
	for d := range shape {
		steps = append(steps, innerElements(shape, d))
	}
	return buf, shape, 0, steps
}

// copied reports whether tensor maps can copy these operands.
func (a *attention) copied(operands ...int) bool {
	for _, i := range operands {
		if _, ok := a.box(i, 1); !ok {
			return false
		}
	}
	return true
}

// box are the dimensions, innermost first, of a tensor map that copies operand i in
// boxes of 64 columns of so many rows; false where the bulk copy engine cannot: it
// supports up to five dimensions whose strides are multiples of 16 bytes below 2^40.
func (a *attention) box(i, lines int) ([]attentionDim, bool) {
	_, shape, start, steps := a.steps(i)
	n := len(shape)
	width := 16 / a.elem.Bytes()
	dims := []attentionDim{
		{boxDim: boxDim{stride: 1, size: shape[n-1], box: 64}, at: cpp("%s", boxColumn)},
		{boxDim: boxDim{stride: steps[n-2], size: shape[n-2], box: int64(lines)}, at: cpp("%s", boxRow)},
	}
	if shape[n-2] == 1 && dims[1].stride == 0 {
		dims[1].stride = (shape[n-1] + width - 1) / width * width // of no other row
	}
	for d, inner := n-3, int64(1); d >= 0; d-- {
		size := shape[d]
		if last := &dims[len(dims)-1]; size > 1 && last.inner > 0 && last.inner*last.size == inner && steps[d] == last.stride*last.size {
			last.size *= size
		} else if size > 1 && steps[d] != 0 { // else all of its indices are one place
			dims = append(dims, attentionDim{boxDim: boxDim{stride: steps[d], size: size, box: 1}, inner: inner})
		}
		inner *= size
	}
	matrices := innerElements(shape[:n-2], -1)
	for j := 2; j < len(dims); j++ {
		d := &dims[j]
		d.at = cpp("%s", boxMatrix)
		if d.inner > 1 {
			d.at = cpp("%s / %d", d.at, d.inner)
		}
		if d.inner*d.size < matrices {
			d.at = cpp("%s %% %d", d.at, d.size)
		}
	}
	if len(dims) > 5 {
		return nil, false
	}
	for _, d := range dims[1:] {
		if d.stride < width || d.stride%width != 0 || d.stride*a.elem.Bytes() >= 1<<40 {
			return nil, false
		}
	}
	slices.SortStableFunc(dims, func(a, b attentionDim) int { return cmp.Compare(a.stride, b.stride) })
	// Where the operand is a part of a tensor, its offset becomes the first coordinates.
	for j := len(dims) - 1; j >= 0; j-- {
		dims[j].from = start / dims[j].stride
		start %= dims[j].stride
	}
	return dims, true
}

// tensorMap makes operand i a parameter copied in boxes of so many rows.
func (a *attention) tensorMap(ns *names, i, lines int) attentionMap {
	dims, _ := a.box(i, lines)
	buf, _, _, _ := a.steps(i)
	m := &artifact.TensorMap{Elem: a.elem.String(), Swizzle: 128}
	for j, d := range dims {
		m.Dims = append(m.Dims, uint64(d.from+d.size))
		m.Box = append(m.Box, uint32(d.box))
		if j > 0 {
			m.Strides = append(m.Strides, uint64(d.stride*a.elem.Bytes()))
		}
	}
	field := assemble.Param{Name: string(ns.free(string(ns.of[buf]) + "_map")), Elem: a.elem, Mode: artifact.Map, Value: buf, Map: m}
	ns.params = append(ns.params, field)
	return attentionMap{local(fmt.Sprintf("_M%d", i)), field, dims}
}

// operandsOf are the arguments for operands as a kernel with this tile takes them. On
// warpgroup products maps copy them, in boxes of the block's own rows, and from number
// `others` on of the rows of the side that it loops over.
func (p *attentionPlan) operandsOf(ns *names, t attentionTile, others int, operands ...int) (args []code, maps []attentionMap) {
	for n, i := range operands {
		if !t.bulk() {
			args = append(args, p.operand(ns, i))
			continue
		}
		lines := t.own
		if n >= others {
			lines = t.other
		}
		m := p.tensorMap(ns, i, lines)
		maps = append(maps, m)
		args = append(args, cpp("%s{%s}", m.name, ident(m.field.Name)))
	}
	return args, maps
}

// copies makes l a launch whose operands are copied by maps.
func (p *attentionPlan) copies(l *launch, maps []attentionMap) {
	if len(maps) == 0 {
		return
	}
	l.Arch = p.target.Arch
	call := l.write
	l.write = func(t *text) error {
		for _, m := range maps {
			m.write(t)
		}
		return call(t)
	}
}

// write writes the functor of an operand copied by a tensor map.
func (m attentionMap) write(t *text) {
	const to, at, full, i ident = "to", "at", "full", "i"
	u := t.before
	u.enter(closed, "struct %s", m.name)
	u.line("using Elem = %s", storage(m.field.Elem))
	u.declare([]assemble.Param{m.field})
	u.enter(block, "DM_FN void load(dm::Shared<Elem> %s, dm::i32 %s, dm::Shared<dm::u64> %s, dm::i32 %s, dm::i32 %s, dm::i32 %s, dm::i32 %s) const",
		def(to), def(at), def(full), def(i), def(boxColumn), def(boxRow), def(boxMatrix))
	var coordinates []code
	for _, d := range m.dims {
		coordinates = append(coordinates, plus(d.at, d.from))
	}
	u.line("dm::tile_load(%s, %s, %s, %s, %s, %s)", to, at, ident(m.field.Name), full, i, coordinates)
	u.leave()
	u.leave()
}
