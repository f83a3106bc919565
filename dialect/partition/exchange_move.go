package partition

import (
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/shard"
	"dmir/dialect/types"
)

// exchangedDims are the dimensions of operand i that an Exchanged factor divides.
func exchangedDims(x factored, i int, a assignment) (dims []int) {
	for d, list := range x.operand(i) {
		if len(list) == 1 && len(a.factors[list[0]]) > 0 && x.f.Kinds[list[0]] == op.Exchanged {
			dims = append(dims, d)
		}
	}
	return dims
}

// evenly reports whether the pieces of the first operand have one size.
func (p *partitioner) evenly(x factored, a assignment) bool {
	l, shape := p.required(x, 0, a), p.shape(x.o.Operands[0].Tensor())
	for _, d := range exchangedDims(x, 0, a) {
		if !p.grid.Even(l, d, shape[d]) {
			return false
		}
	}
	return true
}

// mirrored are the pairs of a reversal of count pieces.
func mirrored(count int) (pairs [][2]int, sends int) {
	for k := range count {
		if pairs = append(pairs, [2]int{k, count - 1 - k}); k != count-1-k {
			sends++
		}
	}
	return pairs, sends
}

func (p *partitioner) reverseSent(x factored, a assignment) int64 {
	total := int64(0)
	for _, d := range exchangedDims(x, 0, a) {
		atoms := over(x.operand(0), d, a)
		_, sends := mirrored(p.grid.Count(atoms))
		total += p.bytes(x, 0, a) * int64(sends) * p.groups(atoms)
	}
	return total
}

// reverse hands each piece to the device that has the opposite one, which reverses it.
func (p *partitioner) reverse(x factored, a assignment) {
	pieces := p.pieces(x, a)
	if pieces == nil {
		return
	}
	for _, d := range exchangedDims(x, 0, a) {
		atoms := over(x.operand(0), d, a)
		pairs, _ := mirrored(p.grid.Count(atoms))
		pieces[0] = p.permute(pieces[0], pairs, atoms)
	}
	p.emit(x.o, pieces, p.layouts(x, a))
}

// rolled is by how many pieces, and elements of one, a roll moves dimension d of n elements, of
// which each device has size.
func rolled(o *ir.Op, d int, n, size int64) (pieces, elements int64) {
	dims, _ := op.Dims(o, "dims", o.In(0).Rank())
	shift := int64(0)
	for i, s := range op.Ints(o, "shifts") {
		if dims[i] == d {
			shift += s % n
		}
	}
	shift = (shift%n + n) % n
	return shift / size, shift % size
}

func (p *partitioner) rollSent(x factored, a assignment) int64 {
	shape := p.shape(x.o.Operands[0].Tensor())
	total := int64(0)
	for _, d := range exchangedDims(x, 0, a) {
		atoms := over(x.operand(0), d, a)
		count := int64(p.grid.Count(atoms))
		size := shape[d] / count
		by, rest := rolled(x.o, d, shape[d], size)
		each := int64(0)
		if by%count != 0 {
			each += size - rest
		}
		if (by+1)%count != 0 {
			each += rest
		}
		total += p.bytes(x, 0, a) / size * each * count * p.groups(atoms)
	}
	return total
}

// roll gets the end of one piece and the beginning of the next.
func (p *partitioner) roll(x factored, a assignment) {
	pieces := p.pieces(x, a)
	if pieces == nil {
		return
	}
	shape := p.shape(x.o.Operands[0].Tensor())
	dims, _ := op.Dims(x.o, "dims", len(shape))
	own := exchangedDims(x, 0, a)
	v := pieces[0]
	for _, d := range own {
		atoms := over(x.operand(0), d, a)
		count := p.grid.Count(atoms)
		size := shape[d] / int64(count)
		by, rest := rolled(x.o, d, shape[d], size)
		from := func(distance, lo, hi int64) *ir.Value {
			part := p.part(v, d, lo, hi)
			if distance%int64(count) == 0 {
				return part
			}
			pairs := make([][2]int, count)
			for k := range count {
				pairs[k] = [2]int{k, (k + int(distance)) % count}
			}
			return p.permute(part, pairs, atoms)
		}
		if rest == 0 {
			v = from(by, 0, size)
			continue
		}
		v = p.b.Value("concatenate", []*ir.Value{from(by+1, size-rest, size), from(by, 0, size-rest)}, []types.Named{{Name: "dim", Value: types.Int{V: int64(d)}}})
	}
	pieces[0] = v
	shifts := make([]int, len(dims))
	for i, s := range op.Ints(x.o, "shifts") {
		if len(over(x.operand(0), dims[i], a)) == 0 {
			shifts[i] = int(s)
		}
	}
	p.emit(x.o, pieces, p.layouts(x, a)).SetAttr("shifts", op.IntList(shifts...))
}

