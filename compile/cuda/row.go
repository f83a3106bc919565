package cuda

import (
	"slices"

	"dmir/compile/assemble"
	"dmir/compile/kernel"
	"dmir/dialect/types"
	"dmir/gpu/artifact"
)

// rows is the partition of a row kernel: a warp or a block for each row, and
// the number of its steps along it; where the rows are few, several blocks for
// each row. Partial results for the next launch are in memory.
type rows struct {
	f       *kernel.Form
	v       int64 // vector width of a thread
	chunks  int64 // of v columns in a row
	warp    bool  // a warp for each row, else a block
	threads int   // of a block
	share   int64 // threads of a row
	steps   int64 // of a thread along its row
	blocks  int64
	loop    bool  // a block loops over several rows
	memory  bool  // column sums are in memory, since they exceed the registers
	splits  int64 // blocks that share a row
	// The partial sums of columns and of all rows; where blocks share rows, the
	// partial results of the single pass.
	columns, totals, passes []*assemble.Temp
}

// cacheBytes bounds the part of a row that each thread caches in registers.
const cacheBytes = 192

// sumRegisters bounds the column sums that a thread keeps in registers.
const sumRegisters = 40

// rows is the plan of a row kernel.
func (t Target) rows(f *kernel.Form) *rows {
	cols, alls := f.Nest.Columns, f.Nest.Totals
	sums := len(cols)+len(alls) > 0
	r := f.Rows
	p := &rows{f: f, v: min(8, 16/widestOf(f))}
	for p.v > 1 && (r.Cols%p.v != 0 || r.Cols/p.v < 32) {
		p.v /= 2
	}
	p.chunks = r.Cols / p.v
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
	p.steps = (p.chunks + p.share - 1) / p.share
	if most := rowBlocks(r.Rows, p.share*p.steps, sms); sums && p.blocks > most {
		p.loop, p.blocks = true, most
	}
	p.memory = p.steps*p.v*int64(len(cols)) > sumRegisters
	if p.splits = p.rowSplits(sms); p.splits > 1 {
		p.passes = parts(f.Nest.Passes[0], r.Rows*p.splits, false)
		return p
	}
	p.columns = parts(cols, p.blocks*r.Cols, p.memory && p.loop) // each row accumulates into them
	p.totals = parts(alls, p.blocks, false)
	return p
}

// parts is the memory for n partial results of each reduction.
func parts(reductions []*kernel.Expr, n int64, updated bool) (out []*assemble.Temp) {
	for _, x := range reductions {
		out = append(out, &assemble.Temp{Elem: accumulatorElem(x.Elem), N: n, Updated: updated})
	}
	return out
}

func (p *rows) temps() []*assemble.Temp { return slices.Concat(p.passes, p.columns, p.totals) }

func (p *rows) launches() ([]*launch, error) {
	if p.splits > 1 {
		return p.split(), nil
	}
	f := p.f
	ns := namesOf(f.Inputs, nil)
	stores := ns.stores(levelOuts(f, kernel.PerElement, kernel.PerRow))
	ns.readers(slices.Concat(stores, reduced(f.Nest.Passes...), reduced(f.Nest.Columns, f.Nest.Totals))...)
	mode := artifact.Out
	if p.memory && p.loop {
		mode = artifact.InOut
	}
	var columns, totals []ident
	for _, t := range p.columns {
		columns = append(columns, ns.addTemp("partial", t, mode))
	}
	for _, t := range p.totals {
		totals = append(totals, ns.addTemp("partial", t, artifact.Out))
	}
	all := []*launch{{
		Launch: assemble.Launch{Class: string(f.Class), Block: artifact.Block{Threads: p.threads}, Grid: [3]int{int(p.blocks), 1, 1}, Params: ns.params},
		// Without a bound on the blocks ptxas aims at a higher occupancy than the
		// registers allow, and spills.
		blocks: max(1, 256/p.threads),
		named:  ns.of, write: func(t *text) error { return p.write(t, columns, totals) },
	}}
	if len(p.columns) > 0 {
		all = append(all, finishColumns(f, p.columns, p.blocks))
	}
	if len(p.totals) > 0 {
		all = append(all, finishTotals(f, p.totals, p.blocks))
	}
	return all, nil
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
	p     *rows
	f     *kernel.Form           // with vector width v
	cache map[*kernel.Expr]ident // register arrays of loads of the row
	// unrolled reports whether there are such arrays: registers are indexed by
	// constants only.
	unrolled bool
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
)

