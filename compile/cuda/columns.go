package cuda

import (
	"fmt"
	"slices"

	"dmir/compile/assemble"
	"dmir/compile/kernel"
	"dmir/gpu/artifact"
)

// columns is the partition of a kernel with reductions over rows only: a block
// has some neighbouring columns and a part of the rows, which its threads
// share.
type columns struct {
	f      *kernel.Form
	v      int64 // vector width of a thread
	chunks int64 // of v columns in a row
	wide   int64 // threads of a block along a row
	deep   int64 // threads of a block that share the rows
	tiles  int64 // blocks along a row
	splits int64 // blocks that share the rows; from 2 on with partial sums in memory, or in a cluster
	// cluster: they are a cluster, on the architecture arch, and combine their sums on the chip.
	cluster bool
	arch    string
	// The partial sums of columns, and of all rows.
	sums, totals []*assemble.Temp
}

// columns is the plan of a kernel with reductions over rows only.
func (t Target) columns(f *kernel.Form) *columns {
	r, n := f.Rows, f.Nest
	p := &columns{f: f, v: 4, wide: 32}
	if widestOf(f) <= 2 {
		p.v = 8 // 16 bytes to an access
	}
	// The threads of a block combine their sums in shared memory.
	const most = 48 << 10
	for p.v > 1 && (r.Cols%p.v != 0 || r.Cols/p.v < 32 || int64(len(n.Columns)+len(n.Totals))*blockThreads*p.v*8 > most) {
		p.v /= 2
	}
	p.chunks = r.Cols / p.v
	for p.wide > 1 && p.wide/2 >= p.chunks {
		p.wide /= 2
	}
	if c := t.clusterColumns(p); c != nil {
		return c
	}
	p.partition(t)
	return p
}

// partition gives p its blocks, whose partial sums a second kernel combines.
func (p *columns) partition(t Target) {
	r, n := p.f.Rows, p.f.Nest
	p.deep = blockThreads / p.wide
	p.tiles = ceil(p.chunks, p.wide)
	// Each thread has several rows, so that the final reduction stays small.
	p.splits = max(1, min(4*t.multiprocessors()/p.tiles, r.Rows/(p.deep*8)))
	if p.splits > 1 {
		p.sums, p.totals = parts(n.Columns, p.splits*r.Cols, false), parts(n.Totals, p.splits*r.Cols, false)
	}
}

func (p *columns) temps() []*assemble.Temp { return slices.Concat(p.sums, p.totals) }

func (p *columns) launches() ([]*launch, error) {
	f := p.f
	if len(f.Nest.Totals) > 0 && p.tiles > 1 {
		return nil, fmt.Errorf("a sum of all rows beside %d columns", f.Rows.Cols)
	}
	ns := namesOf(f.Inputs, nil)
	reads := slices.Concat(ns.stores(levelOuts(f, kernel.PerElement, kernel.PerRow)), reduced(f.Nest.Columns, f.Nest.Totals))
	first := &launch{
		Launch: assemble.Launch{Class: string(f.Class), Block: artifact.Block{Threads: blockThreads}, Grid: [3]int{int(p.tiles), int(p.splits), 1}},
		named:  ns.of,
	}
	if p.cluster {
		first.Block.Cluster, first.Grid = int(p.splits), [3]int{int(p.tiles * p.splits), 1, 1}
		first.blocks, first.include, first.Arch = p.perMultiprocessor(), "cluster.cuh", p.arch
	}
	if len(p.temps()) == 0 {
		reads = slices.Concat(reads, ns.stores(levelOuts(f, kernel.PerColumn)), ns.stores(levelOuts(f, kernel.PerKernel)))
	}
	ns.readers(reads...)
	var to []ident
	for _, t := range p.temps() {
		to = append(to, ns.addTemp("partial", t, artifact.Out))
	}
	first.Params = ns.params
	first.write = func(t *text) error { return p.write(t, to) }
	all := []*launch{first}
	if len(p.sums) > 0 {
		all = append(all, finishColumns(f, p.sums, p.splits))
	}
	if len(p.totals) > 0 {
		all = append(all, finishTotals(f, p.totals, p.splits))
	}
	return all, nil
}