// joints are what devices need of each operand of a concatenation along d.
func (p *partitioner) joints(x factored, d int, a assignment) []span {
	atoms := over(x.result(0), d, a)
	count := int64(p.grid.Count(atoms))
	own := piece(p.shape(x.o.Results[0].Tensor())[d], int(count))
	spans := make([]span, len(x.o.Operands))
	at := int64(0)
	for i, v := range x.o.Operands {
		n := p.shape(v.Tensor())[d]
		spans[i] = span{n: n, size: piece(n, int(count)), count: count, step: own, first: -at, length: own, inner: 1, atoms: atoms}
		at += n
	}
	return spans
}

func (p *partitioner) jointSent(x factored, a assignment) int64 {
	d := along(x.o)
	total := int64(0)
	for i, s := range p.joints(x, d, a) {
		total += p.bytes(x, i, a) / s.size * s.sent() * p.groups(s.atoms)
	}
	return total
}

// joint is a concatenation along a divided dimension: devices get what their piece of the result has
// of each operand.
func (p *partitioner) joint(x factored, a assignment) {
	pieces := p.pieces(x, a)
	if pieces == nil {
		return
	}
	d := along(x.o)
	l := p.produced(x, 0, a)
	var y *ir.Value
	for i, s := range p.joints(x, d, a) {
		part := p.reach(pieces[i], d, s, nil)
		if y == nil {
			y = part
			continue
		}
		before := p.b.Value("compare", []*ir.Value{p.indices(part.Tensor(), l, d), p.whole(-s.first)}, []types.Named{{Name: "direction", Value: types.Keyword("lt")}})
		y = p.b.Value("select", []*ir.Value{before, y, part}, nil)
	}
	p.add(x.o.Results[0], l, y)
}

// margins makes dimension d of v, at both ends, longer by size, and start, a position in the whole,
// one in that, so that what lies outside of the piece lies in them.
func (p *partitioner) margins(v *ir.Value, d int, size, n int64, start *ir.Value, l shard.Layout) (wide, at *ir.Value) {
	own, _ := v.Tensor().Shape[d].Int()
	both := make([]int, v.Tensor().Rank())
	both[d] = int(size)
	wide = p.b.Value("pad", []*ir.Value{v, p.b.Splat(scalar(v), 0)}, []types.Named{{Name: "low", Value: op.IntList(both...)}, {Name: "high", Value: op.IntList(both...)}})
	at = p.b.Binary("sub", p.nearest(start, n-size+1), p.times(p.position(l.Dims[d]), own))
	return wide, p.nearest(p.b.Binary("add", at, p.whole(size)), own+size+1)
}

// takePart is a dynamic_slice of divided dimensions: each device gives what its piece has of the
// part, and 0 for the rest.
func (p *partitioner) takePart(x factored, a assignment) {
	pieces := p.pieces(x, a)
	if pieces == nil {
		return
	}
	t, l := x.o.Operands[0].Tensor(), p.required(x, 0, a)
	part := p.shape(x.o.Results[0].Tensor())
	dims := exchangedDims(x, 0, a)
	for _, d := range dims {
		v := p.mask(t, pieces[0], l, d, types.Add)
		pieces[0], pieces[1+d] = p.margins(v, d, part[d], p.shape(t)[d], pieces[1+d], l)
	}
	p.alike(pieces[1:])
	p.emit(x.o, pieces, p.layouts(x, a))
}

// alike makes starts i64 where one of them is.
func (p *partitioner) alike(starts []*ir.Value) {
	for i, v := range starts {
		starts[i] = p.b.Convert(v, types.I64)
	}
}

// updatePart is a dynamic_update_slice of divided dimensions: devices write what lies in their pieces,
// and the rest into margins.
func (p *partitioner) updatePart(x factored, a assignment) {
	pieces := p.pieces(x, a)
	if pieces == nil {
		return
	}
	t, l := x.o.Operands[0].Tensor(), p.required(x, 0, a)
	part := p.shape(x.o.Operands[1].Tensor())
	dims := exchangedDims(x, 0, a)
	for _, d := range dims {
		pieces[0], pieces[2+d] = p.margins(pieces[0], d, part[d], p.shape(t)[d], pieces[2+d], l)
	}
	p.alike(pieces[2:])
	y := p.b.Value(x.o.Name, pieces, nil)
	own := p.grid.Piece(p.shape(t), l)
	for _, d := range dims {
		y = p.part(y, d, part[d], part[d]+own[d])
	}
	p.add(x.o.Results[0], p.produced(x, 0, a), y)
}
