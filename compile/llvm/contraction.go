package llvm

import (
	"fmt"
	"slices"

	"dmir/analysis/blocks"
	"dmir/compile/assemble"
	"dmir/compile/kernel"
	"dmir/compile/llvm/code"
	"dmir/compile/llvm/gemm"
	"dmir/compile/llvm/scalar"
	dm "dmir/dialect/ir"
	"dmir/dialect/types"
	"dmir/gpu/artifact"

	"github.com/llir/llvm/ir/constant"
	"github.com/llir/llvm/ir/enum"
	lltypes "github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"
)

// contraction is the scheme of a product: the operands' expressions are evaluated where
// they are packed, the results' where a tile of sums is finished.
type contraction struct {
	f     *kernel.Form
	t     *kernel.Tiled
	image *kernel.Image // nil where B is packed
	p     gemm.Plan
	over  map[*dm.Value]*dm.Value
	parts []*assemble.Temp // partial results of the reduced results, see partOf
}

func (g generator) contraction(f *kernel.Form, o assemble.Options) (scheme, error) {
	t, err := f.Tiled()
	if err != nil {
		return nil, err
	}
	a, flatA := t.A("k", 1)
	bs, flatB := t.B("k", 1)
	s := blocks.Shape{
		Batch: t.Batch, Rows: t.Rows, Cols: t.Cols, Depth: t.Depth, Products: t.Products, Acc: sums(t.Elem), Half: t.Half,
		A: axis(a, flatA.M, flatA.K), B: axis(bs[0], flatB.N, flatB.K),
	}
	s.Grouped = t.Grouping() != nil
	p := &contraction{f: f, t: t, image: image(t), over: o.Over}
	if p.image != nil {
		s = windowed(s, p.image)
	}
	p.p = gemm.Choose(s, g.arch)
	_, reductions, _, err := t.Results(1)
	if err != nil {
		return nil, err
	}
	for _, r := range reductions {
		n := t.Rows * ceil(t.Cols, p.p.NC)
		if r.Rows {
			n = t.Cols * ceil(t.Rows, p.p.MC)
		}
		p.parts = append(p.parts, &assemble.Temp{Elem: types.F32, N: n * t.Batch, Updated: true})
	}
	return p, nil
}

// sums is the type of the sums of products of elem.
func sums(elem types.Elem) blocks.Acc {
	switch {
	case elem == types.F64:
		return blocks.F64
	case elem.IsFloat():
		return blocks.F32
	case elem.Bytes() == 8:
		return blocks.I64
	}
	return blocks.I32
}

// axis is the axis along which neighbours of x lie side by side: the depth, or the
// operand's other index.
func axis(x *kernel.Expr, outer, depth *kernel.Atom) blocks.Axis {
	from := kernel.LargestLoad(x)
	if from == nil || depth == nil {
		return blocks.Outer
	}
	if outer == nil {
		return blocks.Depth
	}
	neighbours := func(a *kernel.Atom) int64 { // side by side
		if step, run := from.At.Along(a); step == 1 {
			return run
		}
		return 1
	}
	// A few neighbours, as in the windows of convolutions, are worth less than a depth that
	// is packed in long rows.
	const long = 64
	if near := neighbours(depth); neighbours(outer) > near && (near == 1 || depth.Max < long) {
		return blocks.Outer
	}
	return blocks.Depth
}

func (p *contraction) temps() []*assemble.Temp { return p.parts }

func (p *contraction) launches() ([]*launch, error) {
	t := p.t
	ps := newParams()
	ps.reads(p.f.Inputs)
	var stored []*dm.Value // not reduced
	for _, v := range p.f.Outputs {
		if len(p.f.Storing(v)) > 0 {
			stored = append(stored, v)
		}
	}
	ps.writes(stored, p.over)
	for _, part := range p.parts {
		ps.temp("partial", part, artifact.InOut)
	}
	l := newLaunch("", p.f.Class, p.p.Tasks, ps.list, p.write)
	l.Of = p.f.Main
	l.Scratch = p.p.Scratch
	all := []*launch{l}
	_, reductions, _, err := t.Results(1)
	for i, r := range reductions {
		all = append(all, p.combine(i, r))
	}
	return all, err
}

