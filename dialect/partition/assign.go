package partition

import (
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/shard"
	"dmir/dialect/types"
)

// An assignment is the atoms over which each factor of an op is divided, and those along which
// operands are partial.
type assignment struct {
	factors map[int][]int
	partial []int // atoms
	set     []int // the operands that are partial, in which the op is linear together
}

// factored is an op with its factors.
type factored struct {
	o      *ir.Op
	f      *op.Factors
	pieces []op.Pieces
}

// factorsOf are the factors of o, none where it cannot be divided.
func factorsOf(o *ir.Op) factored {
	f := op.DivisionOf(o)
	if f == nil {
		f = &op.Factors{}
	}
	return factored{o, f, f.Pieces()}
}

// dims are the factors of the dimensions of operand i.
func (x factored) operand(i int) [][]int { return x.of(x.f.Operands, i, x.o.Operands[i]) }

// result are those of result i.
func (x factored) result(i int) [][]int { return x.of(x.f.Results, i, x.o.Results[i]) }

func (x factored) of(list [][][]int, i int, v *ir.Value) [][]int {
	if i < len(list) && list[i] != nil {
		return list[i]
	}
	if t := v.Tensor(); t != nil {
		return make([][]int, t.Rank())
	}
	return nil
}

// layout is how a tensor whose dimensions have the factors dims is divided.
func (p *partitioner) layout(x factored, dims [][]int, a assignment) shard.Layout {
	l := shard.Whole(len(dims))
	for d, list := range dims {
		l.Dims[d] = slices.Clone(p.grid.Join(list, a.factors, x.f.Sizes))
	}
	return l
}

// required is the layout that operand i must have.
func (p *partitioner) required(x factored, i int, a assignment) shard.Layout {
	l := p.layout(x, x.operand(i), a)
	if slices.Contains(a.set, i) {
		l.Partial = slices.Clone(a.partial)
	}
	return l
}

// produced is the layout of result i: partial along the axes of reduced factors that it
// lacks.
func (p *partitioner) produced(x factored, i int, a assignment) shard.Layout {
	dims := x.result(i)
	l := p.layout(x, dims, a)
	l.Partial = slices.Clone(a.partial)
	split := slices.Concat(l.Dims...)
	for n, atoms := range a.factors {
		exchanged := x.f.Kinds[n] == op.Exchanged && !slices.Contains(x.f.Complete, i)
		if op.Divided(dims, n) || x.f.Kinds[n] != op.Reduced && !exchanged {
			continue
		}
		for _, atom := range atoms {
			if !slices.Contains(split, atom) { // else the pieces are complete: see Factors.Together
				l.Partial = append(l.Partial, atom)
			}
		}
	}
	slices.Sort(l.Partial)
	if len(l.Partial) > 0 {
		l.Reduce = x.f.Combine
	}
	return l
}

// The weights by which assignments are compared: a byte that is sent takes as long as the
// accesses to memory of sentWeight bytes, and one of these as long as flopWeight operations. They are
// ratios of today's accelerators, rounded; they decide only between ways to divide one op.
const (
	sentWeight = 32
	flopWeight = 128
)

// avoid is as many bytes as no program sends.
const avoid = 1 << 50

// avoided is avoid for a plan with other collectives than reductions, where only these are wanted.
func (p *partitioner) avoided(plan *shard.Plan) int64 {
	if !p.sums || plan == nil {
		return 0
	}
	for _, m := range plan.Moves {
		switch m.Kind {
		case shard.Gather, shard.Swap, shard.Scatter, shard.Permute:
			return avoid
		}
	}
	return 0
}

// score is what an assignment costs all devices together.
func (p *partitioner) score(x factored, a assignment) float64 {
	sent := int64(0)
	for i, v := range x.o.Operands {
		if v.Tensor() == nil {
			continue
		}
		n, _, plan := p.cost(v, p.required(x, i, a))
		sent += n + p.avoided(plan)
	}
	work := 0.0
	for _, v := range slices.Concat(x.o.Operands, x.o.Results) {
		if t := v.Tensor(); t != nil {
			n, _ := t.Bytes().Int()
			work += float64(n)
		}
	}
	if d := op.Of(x.o); d.FLOP != nil {
		n, _ := d.FLOP(x.o).Int()
		work += float64(n) / flopWeight
	}
	var used []int
	for _, atoms := range a.factors {
		used = append(used, atoms...)
	}
	slices.Sort(used)
	used = slices.Compact(used)
	if e := exchangeOf(x, a); e != nil {
		n := e.sent(p, x, a)
		if sent += n; p.sums && n > 0 {
			sent += avoid
		}
	}
	work *= float64(p.grid.Mesh.Devices()) / float64(p.grid.Count(used))
	for i, v := range x.o.Results {
		t := v.Tensor()
		if t == nil {
			continue
		}
		// Results are needed as propagation found them.
		want, _ := p.values.Of(v)
		l := p.produced(x, i, a)
		plan := p.grid.Plan(p.shape(t), l, want)
		n := plan.Sent*t.Elem.Bits()/8 + p.avoided(plan)
		if len(l.Partial) > 0 && l.Reduce == types.Add {
			n /= p.terms(v)
		}
		sent += n
	}
	return sentWeight*float64(sent) + work
}

