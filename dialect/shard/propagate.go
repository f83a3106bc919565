package shard

import (
	"slices"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/mesh"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// Values are the layouts of a function's values.
type Values struct {
	Grid *Grid
	of   map[*ir.Value]*value
	memo *Memo // may be nil
}

// value is what is known of one value.
type value struct {
	layout Layout
	shape  []dim.Dim
	bytes  int64  // of the whole; 0 where sizes are symbols
	closed []bool // dimensions to which the text lets propagation add nothing
	stated bool   // the text states its sharding

	self  *ir.Value
	of    *types.Tensor
	rules []*rule // in which it takes part
	from  *value  // which gave it what it has last, in by
	by    *ir.Op
}

// Of is the layout of v, the caller's own, and whether the text states it.
func (v *Values) Of(x *ir.Value) (l Layout, stated bool) {
	if k := v.of[x]; k != nil {
		return k.layout.Clone(), k.stated
	}
	if t := x.Tensor(); t != nil {
		return Whole(t.Rank()), false
	}
	return Layout{}, false
}

// Sharding is Of as a type states it; nil of a value that every device has whole and of which
// the text states nothing.
func (v *Values) Sharding(x *ir.Value) (s *types.Sharding, stated bool) {
	l, stated := v.Of(x)
	if !stated && len(l.split())+len(l.Partial) == 0 {
		return nil, false
	}
	return v.Grid.Sharding(l), stated
}

// Why is the value from whose layout that of x follows, and the op in which it does; nil
// where the text states it, or nothing divides it.
func (v *Values) Why(x *ir.Value) (from *ir.Value, by *ir.Op) {
	if k := v.of[x]; k != nil && k.from != nil && !k.stated {
		return k.from.self, k.by
	}
	return nil, nil
}

// Problem is why a function cannot be divided.
type Problem struct {
	At        *ir.Op // nil: the function
	Msg, Help string
}

func (p *Problem) Error() string { return p.Msg }

// Stated are the shardings that the text of f states, and the one mesh that they name; nil
// where it states none.
func Stated(m *ir.Module, f *ir.Func) (*mesh.Mesh, []*types.Sharding, *Problem) {
	var found *mesh.Mesh
	var problem *Problem
	var all []*types.Sharding
	note := func(s *types.Sharding, at *ir.Op) {
		if s == nil {
			return
		}
		name, _ := s.Mesh.Name()
		switch {
		case found == nil:
			if found = mesh.Find(m, name); found == nil && problem == nil {
				problem = &Problem{at, "there is no mesh " + s.Mesh.String() + " in this file", "define it with dm.mesh"}
			}
		case found.Name != name && problem == nil:
			problem = &Problem{at, "the function is divided over two meshes, @" + found.Name + " and @" + name, "divide all of its values over one mesh, whose axes are those of both"}
		}
		if found != nil && problem == nil {
			if p := found.Problem(s); p != "" {
				problem = &Problem{at, p, "name an axis of the mesh"}
			}
		}
		all = append(all, s)
	}
	notes := func(vs []*ir.Value, at *ir.Op) {
		for _, v := range vs {
			for _, s := range op.StatedShardings(v) {
				note(s, at)
			}
		}
	}
	notes(f.Args, f.Op)
	if f.Body != nil {
		ir.Walk(f.Body.Ops, func(o *ir.Op) bool {
			notes(o.Results, o)
			for _, r := range o.Regions {
				for _, b := range r.Blocks {
					notes(b.Args, o)
				}
			}
			return true
		})
	}
	for _, list := range op.ResultShardings(f) {
		for _, s := range list {
			note(s, f.Op)
		}
	}
	return found, all, problem
}

// MeshOf is the mesh whose devices run f: that of its attribute dm.mesh, that over which its text divides
// values, or the only one of m; nil where there is none, or more than one.
func MeshOf(m *ir.Module, f *ir.Func) (*mesh.Mesh, *Problem) {
	return MeshBy(m, f, func() (*mesh.Mesh, *Problem) {
		on, _, problem := Stated(m, f)
		return on, problem
	})
}

// MeshBy is MeshOf for a caller that knows over which mesh the text divides values.
func MeshBy(m *ir.Module, f *ir.Func, stated func() (*mesh.Mesh, *Problem)) (*mesh.Mesh, *Problem) {
	if op.PerDevice(f.Op) {
		return mesh.Find(m, f.Op.Str(op.MeshAttr)), nil
	}
	on, problem := stated()
	if all := mesh.All(m); on == nil && problem == nil && len(all) == 1 {
		on = all[0]
	}
	return on, problem
}

// Propagate gives each value of f a layout, from those that its text states. It returns nil
// where the text states none.
//
// A factor of an op (op.DivisionOf) that is divided in one of its tensors is divided in the
// others too, forwards and backwards, until nothing changes; parts of values and results, which
// the partitioner finds, do not spread. Where two tensors disagree about a factor, the layout
// counts that divides it over more devices if it continues the other one; else what the text states
// comes before what was propagated, then the larger tensor, then the earlier one among operands
// and results. Ops in which every factor is parallel spread before those that reduce or exchange, and these
// before the axes that only a gradient or a broadcast needs. An axis divides one dimension of a
// value only, and no dimension with fewer elements than the axis has devices.
func Propagate(m *ir.Module, f *ir.Func) (*Values, *Problem) { return propagate(m, f, nil) }

func propagate(m *ir.Module, f *ir.Func, memo *Memo) (*Values, *Problem) {
	on, stated, problem := Stated(m, f)
	if problem != nil || on == nil || f.Body == nil {
		return nil, problem
	}
	g, err := NewGrid(on, stated)
	if err != nil {
		return nil, &Problem{f.Op, err.Error(), "name parts of the axis that divide one another"}
	}
	v := &Values{Grid: g, of: make(map[*ir.Value]*value, len(f.Body.Ops)), memo: memo}
	v.spread(f)
	return v, nil
}

// Extend propagates among ops that stand for an op of the function, from the values that it used
// and defined.
func (v *Values) Extend(ops []*ir.Op) {
	p := &propagation{Values: v}
	p.ops(ops)
	p.run()
}

// Rename gives the value to what is known of old.
func (v *Values) Rename(old, to *ir.Value) {
	if k := v.of[old]; k != nil && v.of[to] == nil {
		v.of[to] = k
	}
}

// spread propagates in f.
func (v *Values) spread(f *ir.Func) {
	for _, a := range f.Args {
		v.add(a)
	}
	p := &propagation{Values: v}
	p.block(f.Body)
	results := op.ResultShardings(f)
	if t := f.Body.Terminator(); t != nil {
		for i, x := range t.Operands {
			// What a function returns is as its signature states.
			if k := v.of[x]; k != nil && !k.stated && i < len(results) && len(results[i]) == 1 && results[i][0] != nil && len(results[i][0].Dims) == len(k.shape) {
				v.state(k, results[i][0])
			}
		}
	}
	p.run()
}

// add records x with what the text states of it.
func (v *Values) add(x *ir.Value) {
	t := x.Tensor()
	if t == nil || v.of[x] != nil {
		return
	}
	k := v.memo.value(x, t)
	if s := op.StatedSharding(x); s != nil {
		v.state(k, s)
	}
	v.of[x] = k
}

func (v *Values) state(k *value, s *types.Sharding) {
	k.layout, k.stated = v.Grid.Layout(s, len(k.shape)), true
	for i, d := range s.Dims {
		k.closed[i] = !d.Open
	}
}

// rule is a set of tensors whose dimensions have factors in common.
type rule struct {
	tensors []*value
	dims    [][][]int // factors of each dimension of each
	sizes   []dim.Dim
	pieces  []op.Pieces
	waiting bool
	at      *ir.Op
	early   bool // all factors are parallel
}

type propagation struct {
	*Values
	rules []*rule
	queue []*rule
	later []*rule

	best [][]int  // atoms of each factor of the rule that is applied
	from []*value // that give them
}

// block records the rules of the ops of b, and of the regions in it.
func (p *propagation) block(b *ir.Block) {
	for _, a := range b.Args {
		p.add(a)
	}
	p.ops(b.Ops)
}

func (p *propagation) ops(ops []*ir.Op) {
	for _, o := range ops {
		for _, r := range o.Results {
			p.add(r)
		}
		if f := p.memo.of(o); f.Factors != nil {
			p.factors(o, f)
			continue // regions compute scalars
		}
		for _, r := range o.Regions {
			for _, inner := range r.Blocks {
				p.block(inner)
			}
		}
		p.structure(o)
	}
}

// factors records the rule of an op.
func (p *propagation) factors(o *ir.Op, f *known) {
	if f.rule != nil && f.among(p.of, o) {
		f.rule.waiting = false
		p.record(f.rule)
		return
	}
	r := &rule{
		at: o, sizes: f.Sizes, pieces: f.pieces, early: f.early,
		tensors: make([]*value, 0, len(o.Operands)+len(o.Results)), dims: make([][][]int, 0, len(o.Operands)+len(o.Results)),
	}
	for i, x := range o.Operands {
		p.tensor(r, x, f.Operands, i)
	}
	for i, x := range o.Results {
		p.tensor(r, x, f.Results, i)
	}
	f.keep(p.of, o, r)
	p.record(r)
}

func (p *propagation) tensor(r *rule, x *ir.Value, dims [][][]int, i int) {
	if k := p.of[x]; k != nil && i < len(dims) && len(dims[i]) == len(k.shape) {
		r.tensors = append(r.tensors, k)
		r.dims = append(r.dims, dims[i])
	}
}

func (p *propagation) record(r *rule) {
	if len(r.tensors) > 1 {
		p.rules = append(p.rules, r)
	}
}

// same records that values have one layout; those of other ranks are left out, and drop
// leading dimensions of the i-th are its own.
func (p *propagation) same(o *ir.Op, drop []int, values ...*ir.Value) {
	r := &rule{at: o, early: true}
	for i, x := range values {
		k := p.of[x]
		if k == nil {
			continue
		}
		own := 0
		if i < len(drop) {
			own = drop[i]
		}
		dims := make([][]int, len(k.shape))
		for d := own; d < len(dims); d++ {
			dims[d] = []int{d - own}
		}
		if r.sizes == nil {
			r.sizes = k.shape[min(own, len(k.shape)):]
			r.pieces = make([]op.Pieces, len(r.sizes))
		}
		if len(dims)-own != len(r.sizes) {
			continue
		}
		r.tensors, r.dims = append(r.tensors, k), append(r.dims, dims)
	}
	p.record(r)
}

// structure records which values of an op with regions, and of a function that is
// differentiated, have one layout.
func (p *propagation) structure(o *ir.Op) {
	at := func(b *ir.Block, i int) *ir.Value {
		if t := b.Terminator(); t != nil && i < len(t.Operands) {
			return t.Operands[i]
		}
		return nil
	}
	arg := func(b *ir.Block, i int) *ir.Value {
		if b != nil && i < len(b.Args) {
			return b.Args[i]
		}
		return nil
	}
	switch o.Name {
	case op.While, op.Scan:
		body, c := op.LoopBody(o), op.Carries(o)
		for i, r := range o.Results {
			if i < c {
				values := []*ir.Value{o.Operands[i], r, arg(body, i), at(body, i)}
				if o.Name == op.While {
					values = append(values, arg(o.Body(0), i))
				}
				p.same(o, nil, values...)
			} else {
				p.same(o, []int{1, 0}, r, at(body, i))
			}
		}
		for i := c; i < len(o.Operands); i++ {
			p.same(o, []int{1, 0}, o.Operands[i], arg(body, i))
		}
	case op.If:
		for i, r := range o.Results {
			p.same(o, nil, r, at(o.Body(0), i), at(o.Body(1), i))
		}
	case op.Kernel:
		for i, r := range o.Results {
			p.same(o, nil, r, at(o.Body(0), i))
		}
	case op.Grad:
		if wrt, problem := op.GradArgs(o); problem == nil {
			first := len(o.Results) - len(wrt)
			for i, n := range wrt {
				if first+i >= 0 && n < len(o.Operands) {
					p.same(o, nil, o.Operands[n], o.Results[first+i])
				}
			}
		}
	case op.Reshard:
		// An operand that states nothing is computed as it is wanted.
		if k := p.of[o.Operands[0]]; k != nil && !k.stated {
			p.same(o, nil, o.Operands[0], o.Results[0])
		}
	}
}

// run applies the rules until nothing changes: those of ops without reductions first.
func (p *propagation) run() {
	for _, r := range p.rules {
		for _, k := range r.tensors {
			k.rules = k.rules[:0]
		}
	}
	for _, r := range p.rules {
		for _, k := range r.tensors {
			if n := len(k.rules); n == 0 || k.rules[n-1] != r {
				k.rules = append(k.rules, r)
			}
		}
		p.wake(r)
	}
	for len(p.queue)+len(p.later) > 0 {
		list := &p.queue
		if len(*list) == 0 {
			list = &p.later
		}
		r := (*list)[0]
		*list = (*list)[1:]
		r.waiting = false
		p.apply(r)
	}
}

func (p *propagation) wake(r *rule) {
	if r.waiting {
		return
	}
	r.waiting = true
	if r.early {
		p.queue = append(p.queue, r)
	} else {
		p.later = append(p.later, r)
	}
}

// apply makes the tensors of r agree as far as they can.
func (p *propagation) apply(r *rule) {
	if !slices.ContainsFunc(r.tensors, func(k *value) bool { return k.layout.divided() }) {
		return
	}
	// Scratch memory: this runs for every op after every edit.
	p.best, p.from = append(p.best[:0], make([][]int, len(r.sizes))...), append(p.from[:0], make([]*value, len(r.sizes))...)
	best, from := p.best, p.from
	for i, k := range r.tensors {
		p.Grid.factors(k.layout, r.dims[i], r.sizes, r.pieces, func(n int, atoms []int) {
			switch {
			case from[n] == nil || prefix(best[n], atoms):
				if from[n] == nil || len(atoms) > len(best[n]) {
					best[n], from[n] = atoms, k
				}
			case !prefix(atoms, best[n]) && k.before(from[n]):
				best[n], from[n] = atoms, k
			}
		})
	}
	for i, k := range r.tensors {
		changed := false
		for d, list := range r.dims[i] {
			if !k.closed[d] && p.extend(k, d, p.Grid.join(list, func(n int) []int { return best[n] }, r.sizes)) {
				changed = true
				for _, n := range list {
					if from[n] != nil && from[n] != k {
						k.from, k.by = from[n], r.at
						break
					}
				}
			}
		}
		if changed {
			for _, other := range k.rules {
				if other != r {
					p.wake(other)
				}
			}
		}
	}
}

// before reports whether k's word counts more than l's.
func (k *value) before(l *value) bool {
	if k.stated != l.stated {
		return k.stated
	}
	return k.bytes > l.bytes
}

func prefix(a, b []int) bool { return len(a) <= len(b) && slices.Equal(a, b[:len(a)]) }

// Factors are the atoms over which each factor is divided in a tensor of layout l whose
// dimensions have the factors dims, of the given sizes and pieces. Those of a dimension belong to
// its outermost factor as far as they divide it, then to the next.
func (g *Grid) Factors(l Layout, dims [][]int, sizes []dim.Dim, pieces []op.Pieces) map[int][]int {
	out := map[int][]int{}
	g.factors(l, dims, sizes, pieces, func(n int, atoms []int) { out[n] = atoms })
	return out
}

// factors visits the factors that are divided.
func (g *Grid) factors(l Layout, dims [][]int, sizes []dim.Dim, pieces []op.Pieces, visit func(n int, atoms []int)) {
	for d, list := range dims {
		atoms := l.Dims[d]
		for i, n := range list {
			size, known := sizes[n].Int()
			k := 0
			switch pieces[n] {
			case op.AnyPieces:
				k = len(atoms)
			case op.EqualPieces:
				for known && k < len(atoms) && size%int64(g.Count(atoms[:k+1])) == 0 {
					k++
				}
			}
			if k > 0 {
				visit(n, atoms[:k])
			}
			if i < len(list)-1 && (!known || int64(g.Count(atoms[:k])) != size) {
				break // the inner factors are whole on each device
			}
			atoms = atoms[k:]
		}
	}
}

// Join is the atoms of a dimension of the factors list, of which each is divided as in of.
func (g *Grid) Join(list []int, of map[int][]int, sizes []dim.Dim) []int {
	return g.join(list, func(n int) []int { return of[n] }, sizes)
}

// join is Join, whose result may be that of one factor itself.
func (g *Grid) join(list []int, of func(n int) []int, sizes []dim.Dim) []int {
	if len(list) == 1 {
		return of(list[0])
	}
	var out []int
	for i, n := range list {
		atoms := of(n)
		out = append(out, atoms...)
		if size, known := sizes[n].Int(); i < len(list)-1 && (!known || size != int64(g.Count(atoms))) {
			break
		}
	}
	return out
}

// extend divides dimension d of k over atoms, where that continues how it is divided.
func (p *propagation) extend(k *value, d int, atoms []int) bool {
	have := k.layout.Dims[d]
	if len(atoms) <= len(have) || !prefix(have, atoms) {
		return false
	}
	n := len(have)
	for n < len(atoms) && !k.layout.Uses(atoms[n]) && !slices.Contains(atoms[:n], atoms[n]) { // two factors of d may claim an atom
		if size, known := k.shape[d].Int(); known && size < int64(p.Grid.Count(atoms[:n+1])) {
			break
		}
		n++
	}
	if n == len(have) {
		return false
	}
	k.layout.Dims[d] = slices.Clone(atoms[:n])
	return true
}
