package partition

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// span is what devices need of a dimension of n elements, of which each has a piece of size: that
// at position k of count the elements from k·step + first on, length of them.
type span struct {
	n, size, count      int64
	step, first, length int64
	low, high, inner    int64 // padding and the distance of elements that remain for the op
	atoms               []int
}

// spanOf is the span of dimension d of the first operand of x; ok is false where pieces of the
// result have no such span.
func (p *partitioner) spanOf(x factored, d int, a assignment) (s span, ok bool) {
	atoms := over(x.operand(0), d, a)
	m, moves := op.MovesOf(x.o, d)
	if len(atoms) == 0 || !moves {
		return s, false
	}
	n, _ := x.o.Operands[0].Tensor().Shape[d].Int()
	s = span{n: n, count: int64(p.grid.Count(atoms)), atoms: atoms, inner: m.Spread}
	s.size = (n + s.count - 1) / s.count
	if x.o.Name == "dm.convolution" && len(over(x.operand(1), d, a)) > 0 { // taps are divided
		taps := (m.Size + s.count - 1) / s.count
		places, _ := x.o.Results[0].Tensor().Shape[d].Int()
		s.step, s.first = taps*m.Dilation, -m.Low
		s.length = (taps-1)*m.Dilation + (places-1)*m.Stride + 1
		return s, !s.many()
	}
	places, _ := x.o.Results[0].Tensor().Shape[d].Int()
	if x.o.Name == "dm.select_and_scatter" {
		places, _ = x.o.Operands[1].Tensor().Shape[d].Int()
	}
	places = (places + s.count - 1) / s.count
	if places*m.Stride%m.Spread != 0 {
		return s, false
	}
	reach := (places-1)*m.Stride + (m.Size-1)*m.Dilation // of the last tap of the last place
	s.step = places * m.Stride / m.Spread
	s.first = -floor(m.Low, m.Spread)
	s.length = floor(reach-m.Low, m.Spread) - s.first + 1
	s.low = m.Spread*s.first + m.Low
	s.high = reach - s.low - (s.length-1)*m.Spread
	if x.o.Name == "dm.select_and_scatter" && s.step != s.size {
		return s, false
	}
	return s, s.length > 0 && !s.many()
}

// floor is a/b rounded down.
func floor(a, b int64) int64 {
	if a < 0 {
		return -((b - 1 - a) / b)
	}
	return a / b
}

// transfer is what devices take from those shift positions behind them: length elements, those
// of position k from at[k] on in the whole; -1 where it takes none.
type transfer struct {
	shift, length int64
	at            []int64
}

// each visits what devices take: that at position k the elements of the whole from from to to, which
// the one shift positions behind it has. Its cost is that of the visits, and not of all devices and
// distances.
func (s span) each(visit func(k, shift, from, to int64)) {
	for k := range s.count {
		start := k*s.step + s.first
		if start >= s.n || s.size == 0 {
			return // nor do those behind it
		}
		from, to := max(start, 0), min(start+s.length, s.n)
		for j := from / s.size; j*s.size < to; j++ {
			visit(k, j-k, max(from, j*s.size), min(to, (j+1)*s.size))
		}
	}
}

// mostVisits bounds what each visits; devices that would have to take more gather the whole.
const mostVisits = 1 << 20

// many reports whether each would visit more than mostVisits.
func (s span) many() bool {
	return s.size > 0 && min(s.length, s.n)/s.size+2 > mostVisits/min(s.count, s.n)
}

// transfers are in the order of the shifts; that by 0 is what a device has itself.
func (s span) transfers() []transfer {
	byShift := map[int64]*transfer{}
	s.each(func(_, shift, from, to int64) {
		t := byShift[shift]
		if t == nil {
			t = &transfer{shift: shift, at: make([]int64, s.count)}
			for k := range t.at {
				t.at[k] = -1
			}
			byShift[shift] = t
		}
		t.length = max(t.length, to-from)
	})
	s.each(func(k, shift, from, _ int64) {
		t := byShift[shift]
		t.at[k] = min(from, (k+shift+1)*s.size-t.length)
	})
	out := make([]transfer, 0, len(byShift))
	for _, shift := range slices.Sorted(maps.Keys(byShift)) {
		t := byShift[shift]
		if s.step == s.size { // all take the same
			lo, hi := s.part(shift)
			t.length = hi - lo
		}
		out = append(out, *t)
	}
	return out
}