// choose is the assignment with the least score. Each tensor's layout, of results as
// propagation found them and of operands as devices have them, is tried as the first, completed by the
// others.
func (p *partitioner) choose(x factored) assignment {
	var seen []assignment
	try := func(lists []map[int][]int) {
		a := assignment{factors: map[int][]int{}}
		for _, of := range lists {
			for n := range x.f.Sizes {
				a.merge(n, of[n], x.f.Together)
			}
		}
		p.nested(x, a)
		a.agree(x.f.Together)
		for _, b := range []assignment{a, a.alone(x.f)} {
			if p.possible(x, b) && !slices.ContainsFunc(seen, b.equal) {
				seen = append(seen, b)
			}
		}
	}
	var lists []map[int][]int
	add := func(l shard.Layout, dims [][]int) {
		if of := p.grid.Factors(l, dims, x.f.Sizes, x.pieces); slices.ContainsFunc(dims, func(list []int) bool {
			return slices.ContainsFunc(list, func(n int) bool { return len(of[n]) > 0 })
		}) {
			lists = append(lists, of)
		}
	}
	for i, v := range x.o.Results {
		if v.Tensor() != nil {
			l, _ := p.values.Of(v)
			add(l, x.result(i))
		}
	}
	for i, v := range x.o.Operands {
		if v.Tensor() == nil {
			continue
		}
		l, _ := p.values.Of(v)
		add(l, x.operand(i))
		for _, have := range p.have[v] {
			add(have.layout, x.operand(i))
		}
	}
	try(nil)
	for i := range lists {
		try(slices.Concat(lists[i:i+1], lists[:i], lists[i+1:]))
		try(lists[i : i+1])
	}
	best, least := assignment{}, 0.0
	for i, a := range seen {
		for _, b := range append(p.partials(x, a), a) {
			if s := p.score(x, b); i == 0 && best.factors == nil || s < least {
				best, least = b, s
			}
		}
	}
	return best
}

// nested takes back factors of a that some dimension has behind one that is not cut into single
// elements: its pieces would not be contiguous.
func (p *partitioner) nested(x factored, a assignment) {
	for changed := true; changed; {
		changed = false
		for _, dims := range slices.Concat(x.f.Operands, x.f.Results) {
			for _, list := range dims {
				outer := true
				for _, n := range list {
					if !outer && len(a.factors[n]) > 0 {
						delete(a.factors, n)
						changed = true
					}
					size, known := x.f.Sizes[n].Int()
					outer = outer && known && int64(p.grid.Count(a.factors[n])) == size
				}
			}
		}
	}
}

// partials are the assignments of a in which operands stay partial.
func (p *partitioner) partials(x factored, a assignment) []assignment {
	var out []assignment
	if exchangeOf(x, a) != nil {
		return nil
	}
	for _, set := range x.f.Linear {
		if len(set) == 0 {
			continue
		}
		for _, have := range p.have[x.o.Operands[set[0]]] {
			atoms := have.layout.Partial
			if len(atoms) == 0 || have.layout.Reduce != types.Add || x.f.Combine != types.Add || a.uses(atoms) {
				continue
			}
			// What is reduced later must not be more, nor happen more than once.
			if slices.ContainsFunc(set, func(i int) bool { return len(x.o.Operands[i].Uses) > 1 || !p.partial(x.o.Operands[i], atoms) }) {
				continue
			}
			out = append(out, assignment{factors: a.factors, partial: atoms, set: set})
		}
	}
	return out
}

// partial reports whether the devices have v partial along atoms.
func (p *partitioner) partial(v *ir.Value, atoms []int) bool {
	return slices.ContainsFunc(p.have[v], func(have version) bool {
		return slices.Equal(have.layout.Partial, atoms) && have.layout.Reduce == types.Add
	})
}

func (a assignment) uses(atoms []int) bool {
	for _, list := range a.factors {
		if slices.ContainsFunc(list, func(n int) bool { return slices.Contains(atoms, n) }) {
			return true
		}
	}
	return false
}

// merge divides factor n over the atoms of list that follow those it has and that no other factor
// is divided over, but for one of together.
func (a assignment) merge(n int, list []int, together [2]int) {
	have := a.factors[n]
	if len(list) <= len(have) || !slices.Equal(list[:len(have)], have) {
		return
	}
	for _, atom := range list[len(have):] {
		taken := false
		for m, of := range a.factors {
			paired := together[0] != together[1] && m != n && slices.Contains(together[:], m) && slices.Contains(together[:], n)
			taken = taken || slices.Contains(of, atom) && !paired
		}
		if taken {
			break
		}
		a.factors[n] = append(slices.Clone(a.factors[n]), atom)
	}
}

func (a assignment) equal(b assignment) bool {
	count := 0
	for n, list := range a.factors {
		if len(list) > 0 {
			count++
			if !slices.Equal(list, b.factors[n]) {
				return false
			}
		}
	}
	for _, list := range b.factors {
		if len(list) > 0 {
			count--
		}
	}
	return count == 0
}
