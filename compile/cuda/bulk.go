package cuda

import (
	"cmp"
	"fmt"
	"slices"

	"dmir/compile/assemble"
	"dmir/compile/kernel"
	"dmir/dialect/types"
	"dmir/gpu/artifact"
)

// boxDim is one dimension of a tensor map: a part of the operand's address.
type boxDim struct {
	stride int64 // elements
	size   int64
	box    int64
	atom   *kernel.Atom // the coordinate, plus `from`
	from   int64
}

// boxesOf are the dimensions, innermost first, of a tensor map that copies an
// operand in boxes of `side` elements along its contiguous dimension by `lines`
// along the other of its row and k; false where the bulk copy engine cannot: it
// supports up to five dimensions whose strides are multiples of 16 bytes, and a
// box must not cross from one value of an outer letter to the next.
func boxesOf(x *kernel.Expr, flat kernel.Flat, row *kernel.Atom, elem types.Elem, side, lines int64) (dims []boxDim, alongK, ok bool) {
	if x.Op != kernel.Load || x.Elem != elem.Stored() || x.At.C < 0 || flat.K == nil || row == nil {
		return nil, false, false
	}
	parts, ok := partition(x.At, false, flat.Z, row, flat.K)
	if !ok {
		return nil, false, false
	}
	stepK, _ := parts[2].Along(flat.K)
	stepR, _ := parts[1].Along(row)
	if alongK = stepK == 1; !alongK && stepR != 1 {
		return nil, false, false
	}
	for i, a := range []*kernel.Atom{flat.Z, row, flat.K} {
		box := int64(1)
		if i > 0 {
			if box = lines; (i == 2) == alongK {
				box = side
			}
		}
		found := i == 0
		for _, t := range parts[i].Terms {
			d := boxDim{stride: t.Coef, size: t.Atom.Max + 1, box: 1, atom: t.Atom}
			if i > 0 {
				step, run := kernel.Index{Terms: []kernel.Term{{Coef: 1, Atom: t.Atom}}}.Along(a)
				if step > 1 || run != a.Max+1 && run%box != 0 {
					return nil, false, false
				}
				if step == 1 {
					d.box, found = box, true
				}
			}
			dims = append(dims, d)
		}
		if !found {
			return nil, false, false
		}
	}
	slices.SortStableFunc(dims, func(a, b boxDim) int { return cmp.Compare(a.stride, b.stride) })
	if len(dims) < 2 || len(dims) > 5 || dims[0].stride != 1 || dims[0].box != side {
		return nil, false, false
	}
	for _, d := range dims[1:] {
		if d.stride*elem.Bytes()%16 != 0 {
			return nil, false, false
		}
	}
	// Where the operand is a part of a tensor, its offset becomes the first
	// coordinates.
	rest := x.At.C
	for i := len(dims) - 1; i >= 0; i-- {
		dims[i].from = rest / dims[i].stride
		rest %= dims[i].stride
	}
	return dims, alongK, true
}

// linesOf is the number of rows of an operand in one box where it is contiguous
// along k: those of a product, or the half that a block of a pair loads of what they share.
func (c Config) linesOf(which, products int) int64 {
	if c.shares(which) {
		products = 2
	} else if which == 0 {
		products = 1
	}
	return int64([]int{c.BM, c.BN}[which] / products)
}

// mapped reports whether a tensor map can copy operand `which` in the boxes of the tile. Groups that divide the sum end within boxes, whose rest
// is another group's.
func (p *contraction) mapped(which int) bool {
	if g := p.t.Grouping(); g != nil && !g.Rows {
		return false
	}
	elem, ok := shapeOf(p.t).elem(p.c, which)
	if !ok {
		return false
	}
	xs, flat := p.at(which, true, 1)
	for _, x := range xs {
		if dims, _, _ := p.boxes(x, flat, which, elem); dims == nil {
			return false
		}
	}
	return true
}

// boxes are those of a load of operand `which`, whether it is contiguous along k, and the rows of a box: a step of k, or, where wgmma takes
// operands that are contiguous along the row, panels of 64 rows. They are nil where a tensor map cannot copy it.
func (p *contraction) boxes(x *kernel.Expr, flat kernel.Flat, which int, elem types.Elem) (dims []boxDim, alongK bool, lines int64) {
	row, side := rowOf(which, flat), 128/elem.Bytes()
	lines = p.c.linesOf(which, p.t.Products)
	dims, alongK, ok := boxesOf(x, flat, row, elem, side, lines)
	if ok && !alongK {
		lines = 64
		dims, _, ok = boxesOf(x, flat, row, elem, side, lines)
		ok = ok && elem.Bytes() == 2
	}
	if !ok {
		return nil, false, 0
	}
	return dims, alongK, lines
}

// feeds reports whether both operands of t get to the products of tile c, on Hopper, as its path says:
// by tensor maps, or one of them at least by copies of 16 bytes.
func (c Config) feeds(t *kernel.Tiled) bool { return feeding(t)(c) }