// write evaluates operands and results with an emitter of its own for each place, since
// no value of one is computed where another is.
func (p *contraction) write(b *body) error {
	t := p.t
	a, flatA := t.A("k", 1)
	bs, flatB := t.B("k", 1)
	load := func(x *kernel.Expr, flat kernel.Flat, row *kernel.Atom) gemm.Load {
		return func(f *code.Func, z, m, k value.Value) (v value.Value) {
			e := b.at(f)
			batch, _ := p.split(e, z)
			e.bind(flat.Z, batch)
			e.bind(row, m)
			e.bind(flat.K, k)
			return e.summand(x, p.p.Shape.Acc)
		}
	}
	k := gemm.Kernel{A: load(a, flatA, flatA.M)}
	for _, x := range bs {
		k.B = append(k.B, load(x, flatB, flatB.N))
	}
	if p.image != nil {
		k.B, k.Image = nil, p.elementsOf(b)
	}
	if g := t.Grouping(); g != nil {
		k.Rows, k.Depth = p.groups(b, g)
	}
	r, err := p.results()
	if err != nil {
		return err
	}
	k.Done = func(f *code.Func, tile gemm.Tile) { p.finish(b.at(f), b, tile, r) }
	p.p.Emit(b.Func, b.first, b.last, b.scratch, k)
	return nil
}

// groups are the rows, or the part of the depth, that a group has. Rows in front of the first group are that one's, and rows behind the last one that one's.
func (p *contraction) groups(b *body, g *kernel.Grouping) (rows, depth func(f *code.Func, z value.Value) (from, below value.Value)) {
	bounds := func(f *code.Func, z value.Value) (from, below value.Value) {
		e := b.at(f)
		e.bind(g.Z, z)
		return e.index(g.First), e.index(g.End)
	}
	if !g.Rows {
		return nil, bounds
	}
	return func(f *code.Func, z value.Value) (from, below value.Value) {
		from, below = bounds(f, z)
		first, last := f.NewICmp(enum.IPredEQ, z, code.Int(0)), f.NewICmp(enum.IPredEQ, z, code.Int(g.Count-1))
		return f.NewSelect(first, code.Int(0), from), f.NewSelect(last, code.Int(p.t.Rows), below)
	}, nil
}

// at is an emitter with the buffers of b that adds to f.
func (b *body) at(f *code.Func) *emitter {
	e := *b.emitter
	e.Func, e.scopes, e.atoms = f, []scope{newScope()}, map[*kernel.Atom]value.Value{}
	e.given, e.held, e.ranges = map[*kernel.Expr]value.Value{}, map[*kernel.Expr]value.Value{}, map[*kernel.Atom]segment{}
	return &e
}

// summand is x in the type of the sums.
func (e *emitter) summand(x *kernel.Expr, sum blocks.Acc) value.Value {
	v := e.value(x)
	if v.Type().Equal(gemm.TypeOf(sum)) {
		return v
	}
	switch t, whole := v.Type().(*lltypes.IntType); {
	case !whole:
		return e.NewFPExt(v, gemm.TypeOf(sum))
	case x.Elem.IsUnsigned() || t.BitSize == 1:
		return e.NewZExt(v, gemm.TypeOf(sum))
	}
	return e.NewSExt(v, gemm.TypeOf(sum))
}

// results are what becomes of the sums at z, m and n.
type results struct {
	outs       []kernel.Out
	reductions []kernel.ReducedResult
	flat       kernel.Flat
}

// results are those of p with the number of neighbours along n whose indices have the
// fewest divisions.
func (p *contraction) results() (results, error) {
	if p.image != nil {
		outs, _, flat, err := p.t.Results(p.image.Outputs)
		return results{outs: outs, flat: flat}, err
	}
	of := func(w int64) (r results, err error) {
		r.outs, r.reductions, r.flat, err = p.t.Results(w)
		return r, err
	}
	single, err := of(1)
	if err != nil || single.flat.N == nil {
		return single, err
	}
	divided := single.divisions(single.flat.N)
	if len(divided) == 0 {
		return single, nil
	}
	return widest(p.t.Cols, divided, single, func(w int64) (results, map[*kernel.Atom]bool, error) {
		r, err := of(w)
		if err != nil {
			return r, nil, err
		}
		return r, r.divisions(r.flat.Lane), nil
	})
}

func (r results) divisions(a *kernel.Atom) map[*kernel.Atom]bool {
	var xs []*kernel.Expr
	var at []kernel.Index
	for _, o := range r.outs {
		xs, at = append(xs, o.Exprs()...), append(at, placesOf(o)...)
	}
	for _, x := range r.reductions {
		xs = append(xs, x.X)
	}
	return divisions(xs, at, a)
}