// part is what devices need of those at a distance, counted from where these begin, if that is the
// same for all.
func (s span) part(shift int64) (from, to int64) {
	return max(s.first-shift*s.size, 0), min(s.first+s.length-shift*s.size, s.size)
}

// shifts are the least and the greatest distance at which a device needs something, which the
// first or the last one does.
func (s span) shifts() (least, most int64) {
	last := s.count - 1
	first := last*s.step + s.first
	return min(floor(s.first, s.size), floor(first, s.size)-last), max(floor(s.first+s.length-1, s.size), floor(first+s.length-1, s.size)-last)
}

// pairs are the positions that give and those that get.
func (t transfer) pairs() (out [][2]int) {
	for k, at := range t.at {
		if at >= 0 {
			out = append(out, [2]int{k + int(t.shift), k})
		}
	}
	return out
}

// sent is how many elements a group sends.
func (s span) sent() int64 {
	length, pairs := map[int64]int64{}, map[int64]int64{}
	s.each(func(_, shift, from, to int64) {
		length[shift] = max(length[shift], to-from)
		pairs[shift]++
	})
	n := int64(0)
	for shift, count := range pairs {
		each := length[shift]
		if s.step == s.size {
			lo, hi := s.part(shift)
			each = hi - lo
		}
		if shift != 0 {
			n += each * count
		}
	}
	return n
}

// spans are those of the dimensions of the first operand along which its devices exchange elements.
func (p *partitioner) spans(x factored, a assignment) (dims []int, spans []span, ok bool) {
	for d, list := range x.operand(0) {
		if len(over(x.operand(0), d, a)) == 0 || x.f.Kinds[list[0]] != op.Exchanged {
			continue
		}
		s, ok := p.spanOf(x, d, a)
		if !ok {
			return nil, nil, false
		}
		dims, spans = append(dims, d), append(spans, s)
	}
	return dims, spans, true
}

func (p *partitioner) spansFit(x factored, a assignment) bool {
	_, _, ok := p.spans(x, a)
	return ok
}

func (p *partitioner) spansSent(x factored, a assignment) int64 {
	t := x.o.Operands[0].Tensor()
	shape := p.grid.Piece(p.shape(t), p.required(x, 0, a))
	dims, spans, _ := p.spans(x, a)
	total := int64(0)
	for i, d := range dims {
		shape[d] = 1
		total += spans[i].sent() * product(shape) * p.groups(spans[i].atoms)
		shape[d] = spans[i].length
	}
	if x.o.Name == "dm.select_and_scatter" {
		total *= 2 // what neighbours add goes back
	}
	return total * t.Elem.Bits() / 8
}

// windows computes an op whose window moves over divided dimensions: the devices get from their
// neighbours what their windows reach, the halo, one dimension after the other.
func (p *partitioner) windows(x factored, a assignment) {
	pieces := p.pieces(x, a)
	if pieces == nil {
		return
	}
	var fill *ir.Value // what is outside of the whole; nil: 0
	switch x.o.Name {
	case "dm.pad":
		fill = pieces[1]
	case "dm.reduce_window":
		kind, _ := types.ReductionOf(x.o.Str("kind"))
		if kind != types.Add {
			fill = p.neutral(kind, pieces[0])
		}
	}
	dims, spans, _ := p.spans(x, a)
	if x.o.Name == "dm.select_and_scatter" {
		p.addInWindows(x, a, pieces, dims, spans)
		return
	}
	for i, d := range dims {
		if x.o.Name == "dm.convolution" { // taps behind the window
			pieces[1] = p.mask(x.o.Operands[1].Tensor(), pieces[1], p.required(x, 1, a), d, types.Add)
		}
		pieces[0] = p.reach(pieces[0], d, spans[i], fill)
	}
	piece := p.emit(x.o, pieces, p.layouts(x, a))
	for i, d := range dims {
		moveOn(piece, d, spans[i])
	}
}

