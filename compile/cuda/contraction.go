package cuda

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"dmir/analysis/machine"
	"dmir/compile/assemble"
	"dmir/compile/kernel"
	"dmir/dialect/ir"
	"dmir/dialect/types"
	"dmir/gpu/artifact"
)

// contraction is the scheme of a tiled matrix product: functors of the operands
// and of the results for a main loop of the prelude.
type contraction struct {
	target Target
	f      *kernel.Form
	t      *kernel.Tiled
	c      Config
	sums   *assemble.Temp   // partial sums, where splits > 1 and their blocks are no cluster
	parts  []*assemble.Temp // partial results of the reduced results
	left   []*assemble.Temp // the sums and the flags of blocks that share steps
	over   map[*ir.Value]*ir.Value
}

// contraction is the plan of a contraction with the tile of the options, or the best
// one.
func (t Target) contraction(f *kernel.Form, o assemble.Options) (*contraction, error) {
	tiled, configs, err := t.tiled(f)
	if err != nil {
		return nil, err
	}
	p := &contraction{target: t, f: f, t: tiled, c: t.tileOf(tiled, configs, o.Tile), over: o.Over}
	if p.c.Path == MmaSp {
		p.t = tiled.Packed()
	}
	if p.c.Splits > 1 && !p.c.Cluster {
		p.sums = &assemble.Temp{Elem: p.sumElem(), N: tiled.Batch * tiled.Rows * tiled.Cols * int64(tiled.Products) * int64(p.c.Splits), Own: true}
		return p, nil
	}
	p.left = p.leftBehind()
	if !tiled.Reduces {
		return p, nil
	}
	_, reductions, _, err := tiled.Results(1)
	for _, f := range reductions {
		p.parts = append(p.parts, &assemble.Temp{Elem: types.F32, N: p.partsOf(f.Rows) * p.valuesOf(f.Rows) * tiled.Batch})
	}
	return p, err
}

// tiled is f as products of matrices, those of phases where f has some, and the tiles that compute them.
func (t Target) tiled(f *kernel.Form) (tiled *kernel.Tiled, configs []Config, err error) {
	if tiled = f.Phased(); tiled == nil {
		if tiled, err = f.Tiled(); err != nil {
			return nil, nil, err
		}
	}
	if configs = Candidates(tiled, t); len(configs) == 0 {
		return nil, nil, fmt.Errorf("no tile fits the shared memory of %s", t.Machine.Name)
	}
	return tiled, configs, nil
}

// tileOf is, in this order of preference, the given tile, the candidate of the
// rank being measured, the tile measured to be fastest, and the first in the
// model.
func (t Target) tileOf(tiled *kernel.Tiled, candidates []Config, tile string) Config {
	for _, c := range candidates {
		if c.String() == tile {
			return c
		}
	}
	if n := t.Rank; n > 0 {
		return candidates[min(n, len(candidates))-1]
	}
	if c, ok := t.Tiles.Find(tiled, t); ok {
		c.Phases = tiled.Phases() > 0
		return c
	}
	return candidates[0]
}

func (p *contraction) temps() []*assemble.Temp {
	if p.sums != nil {
		return []*assemble.Temp{p.sums}
	}
	return slices.Concat(p.left, p.parts)
}