// finish stores the results of a tile.
func (p *contraction) finish(e *emitter, b *body, tile gemm.Tile, to results) {
	outs, reductions, flat := to.outs, to.reductions, to.flat
	var row, column value.Value
	acc := p.p.Shape.Acc
	e.acc = func(x *kernel.Expr) value.Value {
		at := e.NewAdd(e.NewMul(e.NewSub(row, tile.M0), code.Int(tile.Stride)), e.NewSub(column, tile.N0))
		v := value.Value(e.NewLoad(gemm.TypeOf(acc), e.Element(gemm.TypeOf(acc), tile.Sums[x.Int], at)))
		return e.element(x.Elem, v)
	}
	batch, _ := p.split(e, tile.Z)
	e.bind(flat.Z, batch)
	for i, r := range reductions {
		if r.Rows {
			p.beginColumns(e, b, i, r, tile)
		}
	}
	e.loop(flat.M, tile.M0, tile.M1, code.Loop{Unroll: 1}, func(m value.Value) {
		row = m
		for _, o := range outs {
			for _, x := range o.Exprs() {
				e.hoistPlain(x)
			}
		}
		var begin []value.Value
		for i, r := range reductions {
			begin = append(begin, e.lib.Accumulator(r.Kind, types.F32, true).Begin(e.Func, p.before(e, b, i, r, tile, m)))
		}
		each := func(n value.Value, acc []value.Value) []value.Value {
			column = n
			e.storeAll(outs)
			next := slices.Clone(acc)
			for i, r := range reductions {
				v := e.value(r.X)
				if !r.Rows {
					next[i] = e.lib.Accumulator(r.Kind, types.F32, true).Add(e.Func, acc[i], v)
					continue
				}
				at := p.partOf(e, r, tile, m, n)
				old := e.lib.Load(e.Func, types.F32, b.memory[p.parts[i]], at)
				e.lib.Store(e.Func, types.F32, b.memory[p.parts[i]], at, e.lib.Combine(e.Func, r.Kind, types.F32, old, v, false))
			}
			return next
		}
		got := p.columns(e, tile, flat, begin, each)
		for i, r := range reductions {
			if !r.Rows {
				e.lib.Store(e.Func, types.F32, b.memory[p.parts[i]], p.partOf(e, r, tile, m, nil), e.lib.Accumulator(r.Kind, types.F32, true).Value(e.Func, got[i]))
			}
		}
	})
}

// columns visits the columns of a tile.
func (p *contraction) columns(e *emitter, tile gemm.Tile, flat kernel.Flat, begin []value.Value, each func(n value.Value, acc []value.Value) []value.Value) []value.Value {
	how := code.Loop{Vectorize: true}
	if p.image != nil {
		return p.lines(e, tile, flat, begin, each)
	}
	if flat.Lane == nil {
		return e.fold(flat.N, tile.N0, tile.N1, how, begin, each)
	}
	v := code.Int(flat.V)
	from, to := e.NewUDiv(tile.N0, v), e.NewUDiv(e.NewAdd(tile.N1, code.Int(flat.V-1)), v)
	return e.fold(flat.N, from, to, code.Loop{Unroll: 1}, begin, func(_ value.Value, acc []value.Value) []value.Value {
		step := value.Value(code.Int(0))
		if flat.N != nil {
			step = e.atoms[flat.N]
		}
		base := e.NewMul(step, v)
		left := e.most(e.NewSub(tile.N0, base), code.Int(0))
		right := e.least(e.NewSub(tile.N1, base), v)
		return e.fold(flat.Lane, left, right, how, acc, func(i value.Value, acc []value.Value) []value.Value {
			return each(e.NewAdd(base, i), acc)
		})
	})
}

// hoistPlain is hoist for expressions that do not read sums outside of their loop.
func (e *emitter) hoistPlain(x *kernel.Expr) {
	kernel.Hoist(x, e.done, func(x *kernel.Expr) bool { return !x.ReadsSums() && e.ready(x) }, func(x *kernel.Expr) { e.value(x) })
}

// element is a sum as an element of a product.
func (e *emitter) element(elem types.Elem, v value.Value) value.Value {
	t, ok := scalar.Register(elem).(*lltypes.IntType)
	if !ok {
		return v
	}
	switch from := v.Type().(*lltypes.IntType); {
	case elem == types.I1:
		return e.NewICmp(enum.IPredNE, v, constant.NewInt(from, 0))
	case from.BitSize > t.BitSize:
		return e.NewTrunc(v, t)
	}
	return v
}