// reach gives a device the elements of dimension d that it needs of x, the pieces of all.
func (p *partitioner) reach(x *ir.Value, d int, s span, fill *ir.Value) *ir.Value {
	var y *ir.Value
	inside := fill == nil && s.n%s.count == 0 // then what no device has is 0, and there is no padding
	if s.step == s.size {
		y = p.reachEvenly(x, d, s)
	} else {
		y = p.reachAnywhere(x, d, s)
	}
	if inside || s.first >= 0 && (s.count-1)*s.step+s.first+s.length <= s.n {
		return y
	}
	if fill == nil {
		fill = p.b.Splat(scalar(x), 0)
	}
	count := p.b.Value("iota", nil, []types.Named{{Name: "dim", Value: types.Int{}}}, index.With(column(y, d)...))
	start := p.b.Binary("add", p.times(p.position(s.atoms), s.step), p.whole(s.first))
	at := p.b.Binary("add", count, start)
	within := p.b.Binary("and", p.compare("ge", at, 0), p.compare("lt", at, s.n))
	return p.b.Value("select", []*ir.Value{within, y, fill}, nil)
}

// reachEvenly: all devices need the same part of those at the same distance, 0 where there is none.
func (p *partitioner) reachEvenly(x *ir.Value, d int, s span) *ir.Value {
	ts := s.transfers()
	if least, most := s.shifts(); least <= 0 && most >= 0 && !slices.ContainsFunc(ts, func(t transfer) bool { return t.shift == 0 }) {
		at, _ := slices.BinarySearchFunc(ts, int64(0), func(t transfer, shift int64) int { return cmp.Compare(t.shift, shift) })
		ts = slices.Insert(ts, at, transfer{})
	}
	var parts []*ir.Value
	done := s.first // up to which there are parts, counted from where a device's piece begins
	outside := func(to int64) {
		if to > done {
			t := *x.Tensor()
			t.Shape = replaced(t.Shape, d, to-done)
			parts = append(parts, p.b.Splat(&t, 0))
		}
	}
	for _, t := range ts {
		from, to := s.part(t.shift)
		outside(t.shift*s.size + from)
		part := p.part(x, d, from, to)
		if t.shift != 0 {
			part = p.permute(part, t.pairs(), s.atoms)
		}
		parts = append(parts, part)
		done = t.shift*s.size + to
	}
	outside(s.first + s.length)
	if len(parts) == 1 {
		return parts[0]
	}
	return p.b.Value("concatenate", parts, []types.Named{{Name: "dim", Value: types.Int{V: int64(d)}}})
}

// reachAnywhere: what is needed depends on the position. Parts are written where they belong into
// elements with a margin on both sides, as they may be longer than needed, and those that a device does
// not get behind them.
func (p *partitioner) reachAnywhere(x *ir.Value, d int, s span) *ir.Value {
	t := *x.Tensor()
	t.Shape = replaced(t.Shape, d, s.length+3*s.size)
	y := p.b.Splat(&t, 0)
	for _, tr := range s.transfers() {
		gives, puts := make([]int64, s.count), make([]int64, s.count)
		for k, at := range tr.at {
			if at < 0 {
				puts[k] = s.length + 2*s.size
				continue
			}
			from := int64(k) + tr.shift
			gives[from] = at - from*s.size
			puts[k] = at - int64(k)*s.step - s.first + s.size
		}
		part := p.take(x, d, tr.length, p.lookup(gives, s.atoms))
		if tr.shift != 0 {
			part = p.permute(part, tr.pairs(), s.atoms)
		}
		operands := []*ir.Value{y, part}
		for i := range t.Shape {
			if i == d {
				operands = append(operands, p.lookup(puts, s.atoms))
			} else {
				operands = append(operands, p.whole(0))
			}
		}
		y = p.b.Value("dynamic_update_slice", operands, nil)
	}
	return p.part(y, d, s.size, s.size+s.length)
}