func (p *contraction) launches() ([]*launch, error) {
	t, c := p.t, p.c
	groups := t.Grouping()
	for _, n := range []int64{t.Batch, t.Rows, t.Cols * int64(t.Products), t.Depth} {
		if n > 1<<30 {
			return nil, fmt.Errorf("indices of %d values do not fit in 32 bits", n)
		}
	}
	ns := namesOver(p.f, p.over)
	a, err := p.operand(0, ns)
	if err != nil {
		return nil, err
	}
	b, err := p.operand(1, ns)
	if err != nil {
		return nil, err
	}
	r, err := p.results(ns)
	if err != nil {
		return nil, err
	}
	batch, down := t.Batch, ceil(t.Rows, int64(c.BM))
	if groups != nil && groups.Rows { // each group has whole tiles
		batch, down = 1, down+groups.Count
	}
	tiles := batch * down * ceil(t.Cols*int64(t.Products), int64(c.BN)) * int64(max(c.Splits, 1))
	if tiles > 1<<31-1 {
		return nil, fmt.Errorf("%d tiles exceed the limit of a launch", tiles)
	}
	l := &launch{
		Launch: assemble.Launch{
			Class: string(p.f.Class), Of: p.f.Main, Block: artifact.Block{Threads: c.threads(), Shared: c.shared(t.Elem)}, Grid: [3]int{int(tiles), 1, 1},
		},
		named: ns.of, include: p.include(), late: true, blocks: c.resident(t.Elem, p.target.Machine, a.extraRegisters+b.extraRegisters+r.extraRegisters),
	}
	switch {
	case c.Cluster:
		l.Arch, l.Block.Cluster = p.target.Arch, c.Splits
	case c.Path.warpgroups():
		l.Grid[0] = min(l.Grid[0], p.target.Machine.SMs)
		l.Arch = p.target.Arch
	}
	if c.Pair != "" {
		l.Block.Cluster = 2
	}
	if p.sums != nil {
		return p.split(l, ns, a, b, r), nil
	}
	ls, left := p.shareSteps(l, ns)
	l.Params = ns.fields(a.fields, b.fields, r.fields, left)
	l.write = func(t *text) error {
		a.write(t)
		b.write(t)
		r.write(t)
		result := r.literal()
		if len(left) > 0 {
			result = cpp("%s,\n    %s", result, cpp("dm::Shares{%s}", idents(left)))
		}
		p.call(t.body, a, b, result)
		return nil
	}
	return append(ls, p.combineLaunches(l, ns, r)...), nil
}

// split makes two launches of l: one stores partial sums, the other adds them
// up and stores the results.
func (p *contraction) split(l *launch, ns *names, a, b *operand, r *results) []*launch {
	t := p.t
	v := int64(4)
	for t.Cols%v != 0 {
		v /= 2
	}
	partial := ns.addTemp("sums", p.sums, artifact.Out)
	sums := []assemble.Param{{Name: string(partial)}}
	l.Params = ns.fields(a.fields, b.fields, sums)
	l.write = func(t *text) error {
		a.write(t)
		b.write(t)
		p.call(t.body, a, b, cpp("dm::Partial<%s, %s, %d>{%s}", p.shape(), p.sumType(), v, partial))
		return nil
	}
	finish := &launch{
		Launch:  assemble.Launch{Suffix: "_finish", Class: l.Class, Of: l.Of, Block: artifact.Block{Threads: 256}},
		include: p.include(), named: ns.of,
	}
	ns.written()
	finish.Params = ns.fields(r.fields, sums)
	finish.Grid = [3]int{int(ceil(t.Batch*t.Rows*t.Cols/r.vector, 256)), 1, 1}
	finish.write = func(t *text) error {
		r.write(t)
		t.body.line("dm::finish<%s>(%s, %s)", p.shape(), partial, r.literal())
		return nil
	}
	return []*launch{l, finish}
}

// fields are the parameters in the given set, in their order.
func (n *names) fields(fields ...[]assemble.Param) []assemble.Param {
	among := map[string]bool{}
	for _, f := range slices.Concat(fields...) {
		among[f.Name] = true
	}
	return n.only(func(p assemble.Param) bool { return among[p.Name] })
}

