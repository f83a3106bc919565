package partition

import (
	"math"
	"slices"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// scoring is an attention, or the gradient of one, whose queries or keys are divided.
type scoring struct {
	*partitioner
	x             factored
	a             assignment
	grad          bool
	rank          int
	queries, keys []int // atoms
	ring          bool  // keys and queries are divided alike

	n, m     int64 // queries and keys of the whole
	own, its int64 // queries and keys of a piece
	shift    int64 // a causal query i sees the keys up to i + shift
	causal   bool
	pieces   []*ir.Value
}

func (p *partitioner) scoring(x factored, a assignment) *scoring {
	q, k := x.o.Operands[0].Tensor(), x.o.Operands[1].Tensor()
	s := &scoring{partitioner: p, x: x, a: a, grad: x.o.Name == "dm.attention_grad", rank: q.Rank(), causal: op.Bool(x.o, "causal")}
	d := s.rank - 2
	s.queries, s.keys = over(x.operand(0), d, a), over(x.operand(1), d, a)
	s.ring = len(s.keys) > 0 && slices.Equal(s.queries, s.keys)
	s.n, _ = q.Shape[d].Int()
	s.m, _ = k.Shape[d].Int()
	s.shift = s.m - s.n
	s.own, s.its = piece(s.n, p.grid.Count(s.queries)), piece(s.m, p.grid.Count(s.keys))
	return s
}

func piece(n int64, p int) int64 { return (n + int64(p) - 1) / int64(p) }

// sees reports whether a query at position r of the ring sees a key at position c.
func (s *scoring) sees(r, c int64) bool {
	if r*s.own >= s.n || c*s.its >= s.m {
		return false
	}
	return !s.causal || c*s.its <= min(s.n, (r+1)*s.own)-1+s.shift
}

// steps are the pairs of each step of the ring but the first. After step t the device at position r
// has the keys of position r - t; they travel as far as a query sees them.
func (s *scoring) steps() [][][2]int {
	p := int64(s.grid.Count(s.keys))
	out := make([][][2]int, p)
	for c := range p {
		last := int64(0)
		for t := range p {
			if s.sees((c+t)%p, c) {
				last = t
			}
		}
		for t := int64(1); t <= last; t++ {
			out[t] = append(out[t], [2]int{int((c + t - 1) % p), int((c + t) % p)})
		}
	}
	return out
}

// back are the pairs that bring the gradients of step t home.
func (s *scoring) back(t int64) (pairs [][2]int) {
	p := int64(s.grid.Count(s.keys))
	for c := range p {
		if r := (c + t) % p; s.sees(r, c) {
			pairs = append(pairs, [2]int{int(r), int(c)})
		}
	}
	return pairs
}

// maxRing is how many devices a ring has at most, whose steps are written out.
const maxRing = 64

func (p *partitioner) ringFits(x factored, a assignment) bool {
	s := p.scoring(x, a)
	return !s.ring || s.grid.Count(s.keys) <= maxRing
}

func (p *partitioner) attendSent(x factored, a assignment) int64 {
	s := p.scoring(x, a)
	if !s.ring {
		if s.grad || len(s.keys) == 0 {
			return 0
		}
		// The maximum and the sum of each query.
		q := x.o.Operands[0].Tensor()
		shape := p.grid.Piece(p.shape(q), p.required(x, 0, a))
		rows := product(shape[:s.rank-1]) * wide(q.Elem).Bits() / 8
		return 2 * 2 * rows * int64(p.grid.Count(s.keys)-1) * p.groups(s.keys)
	}
	sends := 0
	for t, pairs := range s.steps() {
		sends += len(pairs)
		if s.grad && t > 0 {
			sends += len(s.back(int64(t)))
		}
	}
	return int64(sends) * (p.bytes(x, 1, a) + p.bytes(x, 2, a)) * p.groups(s.keys)
}

// attend computes an attention or its gradient where keys are divided, or the queries of one
// that is causal.
func (p *partitioner) attend(x factored, a assignment) {
	s := p.scoring(x, a)
	if s.pieces = p.pieces(x, a); s.pieces == nil {
		return
	}
	d := s.rank - 2
	for i := range s.pieces {
		if v := x.o.Operands[i].Tensor(); (i == 1 || i == 2) && len(s.keys) > 0 {
			s.pieces[i] = p.mask(v, s.pieces[i], p.required(x, i, a), d, types.Add)
		} else if at := v.Rank() - 2; i == op.OperandNumber(x.o, "mask") {
			if at >= 0 {
				s.pieces[i] = p.mask(v, s.pieces[i], p.required(x, i, a), at, types.Add)
			}
		} else if s.grad && len(s.queries) > 0 && v.Rank() > d {
			kind := types.Add
			if i == 4 {
				kind = types.Min // e^(s - ∞) = 0: no gradient comes from a query that is padding
			}
			s.pieces[i] = p.mask(v, s.pieces[i], p.required(x, i, a), d, kind)
		}
	}
	switch {
	case s.ring && s.grad:
		s.passGradients()
	case s.ring:
		s.pass()
	case s.grad || len(s.keys) == 0:
		for i, v := range s.compute(s.pieces[1], s.pieces[2], s.place(), len(x.o.Results)) {
			p.add(x.o.Results[i], p.produced(x, i, a), v)
		}
	default:
		s.join()
	}
}

// place is the position along the keys' atoms of the keys that a device has.
func (s *scoring) place() *ir.Value {
	if len(s.keys) == 0 {
		return s.whole(0)
	}
	return s.position(s.keys)
}

// widen converts the operands but k and v, which are sent as they are.
func (s *scoring) widen() {
	for i, v := range s.pieces {
		if i != 1 && i != 2 && v.Elem().IsFloat() {
			s.pieces[i] = s.b.Convert(v, wide(v.Elem()))
		}
	}
}

// compute is the op on the device's queries and the keys of position place.
func (s *scoring) compute(k, v, place *ir.Value, results int) []*ir.Value {
	operands := slices.Clone(s.pieces)
	elem := operands[0].Elem()
	operands[1], operands[2] = s.b.Convert(k, elem), s.b.Convert(v, elem)
	first := 3
	if s.grad {
		first = 6
	}
	operands = operands[:first]
	mask := s.scoreMask(place, elem)
	if mask != nil {
		operands = append(operands, mask)
	}
	var attrs []types.Named
	if scale := s.x.o.Attr("scale"); scale != nil {
		attrs = append(attrs, types.Named{Name: "scale", Value: scale})
	}
	q := operands[0].Tensor()
	var ts []types.Type
	if s.grad {
		for i := range 3 {
			ts = append(ts, operands[i].Tensor().With(operands[i].Tensor().Shape...))
		}
	} else {
		ts = append(ts, q.With(append(slices.Clone(q.Shape[:s.rank-1]), operands[2].Tensor().Shape[s.rank-1])...))
		if results > 1 {
			lse := q.With(q.Shape[:s.rank-1]...)
			lse.Elem = wide(elem)
			ts = append(ts, lse)
		}
	}
	o := s.b.Make(s.x.o.Name, operands, attrs, ts...)
	if o == nil {
		return nil
	}
	if s.grad || len(s.keys) == 0 || mask == nil {
		return o.Results
	}
	return s.filled(o.Results, mask)
}

// filled are the results of an attention to some of the keys, of a query that sees none of these
// 0 and -∞: executors do not agree about them.
func (s *scoring) filled(results []*ir.Value, mask *ir.Value) []*ir.Value {
	y, lse := results[0], results[1]
	if last := mask.Tensor().Rank() - 1; last >= 0 {
		mask = s.reduce(types.Max, mask, last)
	}
	blind := s.equal(mask, s.neutral(types.Max, mask))
	y = s.b.Value("select", []*ir.Value{blind, s.b.Splat(scalar(y), 0), y}, nil)
	if shape := blind.Tensor().Shape; len(shape) > 0 {
		blind = s.b.Reshape(blind, shape[:len(shape)-1]...)
	}
	return []*ir.Value{y, s.b.Value("select", []*ir.Value{blind, s.neutral(types.Max, lse), lse}, nil)}
}

func (s *scoring) equal(x, y *ir.Value) *ir.Value {
	return s.b.Value("compare", []*ir.Value{x, y}, []types.Named{{Name: "direction", Value: types.Keyword("eq")}})
}

// scoreMask is what is added to the scores: the op's mask for these keys, and -∞ where a
// query does not see a key; nil where that is nothing.
func (s *scoring) scoreMask(place *ir.Value, elem types.Elem) *ir.Value {
	start := s.times(place, s.its)
	var mask *ir.Value
	if i := op.OperandNumber(s.x.o, "mask"); i >= 0 {
		mask = s.b.Convert(s.pieces[i], elem)
		if last := mask.Tensor().Rank() - 1; last >= 0 && len(s.keys) > 0 && !isOne(mask.Tensor().Shape[last]) {
			mask = s.pad(mask, last, s.its*int64(s.grid.Count(s.keys)))
			mask = s.take(mask, last, s.its, start)
		}
	}
	key := s.b.Binary("add", s.count(s.its), start)
	var seen *ir.Value
	if s.its*int64(s.grid.Count(s.keys)) > s.m {
		seen = s.compare("lt", key, s.m)
	}
	if s.causal {
		from := s.whole(s.shift)
		if len(s.queries) > 0 {
			from = s.b.Binary("add", s.times(s.position(s.queries), s.own), from)
		}
		limit := s.b.Reshape(s.b.Binary("add", s.count(s.own), from), dim.Const(s.own), dim.Const(1))
		sees := s.b.Value("compare", []*ir.Value{key, limit}, []types.Named{{Name: "direction", Value: types.Keyword("le")}})
		if seen != nil {
			sees = s.b.Binary("and", sees, seen)
		}
		seen = sees
	}
	if seen == nil {
		return mask
	}
	t := &types.Tensor{Elem: elem, At: types.Placement{Space: types.HBM}}
	none := s.b.Splat(t, math.Inf(-1))
	if mask == nil {
		mask = s.b.Splat(t, 0)
	}
	return s.b.Value("select", []*ir.Value{seen, mask, none}, nil)
}

func isOne(d dim.Dim) bool { n, ok := d.Int(); return ok && n == 1 }

// count is 0, 1, … n-1.
func (s *scoring) count(n int64) *ir.Value {
	return s.b.Value("iota", nil, []types.Named{{Name: "dim", Value: types.Int{}}}, index.With(dim.Const(n)))
}

// pass hands blocks of keys and values round the ring (Liu et al., arXiv 2310.01889), and joins what
// they give: y = Σ yᵢ·e^lseᵢ / Σ e^lseᵢ.
func (s *scoring) pass() {
	elem := s.pieces[0].Elem()
	s.widen()
	var y, lse *ir.Value
	s.around(func(t int64, k, v, place *ir.Value) {
		r := s.compute(k, v, place, 2)
		if r == nil {
			return
		}
		if y == nil {
			y, lse = r[0], r[1]
			return
		}
		most := s.b.Binary("max", lse, r[1])
		w0, w1 := s.weight(lse, most), s.weight(r[1], most)
		sum := s.b.Binary("add", w0, w1)
		y = s.b.Binary("add", s.weighted(y, s.b.Binary("div", w0, sum)), s.weighted(r[0], s.b.Binary("div", w1, sum)))
		lse = s.b.Binary("add", most, s.b.Unary("log", sum))
	})
	if y != nil {
		s.done(s.b.Convert(s.seeing(y, lse), elem), s.seeing(lse, lse))
	}
}

// seeing is v, which is no number for a query that saw no key, as on one device.
func (s *scoring) seeing(v, lse *ir.Value) *ir.Value {
	zero := s.b.Splat(scalar(v), 0)
	empty := s.equal(lse, s.neutral(types.Max, lse))
	if v != lse {
		empty = s.b.Reshape(empty, append(slices.Clone(empty.Tensor().Shape), dim.Const(1))...)
	}
	return s.b.Value("select", []*ir.Value{empty, s.b.Binary("div", zero, zero), v}, nil)
}

// around calls visit with the keys and values of each step that some query sees.
func (s *scoring) around(visit func(t int64, k, v, place *ir.Value)) {
	k, v := s.pieces[1], s.pieces[2]
	p := int64(s.grid.Count(s.keys))
	for t, pairs := range s.steps() {
		if t > 0 {
			if len(pairs) == 0 {
				return
			}
			k, v = s.permute(k, pairs, s.keys), s.permute(v, pairs, s.keys)
		}
		place := s.position(s.keys)
		if t > 0 { // r - t, from the end again where that is negative
			behind := s.b.Binary("sub", place, s.whole(int64(t)))
			place = s.b.Value("select", []*ir.Value{s.compare("lt", behind, 0), s.b.Binary("add", behind, s.whole(p)), behind}, nil)
		}
		visit(int64(t), k, v, place)
	}
}

// weight is e^(lse - most), 0 for a query that saw no key.
func (s *scoring) weight(lse, most *ir.Value) *ir.Value {
	empty := s.equal(lse, s.neutral(types.Max, lse))
	return s.b.Value("select", []*ir.Value{empty, s.b.Splat(scalar(lse), 0), s.b.Unary("exp", s.b.Binary("sub", lse, most))}, nil)
}

// weighted is y·w for each query, 0 where w is 0 even if y is no number.
func (s *scoring) weighted(y, w *ir.Value) *ir.Value {
	w = s.b.Reshape(w, append(slices.Clone(w.Tensor().Shape), dim.Const(1))...)
	zero := s.b.Splat(scalar(y), 0)
	empty := s.equal(w, zero)
	return s.b.Value("select", []*ir.Value{empty, zero, s.b.Binary("mul", y, w)}, nil)
}

// done records the results.
func (s *scoring) done(pieces ...*ir.Value) {
	for i, r := range s.x.o.Results {
		s.add(r, s.produced(s.x, i, s.a), pieces[i])
	}
}

// join computes with the keys that each device has; y is the sum of what the devices give, weighted.
func (s *scoring) join() {
	elem := s.pieces[0].Elem()
	s.widen()
	r := s.compute(s.pieces[1], s.pieces[2], s.place(), 2)
	if r == nil {
		return
	}
	most := s.allReduce(types.Max, r[1], s.keys)
	w := s.weight(r[1], most)
	sum := s.allReduce(types.Add, w, s.keys)
	y := s.weighted(r[0], s.b.Binary("div", w, sum))
	lse := s.b.Binary("add", most, s.b.Unary("log", sum))
	s.done(s.b.Convert(y, elem), s.seeing(lse, lse))
}

// passGradients hands keys and values round as pass does. What a step gives of their gradients goes
// straight home, which sends no more than reducing and scattering them.
func (s *scoring) passGradients() {
	elem := s.pieces[0].Elem()
	s.widen()
	var sums [3]*ir.Value
	sum := func(i int, v *ir.Value) {
		if sums[i] == nil {
			sums[i] = v
		} else {
			sums[i] = s.b.Binary("add", sums[i], v)
		}
	}
	s.around(func(t int64, k, v, place *ir.Value) {
		r := s.compute(k, v, place, 3)
		if r == nil {
			return
		}
		sum(0, r[0])
		for i, g := range r[1:] {
			if t > 0 {
				g = s.b.Convert(s.permute(s.b.Convert(g, elem), s.back(t), s.keys), g.Elem())
			}
			sum(i+1, g)
		}
	})
	if sums[0] == nil {
		return
	}
	s.done(s.b.Convert(sums[0], elem), s.b.Convert(sums[1], elem), s.b.Convert(sums[2], elem))
}
