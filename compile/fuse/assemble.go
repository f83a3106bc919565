package fuse

import (
	"slices"

	"dmir/compile/pass"
	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// A concatenation or a pad whose result is stored is a copy of its parts, which
// other kernels have stored before. Written as updates of an empty tensor, one for
// each part, it lets the kernel that computes a part store it in its place. Where
// the result is not stored, because its readers read the parts, the op stays.

// box is a part of a tensor: the value that it holds, nil for a part that is filled
// with a scalar, and where it lies.
type box struct {
	v           *ir.Value
	start, size []int64
}

// boxesOf are the parts that o puts its result together from, and the scalar that
// fills those that have no value; ok is false where o does not put parts together.
func boxesOf(o *ir.Op) (boxes []box, fill *ir.Value, ok bool) {
	m := op.MoveOf(o)
	if m == nil || len(m.Pieces) < 2 || len(m.Pieces) > op.MaxParts || m.Rank == 0 {
		return nil, nil, false
	}
	whole, _ := shapeOf(o.Results[0])
	left := volume(whole)
	for i, p := range m.Pieces {
		x := o.Operands[p.Operand]
		if len(p.At) == 0 && !p.Flat && i == 1 && i == len(m.Pieces)-1 {
			fill = x
			break
		}
		size, known := shapeOf(x)
		if p.Flat || !known || len(p.At) != m.Rank {
			return nil, nil, false
		}
		b := box{v: x, size: size, start: make([]int64, m.Rank)}
		for d, a := range p.At {
			if b.start[d] = -a.Offset; a.Dim != d || a.Scale != 1 || a.Index != nil || a.Div > 1 || b.start[d] < 0 || b.start[d]+size[d] > whole[d] {
				return nil, nil, false
			}
		}
		if n := volume(size); n > 0 {
			left -= n
			boxes = append(boxes, b)
		}
	}
	if fill != nil && len(boxes) == 1 {
		boxes = append(boxes, around(boxes[0], whole)...)
		return boxes, fill, true
	}
	return boxes, nil, left == 0 && len(boxes) > 1
}

// around are boxes that fill what is not in b of a tensor of that shape.
func around(b box, whole []int64) (boxes []box) {
	for d, n := range whole {
		slab := func(start, size int64) {
			if size > 0 {
				s := box{start: slices.Clone(b.start), size: slices.Clone(b.size)}
				for i := d + 1; i < len(whole); i++ {
					s.start[i], s.size[i] = 0, whole[i]
				}
				s.start[d], s.size[d] = start, size
				boxes = append(boxes, s)
			}
		}
		slab(0, b.start[d])
		slab(b.start[d]+b.size[d], n-b.start[d]-b.size[d])
	}
	return boxes
}

func shapeOf(v *ir.Value) (shape []int64, ok bool) {
	t := v.Tensor()
	if t == nil {
		return nil, false
	}
	for _, d := range t.Shape {
		n, known := d.Int()
		if !known {
			return nil, false
		}
		shape = append(shape, n)
	}
	return shape, true
}

func volume(shape []int64) int64 {
	n := int64(1)
	for _, d := range shape {
		n *= d
	}
	return n
}

// assembled are the ops of kernels of ks that store a tensor put together from parts
// that another kernel computes.
func (g *graph) assembled(ks []*candidate) (ops []*ir.Op) {
	for _, k := range ks {
		for _, v := range k.outs {
			d := g.values[v].def
			if !g.inside(k.nodes, d) || len(g.nodes[d].results) != 1 || slices.Contains(ops, g.nodes[d].op) {
				continue
			}
			if _, _, ok := boxesOf(g.nodes[d].op); ok && g.copies(k, d) {
				ops = append(ops, g.nodes[d].op)
			}
		}
	}
	slices.SortFunc(ops, func(a, b *ir.Op) int { return g.position[a] - g.position[b] })
	return ops
}

// copies reports whether what k's node i reads is computed from values of other
// kernels that might hold more ops.
func (g *graph) copies(k *candidate, i int) bool {
	seen := map[int]bool{}
	var back func(i int) bool
	back = func(i int) bool {
		if seen[i] {
			return false
		}
		seen[i] = true
		for _, v := range g.nodes[i].ins {
			switch d := g.values[v].def; {
			case d < 0:
			case g.inside(k.nodes, d):
				if back(d) {
					return true
				}
			case !g.nodes[d].unfusible:
				return true
			}
		}
		return false
	}
	return back(i)
}

// turn is the place at which part b of an op is stored: behind the last node that is
// computed only once and that b depends on. Parts of one turn can be stored together.
func (g *graph) turn(b box) int {
	last := -1
	seen := map[int]bool{}
	var back func(v int)
	back = func(v int) {
		d := g.values[v].def
		if d < 0 || d <= last || seen[d] {
			return
		}
		seen[d] = true
		if !g.nodes[d].cheap {
			last = d
			return
		}
		for _, w := range g.nodes[d].ins {
			back(w)
		}
	}
	if b.v != nil {
		if v, ok := g.number[g.source(b.v)]; ok {
			back(v)
		}
	}
	return last
}

// assembly is a body in which ops became updates of empty tensors.
type assembly struct {
	body   pass.Body
	inputs []*ir.Value
	ops    []*ir.Op                // of the body, before
	made   map[*ir.Value]*ir.Value // the results, by those that they take the place of
}

// inParts makes each of ops updates of an empty tensor, in the order in which its
// parts can be computed.
func (g *graph) inParts(ops []*ir.Op) *assembly {
	a := &assembly{body: g.body, inputs: g.body.Inputs(), ops: slices.Clone(g.body.Ops), made: map[*ir.Value]*ir.Value{}}
	for _, o := range ops {
		boxes, fill, _ := boxesOf(o)
		slices.SortStableFunc(boxes, func(a, b box) int { return g.turn(a) - g.turn(b) })
		b := op.NewBuilder(&ir.Builder{Block: g.body.Block, Index: slices.Index(g.body.Block.Ops, o), At: o}, nil)
		y := o.Results[0]
		last := b.Value("empty", nil, nil, y.Type)
		at := map[int64]*ir.Value{}
		for _, x := range boxes {
			operands := []*ir.Value{last, x.v}
			if x.v == nil {
				operands[1] = b.Value("broadcast", []*ir.Value{fill}, []types.Named{{Name: "dims", Value: types.Array{}}}, y.Tensor().With(dims(x.size)...))
			}
			for _, n := range x.start {
				if at[n] == nil {
					scalar := &types.Tensor{Elem: types.I64, At: types.Placement{Space: types.HBM}}
					at[n] = b.Value("constant", nil, []types.Named{{Name: "value", Value: types.IntOf(scalar, n)}}, scalar)
				}
				operands = append(operands, at[n])
			}
			last = b.Value("dynamic_update_slice", operands, nil)
			last.Name, last.Span = y.Name, y.Span
		}
		if b.Err() != nil {
			b.Undo()
			continue
		}
		ir.ReplaceUses(y, last)
		a.made[y] = last
		ir.Erase(o)
	}
	return a
}

func dims(sizes []int64) (shape []dim.Dim) {
	for _, n := range sizes {
		shape = append(shape, dim.Const(n))
	}
	return shape
}

// undo makes the body what it was.
func (a *assembly) undo() {
	was := map[*ir.Value]*ir.Value{}
	for y, last := range a.made {
		was[last] = y
		ir.ReplaceUses(last, y)
	}
	a.body.Block.Ops = a.ops
	for _, o := range a.ops {
		o.Parent = a.body.Block
		for i, v := range o.Operands { // of ops that were erased
			if y := was[v]; y != nil {
				o.Operands[i] = y
			}
		}
	}
	rebuildUses(a.body, a.inputs)
}
