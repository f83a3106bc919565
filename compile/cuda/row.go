package cuda

import (
	"slices"

	"dmir/compile/assemble"
	"dmir/compile/kernel"
	"dmir/dialect/types"
	"dmir/gpu/artifact"
)

// rows is the partition of a row kernel: a warp or a block for each row, or the
// blocks of a cluster, or several blocks for each row, which then have a launch for
// each pass along it and hand partial results to the next one in memory.
type rows struct {
	f        *kernel.Form
	v        int64 // vector width of a thread
	chunks   int64 // of v columns in a row
	warp     bool  // a warp for each row, else a block
	threads  int   // of a block
	share    int64 // threads of a row, or of a block's part of it
	online   bool  // passes are merged where they can be (kernel.Online)
	passes   [][]*kernel.Expr
	resident bool    // what several passes read stays in registers
	sweeps   []sweep // of each pass, and the last one, which stores elements and sums columns
	blocks   int64   // that number the rows: each has one, or a loop over some
	loop     bool    // a block loops over several rows
	memory   bool    // column sums are in memory, since they exceed the registers
	shared   bool    // blocks share rows
	cluster  int64   // blocks of the cluster that shares a row; 0: none
	perSM    int     // blocks of clusters that a multiprocessor has at once
	arch     string  // that clusters are written for
	// The partial sums of columns and of all rows, and, of shared rows, the partial
	// results of reductions along them.
	columns, totals []*assemble.Temp
	parts           [][]*assemble.Temp
}

// sweep is how the blocks go along the rows once.
type sweep struct {
	reads  []*kernel.Expr // what is computed at each element
	steps  int64          // of a thread along its part of the row
	unroll int64          // steps whose loads are in flight together; 0: as the compiler orders them
	splits int64          // blocks that share a row
}

// cacheBytes bounds the part of a row that each thread caches in registers.
const cacheBytes = 192

// sumRegisters bounds the column sums that a thread keeps in registers.
const sumRegisters = 40

// rows is the plan of a row kernel: that of whole rows, or of shared ones where
// their additional launches take less time than they save.
func (t Target) rows(f *kernel.Form) *rows {
	p := t.wholeRows(f)
	few := p.blocks < 2*t.multiprocessors()
	if !p.warp && (few || p.memory) {
		if q := t.sharedRows(f); q != nil && q.seconds(t.Machine) < p.seconds(t.Machine) {
			p = q
		}
	}
	if !p.warp && (few || !p.resident) {
		if q := t.clusterRows(f); q != nil && q.seconds(t.Machine) < p.seconds(t.Machine) {
			p = q
		}
	}
	if p.shared {
		for i, pass := range p.passes {
			p.parts = append(p.parts, parts(pass, f.Rows.Rows*p.sweeps[i].splits, false))
		}
	}
	p.columns = parts(f.Nest.Columns, p.blocks*f.Rows.Cols, p.memory && p.loop) // each row accumulates into them
	p.totals = parts(f.Nest.Totals, p.blocks, false)
	return p
}

// rowsOf is what plans of f share.
func rowsOf(f *kernel.Form) *rows {
	p := &rows{f: f, v: min(8, 16/widestOf(f))}
	for p.v > 1 && (f.Rows.Cols%p.v != 0 || f.Rows.Cols/p.v < 32) {
		p.v /= 2
	}
	p.chunks = f.Rows.Cols / p.v
	return p
}