func (p *contraction) include() string {
	parts := []string{"gemm.cuh", "gemm_" + string(p.c.Path) + ".cuh"}
	switch p.c.Path {
	case Wgmma, Pingpong:
		parts = []string{"hopper.cuh", "gemm.cuh", "gemm_wgmma.cuh"}
	case Gather:
		parts = []string{"hopper.cuh", "gemm.cuh", "gemm_wgmma.cuh", "gemm_gather.cuh"}
	case MmaSp:
		parts = []string{"gemm.cuh", "gemm_mma.cuh", "gemm_mma_sp.cuh"}
	}
	if p.c.Cluster {
		parts = append([]string{"cluster.cuh"}, append(parts, "gemm_cluster.cuh")...)
	}
	if p.c.StreamK {
		parts = append(parts, "gemm_stream_k.cuh")
	}
	return strings.Join(parts, " ")
}

// call is the kernel's body.
func (p *contraction) call(u *unit, a, b *operand, result code) {
	const arena ident = "arena"
	u.line("DM_ARENA(%s)", def(arena))
	loop := p.c.Path
	if loop == Gather || loop == Pingpong {
		loop = Wgmma // with another producer, or consumers that take turns
	}
	u.line("dm::gemm_%s<%s,\n    %s>(%s, %s,\n    %s,\n    %s)", loop, p.tile(), p.shape(), arena, a.literal(), b.literal(), result)
}

// tile is the prelude's type of the tile.
func (p *contraction) tile() string {
	c := p.c
	pair := map[machine.Pair]string{machine.PairRows: ", dm::Pair::rows", machine.PairCols: ", dm::Pair::cols"}[c.Pair]
	if c.Path.bulk() && c.width() != 2 {
		pair = fmt.Sprintf("%s, %d", cmp.Or(pair, ", dm::Pair::none"), c.BK)
	}
	switch c.Path {
	case Wgmma, Gather:
		return fmt.Sprintf("dm::WgmmaTile<%d, %d, %d%s>", c.BM, c.BN, c.Stages, pair)
	case Pingpong:
		return fmt.Sprintf("dm::PingpongTile<%d, %d, %d%s>", c.BM, c.BN, c.Stages, pair)
	case MmaSp:
		return fmt.Sprintf("dm::MmaSpTile<%d, %d, %d, %d, %d>", c.BM, c.BN, c.WM, c.WN, c.Stages)
	case Mma:
		if c.TF32 {
			return fmt.Sprintf("dm::MmaTile<%d, %d, %d, %d, %d, %d, 4>", c.BM, c.BN, c.BK, c.WM, c.WN, c.Stages)
		}
		return fmt.Sprintf("dm::MmaTile<%d, %d, %d, %d, %d, %d>", c.BM, c.BN, c.BK, c.WM, c.WN, c.Stages)
	}
	return fmt.Sprintf("dm::FmaTile<%s, %d, %d, %d, %d, %d>", p.sumType(), c.BM, c.BN, c.BK, c.WM, c.WN)
}

func (p *contraction) shape() string {
	cluster := ""
	if p.c.Cluster {
		cluster = ", true"
	}
	if g := p.t.Grouping(); g != nil {
		cluster = ", false, dm::Groups::depth"
		if g.Rows {
			cluster = ", false, dm::Groups::rows"
		}
	}
	if p.t.Phases() > 0 {
		cluster = fmt.Sprintf(", %t, dm::Groups::taps", p.c.Cluster)
	}
	if s, ok := p.streamK(); ok {
		cluster = fmt.Sprintf(", false, dm::Groups::none, %d", s.Workers)
	}
	return fmt.Sprintf("dm::Shape<%d, %d, %d, %d, %d, %d%s>", p.t.Batch, p.t.Rows, p.t.Cols, p.t.Depth, max(p.c.Splits, 1), p.t.Products, cluster)
}

// sumType is the type in which products are accumulated.
func (p *contraction) sumType() string {
	switch e := p.t.Elem; {
	case p.c.Path == Fma && p.t.Half:
		return "dm::Half"
	case e == types.F64:
		return "double"
	case e.IsFloat():
		return "float"
	case e.Bytes() == 8:
		return "dm::u64"
	}
	return "dm::u32"
}