// kernel starts writing a kernel with reductions along rows.
func (p *rows) kernel(t *text) (*rowKernel, error) {
	f, err := widened(p.f, p.v)
	if err != nil {
		return nil, err
	}
	return &rowKernel{
		emitter: t.emitter(t.body), p: p, f: f, cols: f.Nest.Columns, alls: f.Nest.Totals,
		cache: map[*kernel.Expr]ident{}, acc: map[*kernel.Expr]ident{},
	}, nil
}

// write writes one row of the form for each warp or block: the loads of the row
// stay in registers across the passes.
func (p *rows) write(t *text, columns, totals []ident) error {
	k, err := p.kernel(t)
	if err != nil {
		return err
	}
	k.colParts, k.allParts, k.approximate = columns, totals, approximate(k.f.Outs)
	k.start()
	for _, pass := range k.f.Nest.Passes {
		k.reduceAlong(pass)
	}
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
		k.line("const dm::i32 %s = dm::thread()", def(first))
	} else {
		k.line("const dm::i32 %s = dm::lane()", def(first))
	}
	for _, x := range k.cols {
		if p.memory {
			break
		}
		n := k.name("sum")
		k.acc[x] = n
		k.lineOf(x.From, "%s %s[%d][%d]", register(x.Elem), def(n), p.steps, p.v)
		k.pragma("DM_UNROLL")
		k.add(count(along, 0, p.steps, count(near, 0, p.v, &stmt{head: cpp("%s[%s][%s] = %s", n, along, near, identity(x.Kind, x.Elem))})))
	}
	for _, x := range k.alls {
		n := k.name("total")
		k.acc[x] = n
		k.lineOf(x.From, "%s %s = %s", register(x.Elem), def(n), identity(x.Kind, x.Elem))
	}
	switch {
	case p.loop:
		k.open("for (dm::i32 %s = dm::block(); %s < %d; %s += dm::blocks())", def(row), row, r.Rows, row)
	case p.warp:
		k.line("const dm::i32 %s = dm::block() * %d + dm::warp()", def(row), p.threads/32)
		if r.Rows%int64(p.threads/32) != 0 {
			k.oneLine(cpp("return"), "if (%s >= %d)", row, r.Rows)
		}
	default:
		k.line("const dm::i32 %s = dm::block()", def(row))
	}
	k.bind(r.Row, cpp("%s", row))
	k.read()
}

// count is a loop on one line, in which i counts up from a number to another.
func count(i ident, from, to int64, body *stmt) *stmt {
	return &stmt{head: cpp("for (int %s = %d; %s < %d; %s++)", def(i), from, i, to, i), style: inLine, body: []*stmt{body}}
}

// read caches in registers the loads that the passes over the row read more
// than once.
func (k *rowKernel) read() {
	passes := map[*kernel.Expr]int{}
	count := func(xs []*kernel.Expr) {
		seen := map[*kernel.Expr]bool{}
		for _, x := range xs {
			k.passLoads(x, seen)
		}
		for x := range seen {
			passes[x]++
		}
	}
	for _, level := range k.f.Nest.Passes {
		var xs []*kernel.Expr
		for _, x := range level {
			xs = append(xs, x.Args[0])
		}
		count(xs)
	}
	count(k.last())
	var room int64 = cacheBytes
	if k.p.share >= 512 { // there are half as many registers for each thread
		room /= 2
	}
	var keep []*kernel.Expr
	for _, x := range k.order() {
		if passes[x] < 2 {
			continue
		}
		room -= k.p.steps * k.p.v * x.Elem.Bytes()
		keep = append(keep, x)
	}
	if room < 0 { // the remaining loads keep as many addresses in registers
		keep = nil
	}
	if len(keep) == 0 {
		return
	}
	names := make([]ident, len(keep))
	for i, x := range keep {
		n := k.name("c")
		names[i] = n
		if k.p.v > 1 {
			k.line("dm::Vec<%s, %d> %s[%d]", storage(x.Elem), k.p.v, def(n), k.p.steps)
		} else {
			k.line("%s %s[%d]", storage(x.Elem), def(n), k.p.steps)
		}
	}
	k.unrolled = true
	k.along(func() {
		for i, x := range keep {
			to := cpp("%s[%s]", names[i], along)
			if k.p.v > 1 {
				base, _ := contiguous(x.At, k.f.Lane, k.p.v)
				k.assign(x.From, to, cpp("%s.template load<%d>(%s)", k.param(x.Buf), k.p.v, k.index(base)))
			} else {
				k.assign(x.From, to, cpp("%s[%s]", k.param(x.Buf), k.index(x.At)))
			}
		}
	})
	for i, x := range keep {
		k.cache[x] = names[i]
	}
}