// wholeRows is the plan with a warp or a block for each row.
func (t Target) wholeRows(f *kernel.Form) *rows {
	p, r := rowsOf(f), f.Rows
	cols := f.Nest.Columns
	sums := len(cols)+len(f.Nest.Totals) > 0
	sms := t.multiprocessors()
	p.warp = !sums && p.chunks <= 32*8 && r.Rows >= 2*sms
	if p.warp {
		p.threads, p.share = 128, 32
		p.blocks = (r.Rows + 3) / 4
	} else {
		p.share = 32
		for p.share < 512 && p.share*4 < p.chunks || p.share < 128 && p.share < p.chunks {
			p.share *= 2
		}
		p.threads = int(p.share)
		p.blocks = r.Rows
	}
	steps := ceil(p.chunks, p.share)
	if most := rowBlocks(r.Rows, p.share*steps, sms); sums && p.blocks > most {
		p.loop, p.blocks = true, most
	}
	p.memory = steps*p.v*int64(len(cols)) > sumRegisters
	p.sweep(func(s *sweep) { s.steps, s.splits = steps, 1 })
	again := p.again(p.v)
	p.resident = len(again) > 0 && steps*p.v*bytesOf(again) <= p.room()
	if p.warp || p.resident || steps == 1 {
		return p
	}
	p.online = true
	p.sweep(func(s *sweep) {
		s.steps, s.splits = steps, 1
		s.unroll = p.unrolled(s.reads, steps)
	})
	if last := &p.sweeps[len(p.passes)]; len(cols) > 0 && !p.memory {
		last.unroll = steps // registers are indexed by constants only
	}
	return p
}

// room is the number of bytes of a row that each thread may keep in registers.
func (p *rows) room() int64 {
	if p.share >= 512 { // there are half as many registers for each thread
		return cacheBytes / 2
	}
	return cacheBytes
}

// sharedRows is the plan in which blocks share rows; nil where there is none.
func (t Target) sharedRows(f *kernel.Form) *rows {
	p, r := rowsOf(f), f.Rows
	if r.Rows > maxSharedRows || p.chunks <= blockThreads {
		return nil
	}
	p.shared, p.online, p.threads, p.share, p.blocks = true, true, blockThreads, blockThreads, r.Rows
	cols := f.Nest.Columns
	sms := t.multiprocessors()
	most := ceil(p.chunks, p.share)
	p.sweep(func(s *sweep) {
		// About as many blocks as multiprocessors hold.
		s.steps = ceil(most, max(1, min(4*sms/r.Rows, most)))
		s.unroll = p.unrolled(s.reads, s.steps)
		s.steps = ceil(s.steps, s.unroll) * s.unroll
		s.splits = ceil(p.chunks, s.steps*p.share)
	})
	last := &p.sweeps[len(p.passes)]
	switch {
	case len(last.reads) == 0:
		last.splits = 1
	case len(cols) > 0:
		last.steps = max(1, min(last.unroll, sumRegisters/(p.v*int64(len(cols)))))
		last.unroll = last.steps // registers are indexed by constants only
		last.splits = ceil(p.chunks, last.steps*p.share)
		p.blocks = max(1, min(r.Rows, 4*sms/last.splits))
		p.loop = p.blocks < r.Rows
	}
	return p
}

// maxSharedRows bounds the rows that blocks share: they are the second dimension
// of a grid.
const maxSharedRows = 65535

// nest are the passes of f, the form of p or that with vectors, and what sums of
// the same pass are relative to.
func (p *rows) nest(f *kernel.Form) kernel.Online {
	if p.online {
		return f.Online()
	}
	return kernel.Online{Passes: f.Nest.Passes}
}

// sweep makes p's passes and the sweeps of them.
func (p *rows) sweep(set func(*sweep)) {
	p.passes, p.sweeps = p.nest(p.f).Passes, nil
	for _, pass := range p.passes {
		p.sweeps = append(p.sweeps, sweep{reads: reduced(pass)})
	}
	p.sweeps = append(p.sweeps, sweep{reads: lastOf(p.f)})
	for i := range p.sweeps {
		set(&p.sweeps[i])
	}
}

// lastOf are the expressions of the last pass, which stores and sums columns.
func lastOf(f *kernel.Form) (xs []*kernel.Expr) {
	for _, o := range levelOuts(f, kernel.PerElement) {
		xs = append(xs, o.X)
	}
	return append(xs, reduced(f.Nest.Columns)...)
}

// again are the loads of v elements that several sweeps read.
func (p *rows) again(v int64) (loads []*kernel.Expr) {
	times := map[*kernel.Expr]int{}
	for i, s := range p.sweeps {
		for _, x := range p.f.Streams(s.reads, v) {
			if times[x]++; times[x] == 1 && p.cluster > 0 && p.twice(i) {
				times[x]++
			}
			if times[x] == 2 {
				loads = append(loads, x)
			}
		}
	}
	return loads
}