// sumElem is the element type of partial sums in memory.
func (p *contraction) sumElem() types.Elem {
	switch p.sumType() {
	case "double":
		return types.F64
	case "dm::u32":
		return types.UI32
	case "dm::u64":
		return types.UI64
	}
	return types.F32
}

// group is the number of consecutive rows of B that belong to one of two
// products.
func (p *contraction) group() int {
	switch p.c.Path {
	case Mma:
		return 8
	case Wgmma, Pingpong, Gather:
		return p.c.BN / 2
	}
	return p.c.BN / (p.c.WN / 4)
}

// literal is the initializer of a functor: its type and its parameters.
func literal(name string, fields []assemble.Param) code {
	return cpp("%s{%s}", local(name), idents(fields))
}

// idents are the names of parameters.
func idents(fields []assemble.Param) (names []code) {
	for _, f := range fields {
		names = append(names, cpp("%s", ident(f.Name)))
	}
	return names
}

// read are the parameters for the values that xs read and outs write.
func (n *names) read(xs []*kernel.Expr, outs []kernel.Out) []assemble.Param {
	used := map[*ir.Value]bool{}
	read := func(x *kernel.Expr) {
		kernel.Walk(x, func(y *kernel.Expr) {
			if y.Op == kernel.Load {
				used[y.Buf] = true
			}
		})
	}
	for _, x := range xs {
		read(x)
	}
	for _, o := range outs {
		read(o.X)
		used[o.Value] = true
		o.At.Atoms(func(a *kernel.Atom) {
			if a.Kind == kernel.Datum {
				read(a.E)
			}
		})
	}
	return n.only(func(p assemble.Param) bool { return used[p.Value] && p.Map == nil })
}

// declare declares the members that hold parameters.
func (u *unit) declare(fields []assemble.Param) {
	for _, f := range fields {
		switch f.Mode {
		case artifact.Map:
			u.line("const dm::Map& %s", def(f.Name))
		case artifact.Out:
			u.line("dm::Out<%s> %s", storage(f.Elem), def(f.Name))
		case artifact.InOut:
			u.line("dm::InOut<%s> %s", storage(f.Elem), def(f.Name))
		default:
			u.line("dm::In<%s> %s", storage(f.Elem), def(f.Name))
		}
	}
}

// results is the epilogue: the functor that computes the results from the sums.
type results struct {
	*contraction
	outs           []kernel.Out
	reductions     []reducedResult
	flat           kernel.Flat
	fields         []assemble.Param
	vector         int64 // vector width of a call
	extraRegisters int   // estimate, besides the sums

	store *assemble.Param // the map by which the copy engine stores the result; nil: threads do
	boxes []boxDim        // its dimensions, at the variables of place
	place kernel.Flat
	reads bool // whether the epilogue then reads memory
}

// results is the epilogue of the product, whose parameters are in ns.
func (p *contraction) results(ns *names) (*results, error) {
	v := int64(8)
	if p.c.Path == Fma || p.c.Cluster { // a thread of a cluster holds all blocks' sums of its run
		v = 4
	}
	outs, _, flat, err := p.t.Results(1)
	if err != nil {
		return nil, err
	}
	r := &results{contraction: p}
	best := widthOf(p.t, outs, flat, v)
	if r.bulk(ns) {
		best = 2
	}
	outs, reduced, flat, err := p.t.Results(best)
	if err != nil {
		return nil, err
	}
	r.outs, r.flat, r.vector = outs, flat, best
	var xs []*kernel.Expr
	for _, f := range reduced {
		xs = append(xs, f.X)
	}
	r.extraRegisters = registersOf(outs, xs)
	r.fields = ns.read(xs, outs)
	if r.store != nil {
		r.fields = append(r.fields, *r.store)
	}
	for i, f := range reduced {
		name := ns.addTemp(string(ns.of[f.Value])+"_parts", p.parts[i], artifact.Out)
		r.reductions = append(r.reductions, reducedResult{f, p.partsOf(f.Rows), name})
		r.fields = append(r.fields, ns.params[len(ns.params)-1])
	}
	return r, nil
}