// write writes the kernel of the blocks; to are the partial sums, where several
// blocks share a column.
func (p *columns) write(t *text, to []ident) error {
	f, err := widened(p.f, p.v)
	if err != nil {
		return err
	}
	r, v := f.Rows, p.v
	const laneRow ident = "lane_row"
	e := t.emitter(t.body)
	e.approximate = approximate(f.Outs)
	tile, firstRow := cpp("dm::block()"), cpp("dm::block_y()")
	if p.cluster {
		e.line("const dm::i32 %s = dm::cluster_rank()", def(rank))
		tile, firstRow = cpp("dm::block() / %d", p.splits), cpp("%s", rank)
	}
	e.line("const %s %s = %s + dm::thread() %% %d", counter(p.chunks), def(col), scaled(tile, p.wide, p.chunks), p.wide)
	e.bind(r.Col, cpp("%s", col))
	e.line("const dm::i32 %s = dm::thread() / %d", def(laneRow), p.wide)
	acc := map[*kernel.Expr]ident{}
	all := slices.Concat(f.Nest.Columns, f.Nest.Totals)
	for i, x := range all {
		e.lineOf(x.From, "DM_SHARED(%s, %s, %d)", register(x.Elem), def(sharedSums(i)), blockThreads*v)
		acc[x] = e.name("sum")
		e.line("%s %s[%d]", register(x.Elem), def(acc[x]), v)
		e.pragma("DM_UNROLL")
		e.add(count(near, 0, v, &stmt{head: cpp("%s[%s] = %s", acc[x], near, identity(x.Kind, x.Elem))}))
	}
	if p.chunks%p.wide != 0 {
		e.open("if (%s < %d)", col, p.chunks)
	}
	e.open("for (dm::i32 %s = %s * %d + %s; %s < %d; %s += %d)", def(row), firstRow, p.deep, laneRow, row, r.Rows, row, p.deep*p.splits)
	e.bind(r.Row, cpp("%s", row))
	if rows := levelOuts(f, kernel.PerRow); len(rows) > 0 {
		e.open("if (%s == 0)", col)
		e.finish(rows)
		e.close()
	}
	l := e.lanes(f.Lane, v)
	if elements := levelOuts(f, kernel.PerElement); len(elements) > 0 {
		l.store(elements)
	}
	for _, x := range all {
		l.ready(x.Args[0])
	}
	l.each(func(j code) {
		for _, x := range all {
			at := cpp("%s[%s]", acc[x], j)
			e.assign(x.From, at, combined(x.Kind, x.Elem, at, e.value(x.Args[0])))
		}
	})
	l.end()
	e.close()
	if p.chunks%p.wide != 0 {
		e.close()
	}
	if p.cluster {
		p.combine(e, acc, all)
		return nil
	}
	// The threads of a column combine their sums; the first one of each continues.
	for i, x := range all {
		e.of(x.From)
		e.pragma("DM_UNROLL")
		e.add(count(near, 0, v, &stmt{head: cpp("%s[%s * %d + dm::thread()] = %s[%s]", sharedSums(i), near, blockThreads, acc[x], near)}))
	}
	e.line("dm::sync()")
	e.oneLine(cpp("return"), "if (%s > 0 || %s >= %d)", laneRow, col, p.chunks)
	for i, x := range all {
		e.of(x.From)
		e.pragma("DM_UNROLL")
		e.open("for (int %s = 0; %s < %d; %s++)", def(near), near, v, near)
		sum := cpp("%s[%s]", acc[x], near)
		e.add(count(part, 1, p.deep, &stmt{
			head: cpp("%s = %s", sum, combined(x.Kind, x.Elem, sum, cpp("%s[%s * %d + %s * %d + dm::thread()]", sharedSums(i), near, blockThreads, part, p.wide))),
		}))
		e.close()
	}
	for i, n := range to {
		e.of(all[i].From)
		e.pragma("DM_UNROLL")
		at := cpp("dm::i64(dm::block_y()) * %d + %s * %d + %s", r.Cols, col, v, near)
		e.add(count(near, 0, v, &stmt{head: cpp("%s.store(%s, %s[%s])", n, at, acc[all[i]], near)}))
	}
	if len(to) > 0 {
		return nil
	}
	l = e.lanes(f.Lane, v)
	for _, x := range all {
		if f.Lane == nil {
			e.given[x] = cpp("%s[0]", acc[x])
		} else {
			e.lane[x] = acc[x]
		}
	}
	l.store(slices.Concat(levelOuts(f, kernel.PerColumn), levelOuts(f, kernel.PerKernel)))
	l.end()
	return nil
}