// feeding is feeds of t for any tile. Tiles whose boxes have the same lines share an answer.
func feeding(t *kernel.Tiled) func(Config) bool {
	type boxes struct {
		which int
		bytes bool
		lines int64
	}
	maps := map[boxes]bool{}
	mapped := func(p *contraction, which int) bool {
		k := boxes{which, p.c.bytes(), p.c.linesOf(which, t.Products)}
		ok, known := maps[k]
		if !known {
			ok = p.mapped(which)
			maps[k] = ok
		}
		return ok
	}
	copied := map[int]bool{}
	gathered := func(p *contraction, which int) bool {
		ok, known := copied[which]
		if !known {
			ok = p.gathered(which)
			copied[which] = ok
		}
		return ok
	}
	return func(c Config) bool {
		p := &contraction{t: t, c: c}
		a, b := mapped(p, 0), mapped(p, 1)
		if c.Path.bulk() {
			return a && b
		}
		return (!a || !b) && (a || gathered(p, 0)) && (b || gathered(p, 1))
	}
}

// gathered reports whether copies of 16 bytes bring operand `which` to shared memory unchanged.
func (p *contraction) gathered(which int) bool {
	elem, ok := shapeOf(p.t).tensorElem()
	if !ok {
		return false
	}
	s := &operand{contraction: p, which: which, elem: elem}
	s.xs, s.flat = p.at(which, true, 1)
	s.arrange(8)
	return elem.Bytes() == 2 && s.addresses() != nil
}

// tensorMap is the map of these dimensions.
func tensorMap(elem types.Elem, dims []boxDim) *artifact.TensorMap {
	m := &artifact.TensorMap{Elem: elem.String()}
	for j, d := range dims {
		m.Dims = append(m.Dims, uint64(d.from+d.size))
		m.Box = append(m.Box, uint32(d.box))
		if j > 0 {
			m.Strides = append(m.Strides, uint64(d.stride*elem.Bytes()))
		}
	}
	return m
}

// maps makes the operand one copied by tensor maps, which become parameters in
// ns.
func (s *operand) maps(ns *names) error {
	var box int64
	for _, x := range s.xs {
		dims, alongK, lines := s.contraction.boxes(x, s.flat, s.which, s.elem)
		if dims == nil {
			return fmt.Errorf("%s cannot be loaded with a tensor map", x.Buf.Name)
		}
		box = lines
		s.alongK = alongK
		s.boxes = append(s.boxes, dims)
		m := tensorMap(s.elem, dims)
		m.Swizzle = 128
		field := assemble.Param{Name: string(ns.free(string(ns.of[x.Buf]) + "_map")), Elem: s.elem.Stored(), Mode: artifact.Map, Value: x.Buf, Map: m}
		ns.params, s.fields = append(ns.params, field), append(s.fields, field)
	}
	s.v = box
	s.fields = append(s.fields, s.bounds(ns)...)
	return nil
}

// writeMaps writes the functor of an operand copied by tensor maps.
func (s *operand) writeMaps(t *text) {
	const to, at, full, i, k ident = "to", "at", "full", "i", "k"
	u := t.before
	u.line("static constexpr bool along_k = %t", s.alongK)
	u.line("static constexpr int box = %d", s.v)
	u.declare(s.fields)
	var loads []*stmt
	for n, dims := range s.boxes {
		e := t.emitter(u)
		e.bind(s.flat.Z, cpp("%s", batch))
		e.bind(rowOf(s.which, s.flat), cpp("%s", s.row))
		e.bind(s.flat.K, cpp("%s", k))
		var coordinates []code
		for _, d := range dims {
			coordinates = append(coordinates, plus(e.atom(d.atom), d.from))
		}
		head := cpp("dm::tile_load(%s, %s, %s, %s, %s, %s)", to, at, ident(s.fields[n].Name), full, i, coordinates)
		if s.c.shares(s.which) { // to both blocks of the cluster
			head = cpp("dm::tile_multicast(%s, %s, %s, %s, %s, 3, %s)", to, at, ident(s.fields[n].Name), full, i, coordinates)
		}
		loads = append(loads, &stmt{head: head})
	}
	arg := s.row
	if s.two() {
		arg = operandRow
	}
	u.enter(block, "DM_FN void load_tile(dm::Shared<Elem> %s, dm::i32 %s, dm::Shared<dm::u64> %s, dm::i32 %s, dm::i32 %s, dm::i32 %s, dm::i32 %s) const",
		def(to), def(at), def(full), def(i), def(batch), def(arg), def(k))
	if s.two() {
		u.line("const dm::i32 %s = %s", def(s.row), s.column())
		u.add(&stmt{head: cpp("if (%s / %d %% 2 == 0)", arg, s.group()), style: inLine, body: loads[:1]})
		u.add(&stmt{head: cpp("else"), style: inLine, body: loads[1:]})
	} else {
		u.add(loads[0])
	}
	u.leave()
}