// twice reports whether pass i goes over its elements twice: for the bases of sums, and for the sums.
func (p *rows) twice(i int) bool {
	base := p.nest(p.f).Base
	return i < len(p.passes) && slices.ContainsFunc(p.passes[i], func(x *kernel.Expr) bool { return base[x] != nil })
}

// bytesOf is the size of the elements of loads.
func bytesOf(loads []*kernel.Expr) (n int64) {
	for _, x := range loads {
		n += x.Elem.Bytes()
	}
	return n
}

// flightRegisters are those of each thread for loads in flight where registers do
// not hold the row: with 512 threads on a multiprocessor, which most kernels'
// registers allow, 64 KiB.
const flightRegisters = 32

// unrolled is the number of steps whose loads are in flight together, of a sweep
// that computes xs in steps. Their code is bounded too: the compiler interleaves
// it, in registers.
func (p *rows) unrolled(xs []*kernel.Expr, steps int64) int64 {
	const mostSteps, mostCode = 16, 512
	var registers int64
	for _, x := range p.f.Streams(xs, p.v) {
		registers += ceil(p.v*x.Elem.Bytes(), 4)
	}
	n := min(mostSteps, flightRegisters/max(1, registers), mostCode/max(1, p.v*p.f.Operations(xs)))
	return ceil(steps, ceil(steps, max(1, n)))
}

// parts is the memory for n partial results of each reduction.
func parts(reductions []*kernel.Expr, n int64, updated bool) (out []*assemble.Temp) {
	for _, x := range reductions {
		out = append(out, &assemble.Temp{Elem: accumulatorElem(x.Elem), N: n, Updated: updated})
	}
	return out
}

func (p *rows) temps() []*assemble.Temp {
	return slices.Concat(slices.Concat(p.parts...), p.columns, p.totals)
}

func (p *rows) launches() ([]*launch, error) {
	var all []*launch
	if p.shared {
		all = p.sharing()
	} else {
		all = []*launch{p.whole()}
	}
	f := p.f
	if len(p.columns) > 0 {
		all = append(all, finishColumns(f, p.columns, p.blocks))
	}
	if len(p.totals) > 0 {
		all = append(all, finishTotals(f, p.totals, p.blocks))
	}
	return all, nil
}

// sums adds the parameters for the partial sums of columns and of all rows.
func (p *rows) sums(ns *names, mode artifact.Mode) (columns, totals []ident) {
	for _, t := range p.columns {
		columns = append(columns, ns.addTemp("partial", t, mode))
	}
	for _, t := range p.totals {
		totals = append(totals, ns.addTemp("partial", t, artifact.Out))
	}
	return columns, totals
}

// whole is the launch in which each row is one block's or one warp's.
func (p *rows) whole() *launch {
	f := p.f
	ns := namesOf(f.Inputs, nil)
	stores := ns.stores(levelOuts(f, kernel.PerElement, kernel.PerRow))
	ns.readers(slices.Concat(stores, reduced(f.Nest.Passes...), reduced(f.Nest.Columns, f.Nest.Totals))...)
	mode := artifact.Out
	if p.memory && p.loop {
		mode = artifact.InOut
	}
	columns, totals := p.sums(ns, mode)
	block, grid := p.gridOf()
	l := &launch{
		Launch: assemble.Launch{Class: string(f.Class), Block: block, Grid: grid, Params: ns.params},
		// Without a bound on the blocks ptxas aims at a higher occupancy than the
		// registers allow, and spills.
		blocks: max(1, 256/p.threads),
		named:  ns.of, write: func(t *text) error { return p.write(t, columns, totals) },
	}
	if p.cluster > 0 {
		l.blocks, l.include, l.Arch = p.perSM, "cluster.cuh", p.arch
	}
	return l
}