// widthOf is the number of neighbours that an epilogue computes at once, up to limit: the widest vector of some result along n; all
// must divide n.
func widthOf(t *kernel.Tiled, outs []kernel.Out, flat kernel.Flat, limit int64) int64 {
	best := int64(1)
	for _, o := range outs {
		if flat.N != nil {
			best = max(best, o.At.Vector(flat.N, limit))
		}
	}
	for best > 1 && t.Cols%best != 0 {
		best /= 2
	}
	return best
}

func (r *results) literal() code { return literal("_Out", r.fields) }

// The variables of functors.
const (
	batch         ident = "z"
	accumulators  ident = "acc"
	reducedValues ident = "value"
)

// write writes the epilogue.
func (r *results) write(t *text) error {
	u, p := t.before, r.contraction
	u.of(p.f.Main)
	u.enter(closed, "struct %s", local("_Out"))
	u.line("static constexpr int vector = %d, products = %d, reductions = %d", r.vector, p.t.Products, len(r.reductions))
	if p.c.Path.warpgroups() {
		u.line("static constexpr bool bulk = %t", r.store != nil)
	}
	result := code{format: "void"}
	if r.store != nil {
		u.line("static constexpr bool reads = %t", r.reads)
		u.line("using Result = %s", storage(r.store.Elem))
		result = cpp("dm::Vec<Result, %d>", r.vector)
	}
	u.declare(r.fields)
	r.writeJoins(u)
	sum := p.sumType()
	if sum == "dm::Half" {
		sum = "float"
	}
	params := cpp("dm::i32 %s, dm::i32 %s, dm::i32 %s, const %s (&%s)[%d][%d]", def(batch), def("m"), def("n"), sum, def(accumulators), p.t.Products, r.vector)
	if len(r.reductions) > 0 {
		params = cpp("%s, float (&%s)[%d][%d]", params, def(reducedValues), len(r.reductions), r.vector)
	}
	u.enter(block, "DM_FN %s operator()(%s) const", result, params)
	e := t.emitter(u)
	e.bind(r.flat.Z, cpp("%s", batch))
	e.bind(r.flat.M, cpp("%s", ident("m")))
	e.along(r.flat.N, "n", r.flat.V)
	l := e.lanes(r.flat.Lane, r.flat.V)
	var xs []*kernel.Expr
	for _, f := range r.reductions {
		xs = append(xs, f.X)
	}
	if r.store != nil {
		l.give(r.outs[0])
	} else {
		l.storeAnd(r.outs, xs, func(j code) {
			for i, x := range xs {
				e.assign(x.From, cpp("%s[%d][%s]", reducedValues, i, j), l.value(x))
			}
		})
	}
	u.leave()
	if r.store != nil {
		r.writeBulk(t)
	}
	u.leave()
	return nil
}

// registersOf estimates the registers for the results' expressions besides the
// sums: the compiler interleaves several elements.
func registersOf(outs []kernel.Out, xs []*kernel.Expr) int {
	seen := map[*kernel.Expr]bool{}
	n := 0
	count := func(x *kernel.Expr) {
		kernel.Walk(x, func(y *kernel.Expr) {
			switch y.Op {
			case kernel.Number, kernel.Acc, "convert":
			default:
				if !seen[y] {
					seen[y] = true
					n += 4
				}
			}
		})
	}
	for _, o := range outs {
		count(o.X)
	}
	for _, x := range xs {
		count(x)
	}
	return min(n, 100)
}

// along is bind for a variable that counts vectors of v.
func (e *emitter) along(a *kernel.Atom, name ident, v int64) {
	if v > 1 && a != nil && v&(v-1) == 0 {
		e.runs[a] = run{name, v}
	}
	if v > 1 {
		e.bind(a, cpp("(%s / %d)", name, v))
	} else {
		e.bind(a, cpp("%s", name))
	}
}