// partOf is where the partial result of r that m and n belong to lies: over rows, those of
// a block of rows for each column; over columns, those of a block of columns for each
// row.
func (p *contraction) partOf(e *emitter, r kernel.ReducedResult, tile gemm.Tile, m, n value.Value) value.Value {
	t := p.t
	if r.Rows {
		block := e.NewAdd(e.NewMul(tile.Z, code.Int(ceil(t.Rows, p.p.MC))), e.NewUDiv(tile.M0, code.Int(p.p.MC)))
		return e.NewAdd(e.NewMul(block, code.Int(t.Cols)), n)
	}
	block := e.NewAdd(e.NewMul(tile.Z, code.Int(ceil(t.Cols, p.p.NC))), e.NewUDiv(tile.N0, code.Int(p.p.NC)))
	return e.NewAdd(e.NewMul(block, code.Int(t.Rows)), m)
}

// before is what the tiles to the left, of the same block, have reduced of row m.
func (p *contraction) before(e *emitter, b *body, i int, r kernel.ReducedResult, tile gemm.Tile, m value.Value) value.Value {
	none := e.lib.Identity(r.Kind, types.F32)
	if r.Rows {
		return none
	}
	first := e.NewICmp(enum.IPredEQ, e.NewURem(tile.N0, code.Int(p.p.NC)), code.Int(0))
	return e.NewSelect(first, none, e.lib.Load(e.Func, types.F32, b.memory[p.parts[i]], p.partOf(e, r, tile, m, nil)))
}

// beginColumns sets the partial results of the tile's columns at the first rows of a
// block.
func (p *contraction) beginColumns(e *emitter, b *body, i int, r kernel.ReducedResult, tile gemm.Tile) {
	first := e.NewICmp(enum.IPredEQ, e.NewURem(tile.M0, code.Int(p.p.MC)), code.Int(0))
	e.If(first, func() {
		e.For(tile.N0, tile.N1, code.Loop{Vectorize: true}, func(n value.Value) {
			e.lib.Store(e.Func, types.F32, b.memory[p.parts[i]], p.partOf(e, r, tile, nil, n), e.lib.Identity(r.Kind, types.F32))
		})
	})
}

// combine is the launch that combines the partial results of r in order.
func (p *contraction) combine(i int, r kernel.ReducedResult) *launch {
	t, part := p.t, p.parts[i]
	ps := newParams()
	ps.writes([]*dm.Value{r.Value}, nil)
	ps.temp("partial", part, artifact.In)
	values, parts := t.Rows, ceil(t.Cols, p.p.NC) // of each batch
	if r.Rows {
		values, parts = t.Cols, ceil(t.Rows, p.p.MC)
	}
	batches := t.Batch
	if r.Batch {
		batches, parts = 1, parts*t.Batch
	}
	const each = 4096
	suffix := "_reduced"
	if i > 0 {
		suffix += fmt.Sprint(i + 1)
	}
	l := newLaunch(suffix, p.f.Class, ceil(batches*values, each), ps.list, func(b *body) error {
		from, to := b.span(b.first, b.last, each, batches*values)
		b.loop(nil, from, to, code.Loop{}, func(v value.Value) {
			z, at := b.NewUDiv(v, code.Int(values)), b.NewURem(v, code.Int(values))
			sum := b.Fold(code.Int(0), code.Int(parts), code.Loop{}, []value.Value{b.lib.Identity(r.Kind, types.F32)}, func(k value.Value, acc []value.Value) []value.Value {
				n := b.NewAdd(b.NewMul(b.NewAdd(b.NewMul(z, code.Int(parts)), k), code.Int(values)), at)
				return []value.Value{b.lib.Combine(b.Func, r.Kind, types.F32, acc[0], b.lib.Load(b.Func, types.F32, b.memory[part], n), false)}
			})[0]
			b.bind(r.Kept.Z, z)
			if r.Rows {
				b.bind(r.Kept.N, at)
			} else {
				b.bind(r.Kept.M, at)
			}
			b.lib.Store(b.Func, r.Value.Elem(), b.buffer(r.Value), b.index(r.At), sum)
		})
		return nil
	})
	l.Of = r.Value.Op
	return l
}
