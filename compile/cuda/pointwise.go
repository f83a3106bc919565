package cuda

import (
	"fmt"
	"maps"
	"slices"

	"dmir/compile/assemble"
	"dmir/compile/kernel"
	"dmir/dialect/ir"
	"dmir/gpu/artifact"
)

const blockThreads = 256

// vectorOf is the vector width for results of those types, such that each
// access is 16 bytes where all sizes are multiples of it.
func vectorOf(f *kernel.Form, n func(kernel.Out) int64) int64 {
	least := int64(8)
	for _, v := range f.Outputs {
		least = min(least, v.Elem().Bytes())
	}
	v := min(8, 16/least)
	for _, o := range f.Outs {
		for v > 1 && n(o)%v != 0 {
			v /= 2
		}
	}
	return v
}

// elementwise has one thread for each V elements of the results.
type elementwise struct {
	f      *kernel.Form
	over   map[*ir.Value]*ir.Value
	groups []*grouping // of the updates of scatters
	pieces []*pieces   // of groups
	v      int64       // vector width of a thread
	team   *team       // of lanes for each element; nil: a thread computes it
}

// sharing is the results that share a loop.
type sharing struct {
	outs   []int   // their numbers
	tiling *tiling // nil: a thread computes v neighbours of each
}

// mostShared bounds the shared memory of tiles, which every architecture has.
const mostShared = 48 << 10

// loops are the kernel's results by their loops.
func (p *elementwise) loops() (all []sharing) {
	room := int64(mostShared)
	done := make([]bool, len(p.f.Outs))
	for k, o := range p.f.Outs {
		if done[k] {
			continue
		}
		var same sharing
		for j, q := range p.f.Outs {
			if q.Loops[0] == o.Loops[0] && q.Elements() == o.Elements() {
				done[j] = true
				same.outs = append(same.outs, j)
			}
		}
		if p.f.Class == kernel.ClassPointwise && p.f.Cells == nil {
			if same.tiling = tiled(p.f, same.outs, room); same.tiling != nil {
				room -= same.tiling.shared()
			}
		}
		all = append(all, same)
	}
	return all
}

// blocks is the number of blocks that compute the results of q.
func (p *elementwise) blocks(q sharing) int64 {
	if q.tiling != nil {
		return q.tiling.blocks()
	}
	return ceil(p.f.Outs[q.outs[0]].Elements()/p.v*p.teamLanes(), blockThreads)
}

// elementwise is the plan of a kernel whose threads compute single elements.
func (t Target) elementwise(f *kernel.Form, over map[*ir.Value]*ir.Value) (*elementwise, error) {
	p := &elementwise{f: f, over: over, v: 1}
	if f.Visits() == 0 || f.Class == kernel.ClassPointwise {
		if g := t.cells(f); g != nil && !slices.ContainsFunc(p.loops(), func(q sharing) bool { return q.tiling != nil }) {
			p.f = g
		}
	}
	if f.Class == kernel.ClassPointwise {
		p.v = vectorOf(p.f, kernel.Out.Elements)
		for _, c := range p.f.Cells {
			for p.v > 1 && c.Neighbours()%p.v != 0 {
				p.v /= 2
			}
		}
		if p.f.Segmented() {
			p.v = vectorOfRows(p.f, p.v)
		}
		return p, nil
	}
	if f.Visits() == 0 {
		if f.Segmented() && p.f.Cells == nil {
			p.v = vectorOfRows(f, vectorOf(f, kernel.Out.Elements))
			if len(p.loops()) == 1 {
				p.team = teamOf(f, p.v)
			}
		}
		return p, nil
	}
	grouped, err := f.Grouped()
	if err != nil {
		return nil, err
	}
	if gs := t.groupings(grouped.Groups); groupingPays(gs, f.Visits(), p.threads(), t.multiprocessors()) {
		p.f, p.groups, p.v, p.pieces = grouped, gs, vectorOfRows(grouped, vectorOf(grouped, kernel.Out.Elements)), piecesOf(grouped, gs)
	}
	return p, nil
}

// vectorOfRows is the vector width for results of f, which is grouped or segmented: at most v, and such that the
// elements of a vector have the same groups and segments, and share their searches.
func vectorOfRows(f *kernel.Form, v int64) int64 {
	for ; v > 1; v /= 2 {
		w, err := f.Widen(v, 0)
		same := err == nil && !slices.ContainsFunc(w.Pieces, func(p *kernel.Pieces) bool { return p.Cells%v != 0 })
		if same {
			for _, o := range w.Outs {
				for _, x := range o.Exprs() {
					kernel.Walk(x, func(x *kernel.Expr) { same = same && shared(x, w.Lane) })
				}
			}
		}
		if same {
			break
		}
	}
	return v
}