// widestOf is the size of the widest element that f reads or writes along its
// rows; values read once for each row or by the final reduction do not count.
func widestOf(f *kernel.Form) int64 {
	widest := int64(1)
	see := func(x *kernel.Expr) {
		kernel.Walk(x, func(y *kernel.Expr) {
			if y.Op == kernel.Load && f.Rows.Col != nil {
				y.At.Atoms(func(a *kernel.Atom) {
					if a == f.Rows.Col || a.Kind == kernel.Datum {
						widest = max(widest, y.Elem.Bytes())
					}
				})
			}
		})
	}
	for _, o := range f.Outs {
		switch o.Level {
		case kernel.PerElement:
			widest = max(widest, o.Value.Elem().Bytes())
			see(o.X)
		case kernel.PerRow:
			see(o.X)
		default:
			kernel.Walk(o.X, func(x *kernel.Expr) {
				if x.Op == kernel.Reduce && x.Over != kernel.OwnLoop {
					see(x.Args[0])
				}
			})
		}
	}
	return widest
}

// rowBlocks is the number of blocks that loop over the rows where each
// accumulates column sums. A block waits for memory and then for its threads,
// row after row, so a multiprocessor needs about a thousand loads in flight;
// but a block has at least 16 rows, so that its sums are fewer bytes than its
// rows.
func rowBlocks(rows, chunks, sms int64) int64 {
	return max(2*sms, min(1024/chunks*sms, 8*sms, rows/16))
}

// rowKernel is the state of writing a row kernel.
type rowKernel struct {
	*emitter
	kernel.Online
	p     *rows
	f     *kernel.Form           // with vector width v
	cache map[*kernel.Expr]ident // register arrays of loads of the row
	// unrolled reports whether there are such arrays: registers are indexed by
	// constants only.
	unrolled bool
	sweep    *sweep         // that is being written
	fetched  bool           // its loads are
	block    code           // the number of the block among those that number rows
	cols     []*kernel.Expr // reductions over rows, one value for each column
	alls     []*kernel.Expr // reductions over rows, a single value
	acc      map[*kernel.Expr]ident
	// The memory for the sums of the block's rows: that of block b and column c
	// is at b · columns + c, that of a single value at b.
	colParts, allParts []ident
}

// The variables of row kernels.
const (
	row   ident = "row"
	col   ident = "col"
	first ident = "first" // the thread's number among those of its row
	along ident = "s"     // the step along the row
	near  ident = "j"     // the lane
	part  ident = "p"
	rank  ident = "rank" // of the block in its cluster
)

// kernel starts writing a kernel with reductions along rows.
func (p *rows) kernel(t *text) (*rowKernel, error) {
	f, err := widened(p.f, p.v)
	if err != nil {
		return nil, err
	}
	return &rowKernel{
		emitter: t.emitter(t.body), p: p, f: f, cols: f.Nest.Columns, alls: f.Nest.Totals, Online: p.nest(f),
		cache: map[*kernel.Expr]ident{}, acc: map[*kernel.Expr]ident{},
	}, nil
}

// write writes one row of the form for each warp or block.
func (p *rows) write(t *text, columns, totals []ident) error {
	k, err := p.kernel(t)
	if err != nil {
		return err
	}
	k.approximate = approximate(k.f.Outs)
	k.colParts, k.allParts, k.block = columns, totals, cpp("dm::block()")
	k.start()
	for i, pass := range k.Passes {
		k.sweep = &p.sweeps[i]
		if p.cluster > 0 {
			k.reduceAlong(pass, k.elements(k.sweep, cpp("%s", rank)))
			k.exchange(pass, i > 0)
		} else {
			k.reduceAlong(pass, cpp("%d", k.f.Rows.Cols))
		}
		k.settle(pass)
	}
	k.sweep = &p.sweeps[len(k.Passes)]
	k.outputs()
	if p.loop {
		k.close()
	}
	k.partials()
	return nil
}

// scratch declares the shared memory in which the threads of a block combine
// reductions.
func (e *emitter) scratch(reductions []*kernel.Expr) {
	seen := map[types.Elem]bool{}
	for _, x := range reductions {
		if elem := scratchElem(x.Elem); !seen[elem] {
			seen[elem] = true
			e.line("DM_SHARED(%s, %s, 32)", storage(elem), def(scratchName(elem)))
		}
	}
}