// along is the loop over the steps of a thread along its row.
func (k *rowKernel) along(body func()) {
	p, cols := k.p, k.f.Rows.Cols
	// Registers are indexed by constants only.
	if k.unrolled || len(k.cols) > 0 && !p.memory || p.steps <= 4 {
		k.pragma("DM_UNROLL")
	} else {
		k.pragma("DM_NO_UNROLL")
	}
	k.open("for (int %s = 0; %s < %d; %s++)", def(along), along, p.steps, along)
	k.line("const %s %s = %s + %s", counter(cols), def(col), first, scaled(cpp("%s", along), p.share, cols))
	k.bind(k.f.Rows.Col, cpp("%s", col))
	if p.chunks%p.share != 0 {
		k.open("if (%s < %d)", col, p.chunks)
		body()
		k.close()
	} else {
		body()
	}
	k.close()
}

// lanesOfRow are the lanes of one step, with the cached loads.
func (k *rowKernel) lanesOfRow() *lanes {
	outer := k.loaded
	k.loaded = func(x *kernel.Expr) (code, bool) {
		n, ok := k.cache[x]
		switch {
		case !ok && outer != nil:
			return outer(x)
		case !ok:
			return code{}, false
		case k.p.v > 1:
			return cpp("dm::wide(%s[%s][%s])", n, along, k.atoms[k.f.Lane]), true
		}
		return cpp("dm::wide(%s[%s])", n, along), true
	}
	l := k.lanes(k.f.Lane, k.p.v)
	l.skip = func(x *kernel.Expr) bool { _, ok := k.cache[x]; return ok }
	end := l.end
	l.end = func() { end(); k.loaded = outer }
	return l
}

// initAccumulators declares the accumulator of each reduction of a pass.
func (k *rowKernel) initAccumulators(level []*kernel.Expr) []ident {
	accs := make([]ident, len(level))
	for i, x := range level {
		k.hoist(x.Args[0])
		accs[i] = k.name("f")
		k.lineOf(x.From, "%s %s = %s", register(x.Elem), def(accs[i]), identity(x.Kind, x.Elem))
	}
	return accs
}

// accumulate adds the elements at one position of the row to the reductions of
// a pass.
func (k *rowKernel) accumulate(level []*kernel.Expr, accs []ident) {
	l := k.lanesOfRow()
	for _, x := range level {
		l.ready(x.Args[0])
	}
	l.each(func(code) {
		for i, x := range level {
			k.assign(x.From, accs[i], combined(x.Kind, x.Elem, accs[i], k.value(x.Args[0])))
		}
	})
	l.end()
}

// reduceAlong computes the reductions of one pass along the row.
func (k *rowKernel) reduceAlong(level []*kernel.Expr) {
	accs := k.initAccumulators(level)
	k.along(func() { k.accumulate(level, accs) })
	for i, x := range level {
		k.assign(x.From, accs[i], reduceThreads(x, accs[i], k.p.warp))
		k.given[x] = cpp("%s", accs[i])
	}
}

// scratchElem is the type in which threads combine partial results of a
// reduction.
func scratchElem(elem types.Elem) types.Elem {
	switch {
	case elem == types.I1 || !elem.IsFloat() && elem.Bytes() < 4:
		return types.I32
	case small(elem):
		return types.F32
	}
	return elem
}

func scratchName(elem types.Elem) ident { return ident("scratch_" + elem.String()) }

// reduceThreads combines the partial results of the threads of a warp or a
// block.
func reduceThreads(x *kernel.Expr, acc ident, warp bool) code {
	how := map[string]string{"add": "sum", "max": "max", "min": "min", "mul": "product", "and": "min", "or": "max"}[x.Kind]
	if x.Elem == types.I1 {
		how = map[string]string{"add": "max", "max": "max", "or": "max"}[x.Kind]
		if how == "" {
			how = "min"
		}
	}
	elem := scratchElem(x.Elem)
	cast := elem != x.Elem && !small(x.Elem)
	arg := cpp("%s", acc)
	if cast {
		arg = cpp("%s(%s)", storage(elem), acc)
	}
	c := cpp("dm::warp_%s(%s)", how, arg)
	if !warp {
		c = cpp("dm::block_%s(%s, %s)", how, arg, scratchName(elem))
	}
	if cast {
		c = cpp("%s(%s)", register(x.Elem), c)
	}
	return c
}