// addInWindows is a select_and_scatter: devices select in their windows, and give what these add to
// elements of their neighbours back.
func (p *partitioner) addInWindows(x factored, a assignment, pieces []*ir.Value, dims []int, spans []span) {
	kind, _ := types.ReductionOf(x.o.Str("kind"))
	v, source := pieces[0], pieces[1]
	v = p.finite(v, kind) // so that padding, which is infinite, is not chosen
	fill := p.neutral(kind, v)
	like := &ir.Op{Name: x.o.Name, Operands: x.o.Operands, Attrs: slices.Clone(x.o.Attrs)}
	for i, d := range dims {
		source = p.mask(x.o.Operands[1].Tensor(), source, p.required(x, 1, a), d, types.Add)
		v = p.reach(v, d, spans[i], fill)
		moveOn(like, d, spans[i])
	}
	y := p.b.Value(x.o.Name, []*ir.Value{v, source}, like.Attrs)
	for i, d := range slices.Backward(dims) {
		y = p.giveBack(y, d, spans[i])
	}
	p.add(x.o.Results[0], p.produced(x, 0, a), y)
}

// finite is v with its infinite elements of the sign of a maximum's neutral element, or a minimum's, as
// the next finite numbers.
func (p *partitioner) finite(v *ir.Value, kind types.Reduction) *ir.Value {
	most := map[types.Elem]float64{types.F64: math.MaxFloat64, types.F32: math.MaxFloat32, types.F16: 65504, types.BF16: 0x1.FEp127}[v.Elem()]
	if kind == types.Max {
		return p.b.Binary("max", v, p.b.Splat(scalar(v), -most))
	}
	return p.b.Binary("min", v, p.b.Splat(scalar(v), most))
}

// giveBack sums for each device what those that reach its piece along dimension d have for it.
func (p *partitioner) giveBack(y *ir.Value, d int, s span) *ir.Value {
	var sum *ir.Value
	for _, t := range s.transfers() {
		shift := t.shift
		from, to := s.part(shift)
		start := shift*s.size + from - s.first
		part := p.part(y, d, start, start+to-from)
		if shift != 0 {
			pairs := t.pairs()
			for k := range pairs {
				pairs[k][0], pairs[k][1] = pairs[k][1], pairs[k][0]
			}
			part = p.permute(part, pairs, s.atoms)
		}
		low, high := make([]int, part.Tensor().Rank()), make([]int, part.Tensor().Rank())
		low[d], high[d] = int(from), int(s.size-to)
		if low[d]+high[d] > 0 {
			part = p.b.Value("pad", []*ir.Value{part, p.b.Splat(scalar(part), 0)}, []types.Named{{Name: "low", Value: op.IntList(low...)}, {Name: "high", Value: op.IntList(high...)}})
		}
		if sum == nil {
			sum = part
		} else {
			sum = p.b.Binary("add", sum, part)
		}
	}
	return sum
}

// moveOn makes piece an op on the elements of a span along dimension d.
func moveOn(piece *ir.Op, d int, s span) {
	rank := piece.In(0).Rank()
	set := func(name string, at, size int, v, otherwise int64) {
		list := slices.Clone(op.Ints(piece, name))
		for len(list) < size {
			list = append(list, otherwise)
		}
		list[at] = v
		ints := make([]int, len(list))
		for i, n := range list {
			ints[i] = int(n)
		}
		piece.SetAttr(name, op.IntList(ints...))
	}
	switch piece.Name {
	case "dm.pad":
		set("low", d, rank, s.low, 0)
		set("high", d, rank, s.high, 0)
		set("interior", d, rank, s.inner-1, 0)
	case "dm.slice":
		dims, _ := op.Dims(piece, "dims", rank)
		i := slices.Index(dims, d)
		set("start_indices", i, len(dims), 0, 0)
		set("limit_indices", i, len(dims), s.length, 0)
	default:
		first := 0
		if piece.Name == "dm.convolution" {
			first = 2
		}
		pairs := make(types.Array, rank-first)
		have := op.Pairs(piece, "padding")
		for i := range pairs {
			pair := [2]int64{}
			if i < len(have) {
				pair = have[i]
			}
			if i == d-first {
				pair = [2]int64{s.low, s.high}
			}
			pairs[i] = op.IntList(int(pair[0]), int(pair[1]))
		}
		piece.SetAttr("padding", pairs)
	}
}