// shared reports whether neighbours, which lane numbers, take x over the same elements if it is a reduction or a search.
func shared(x *kernel.Expr, lane *kernel.Atom) bool {
	switch {
	case x.Op == kernel.Search:
		return !x.DependsOn(lane)
	case x.Op != kernel.Reduce:
		return true
	}
	return x.Groups != nil && !x.At.DependsOn(lane) || x.Span != nil && !x.Span.From.DependsOn(lane) && !x.Span.To.DependsOn(lane)
}

func (p *elementwise) temps() (all []*assemble.Temp) {
	for _, g := range p.groups {
		all = append(all, g.starts, g.order)
	}
	for _, q := range p.pieces {
		all = append(all, q.sums...)
	}
	return all
}

// threads is the number of threads.
func (p *elementwise) threads() (most int64) {
	for _, o := range p.f.Outs {
		most = max(most, o.Elements()/p.v*p.teamLanes())
	}
	return most
}

// teamLanes is how many threads compute an element.
func (p *elementwise) teamLanes() int64 {
	if p.team == nil {
		return 1
	}
	return p.team.lanes
}

func (p *elementwise) launches() ([]*launch, error) {
	loops := p.loops()
	var blocks int64
	for _, q := range loops {
		blocks = max(blocks, p.blocks(q))
	}
	if blocks > 1<<31-1 {
		return nil, fmt.Errorf("%d blocks exceed the limit of a launch", blocks)
	}
	var all []*launch
	for i, g := range p.groups {
		all = append(all, g.launch(i))
	}
	for i, q := range p.pieces {
		ls, err := q.launches(p, i)
		if err != nil {
			return nil, err
		}
		all = append(all, ls...)
	}
	ns := namesOver(p.f, p.over)
	var held []lists
	for _, g := range p.groups {
		held = append(held, lists{ns.addTemp("starts", g.starts, artifact.In), ns.addTemp("order", g.order, artifact.In)})
	}
	sums := make([][]levelSums, len(p.pieces))
	for i, q := range p.pieces {
		for _, t := range q.sums {
			sums[i] = append(sums[i], q.level(ns, t))
		}
	}
	l := &launch{
		Launch: assemble.Launch{Class: string(p.f.Class), Block: artifact.Block{Threads: blockThreads}, Grid: [3]int{int(blocks), 1, 1}, Params: ns.params},
		named:  ns.of,
		write:  func(t *text) error { return p.write(t, held, sums, loops) },
	}
	if len(held) > 0 {
		l.include = "scatter.cuh"
	}
	switch {
	case p.f.Cells != nil && p.v == 1:
		l.blocks = 2 // for the registers of what a cell reads
	case len(held) > 0 || p.f.Class == kernel.ClassLoop:
		l.blocks = 4 // else ptxas aims at a higher occupancy than the registers allow, and spills
	}
	return append(all, l), nil
}

func (p *elementwise) write(t *text, held []lists, sums [][]levelSums, loops []sharing) error {
	f, err := widened(p.f, p.v)
	if err != nil {
		return err
	}
	e := t.emitter(t.body)
	e.approximate = approximate(f.Outs)
	for i, g := range f.Groups {
		e.lists[g] = held[i]
	}
	for i, q := range f.Pieces {
		e.sums[q] = sums[i]
	}
	count := "dm::i32"
	if p.threads() > 1<<31-blockThreads {
		count = "dm::i64"
	}
	const i ident = "i"
	if slices.ContainsFunc(loops, func(q sharing) bool { return q.tiling == nil }) {
		e.line("const %s %s = %s(dm::block()) * %d + dm::thread()", count, def(i), count, blockThreads)
	}
	for _, q := range loops {
		if q.tiling != nil {
			maps.Copy(e.approximate, approximate(q.tiling.outs))
			if len(loops) > 1 {
				e.open("if (dm::block() < %d)", q.tiling.blocks())
			}
			q.tiling.write(e)
			if len(loops) > 1 {
				e.close()
			}
			continue
		}
		outs := pick(f.Outs, q.outs)
		if p.team != nil {
			p.team.write(e, f, outs, i, count, outs[0].Elements()/f.V)
			continue
		}
		e.open("if (%s < %d)", i, outs[0].Elements()/f.V)
		e.bind(outs[0].Loops[0], cpp("%s", i))
		if f.Cells != nil && f.V == 1 {
			e.cell(outs, stages(f))
			e.close()
			continue
		}
		l := e.lanes(f.Lane, f.V)
		l.store(outs)
		l.end()
		e.close()
	}
	return nil
}

// widened is f with vector width v.
func widened(f *kernel.Form, v int64) (*kernel.Form, error) {
	if v > 1 {
		return f.Widen(v, 0)
	}
	return f, nil
}