// start computes the number of the row, and loads the values that are read more
// than once.
func (k *rowKernel) start() {
	r, p := k.f.Rows, k.p
	if !p.warp {
		k.scratch(slices.Concat(k.f.Nest.Passes...))
	}
	switch {
	case p.cluster > 0:
		k.beginCluster()
	case p.warp:
		k.line("const dm::i32 %s = dm::lane()", def(first))
	default:
		k.line("const dm::i32 %s = dm::thread()", def(first))
	}
	k.beginSums()
	switch {
	case p.loop:
		k.open("for (dm::i32 %s = dm::block(); %s < %d; %s += dm::blocks())", def(row), row, r.Rows, row)
	case p.warp:
		k.line("const dm::i32 %s = dm::block() * %d + dm::warp()", def(row), p.threads/32)
		if r.Rows%int64(p.threads/32) != 0 {
			k.oneLine(cpp("return"), "if (%s >= %d)", row, r.Rows)
		}
	case p.cluster > 0:
		k.line("const dm::i32 %s = dm::block() / %d", def(row), p.cluster)
		k.block = cpp("%s", row)
	default:
		k.line("const dm::i32 %s = dm::block()", def(row))
	}
	k.bind(r.Row, cpp("%s", row))
	if p.resident {
		k.read()
	}
}

// beginSums declares the sums of columns and of all rows.
func (k *rowKernel) beginSums() {
	p := k.p
	for _, x := range k.cols {
		if p.memory {
			break
		}
		n, steps := k.name("sum"), p.sweeps[len(p.passes)].steps
		k.acc[x] = n
		k.lineOf(x.From, "%s %s[%d][%d]", register(x.Elem), def(n), steps, p.v)
		k.pragma("DM_UNROLL")
		k.add(count(along, 0, steps, count(near, 0, p.v, &stmt{head: cpp("%s[%s][%s] = %s", n, along, near, identity(x.Kind, x.Elem))})))
	}
	for _, x := range k.alls {
		n := k.name("total")
		k.acc[x] = n
		k.lineOf(x.From, "%s %s = %s", register(x.Elem), def(n), identity(x.Kind, x.Elem))
	}
}

// count is a loop on one line, in which i counts up from a number to another.
func count(i ident, from, to int64, body *stmt) *stmt {
	return &stmt{head: cpp("for (int %s = %d; %s < %d; %s++)", def(i), from, i, to, i), style: inLine, body: []*stmt{body}}
}

// read caches in registers the loads that the passes over the row read more
// than once, and, as far as registers go, those of one pass, so that all are in flight
// together: behind the reduction of a pass before they would wait for memory once more.
func (k *rowKernel) read() {
	passes := map[*kernel.Expr]int{}
	count := func(i int, xs []*kernel.Expr) {
		for _, x := range k.loadsOf(xs) {
			if passes[x]++; k.p.cluster > 0 && k.p.twice(i) {
				passes[x]++
			}
		}
	}
	for i, level := range k.Passes {
		count(i, reduced(level))
	}
	count(len(k.Passes), lastOf(k.f))
	keep := slices.DeleteFunc(k.order(), func(x *kernel.Expr) bool { return passes[x] < 2 })
	room := k.p.room()
	if !k.p.warp {
		room = min(room, 128) // more of them cost blocks that share a multiprocessor
	}
	for _, x := range keep {
		room -= k.held(x)
	}
	k.keep(slices.DeleteFunc(k.order(), func(x *kernel.Expr) bool {
		return passes[x] == 0 || passes[x] == 1 && !k.fits(x, &room)
	}))
}

// held is the bytes of a load that each thread has of its row.
func (k *rowKernel) held(x *kernel.Expr) int64 { return k.p.sweeps[0].steps * k.p.v * x.Elem.Bytes() }

// fits reports whether there is room for a load, and takes it.
func (k *rowKernel) fits(x *kernel.Expr, room *int64) bool {
	n := k.held(x)
	if k.p.loop || n > *room {
		return false
	}
	*room -= n
	return true
}

// keep reads loads of the whole row to registers.
func (k *rowKernel) keep(loads []*kernel.Expr) {
	if len(loads) == 0 {
		return
	}
	k.arrays(loads, k.p.sweeps[0].steps)
	k.unrolled, k.sweep = true, &k.p.sweeps[0]
	k.along(func() { k.fill(loads) })
}
