package cuda

import (
	"fmt"
	"slices"

	"dmir/compile/assemble"
	"dmir/compile/kernel"
	"dmir/dialect/types"
	"dmir/gpu/artifact"
)

// passLoads are the vector loads at each column of a pass that computes x;
// reductions of earlier passes are complete by then.
func (k *rowKernel) passLoads(x *kernel.Expr, into map[*kernel.Expr]bool) {
	if x.Op == kernel.Reduce || x.Op == kernel.Guard {
		return
	}
	if x.Op == kernel.Load {
		if len(x.RowReductions()) > 0 {
			return // its address is known only after a pass
		}
		r := k.f.Rows
		if k.p.v > 1 {
			if _, ok := contiguous(x.At, k.f.Lane, k.p.v); ok {
				into[x] = true
			}
		} else if r.Col != nil && x.DependsOn(r.Col) {
			into[x] = true
		}
		return
	}
	for _, a := range x.Args {
		k.passLoads(a, into)
	}
}

// loadsOf are the vector loads of a pass that computes xs.
func (k *rowKernel) loadsOf(xs []*kernel.Expr) []*kernel.Expr {
	seen := map[*kernel.Expr]bool{}
	for _, x := range xs {
		k.passLoads(x, seen)
	}
	return slices.DeleteFunc(k.order(), func(x *kernel.Expr) bool { return !seen[x] })
}

// order lists all loads in the order of first occurrence.
func (k *rowKernel) order() []*kernel.Expr {
	var out []*kernel.Expr
	seen := map[*kernel.Expr]bool{}
	for _, o := range k.f.Outs {
		kernel.Walk(o.X, func(x *kernel.Expr) {
			if x.Op == kernel.Load && !seen[x] {
				seen[x] = true
				out = append(out, x)
			}
		})
	}
	return out
}

// outputs is the last pass: it stores the row and accumulates the column sums.
func (k *rowKernel) outputs() {
	var elements []kernel.Out
	for _, o := range k.f.Outs {
		switch o.Level {
		case kernel.PerElement:
			elements = append(elements, o)
		case kernel.PerRow:
			k.of(o.Value.Op)
			k.open("if (%s == 0)", first)
			elem := o.Value.Elem()
			l := k.lanes(nil, 1)
			k.lineOf(o.Value.Op, "%s.store(%s, %s)", k.param(o.Value), k.index(o.At), l.stored(o.X, elem))
			l.end()
			k.close()
		}
	}
	for _, x := range k.alls {
		v := k.value(x.Args[0])
		k.assign(x.From, k.acc[x], combined(x.Kind, x.Elem, k.acc[x], v))
	}
	if len(elements)+len(k.cols) == 0 {
		return
	}
	xs := lastOf(k.f)
	for _, x := range xs {
		k.hoist(x)
	}
	if k.p.resident && k.sweep.unroll == 0 { // what read had no room for is in flight together, too
		last, room := k.sweep, k.p.room()
		k.keep(slices.DeleteFunc(k.loadsOf(xs), func(x *kernel.Expr) bool { return k.cache[x] != "" || !k.fits(x, &room) }))
		k.sweep = last
	}
	k.batches(xs, func(each func(func())) { each(func() { k.last(elements) }) })
}

// last computes one position of the row in the last pass.
func (k *rowKernel) last(elements []kernel.Out) {
	l := k.lanesOfRow()
	l.store(elements)
	for _, x := range k.cols {
		l.ready(x.Args[0])
	}
	if k.p.memory {
		k.addInMemory(l)
	} else if len(k.cols) > 0 {
		l.each(func(j code) {
			for _, x := range k.cols {
				at := cpp("%s[%s][%s]", k.acc[x], along, j)
				k.assign(x.From, at, combined(x.Kind, x.Elem, at, k.value(x.Args[0])))
			}
		})
	}
	l.end()
}

// addInMemory adds the lanes of a step to the sums of the block's rows in
// memory.
func (k *rowKernel) addInMemory(l *lanes) {
	p := k.p
	parts := make([]ident, len(k.cols))
	for i, x := range k.cols {
		parts[i] = k.name("sum")
		k.lineOf(x.From, "%s %s[%d]", register(x.Elem), def(parts[i]), p.v)
	}
	l.each(func(j code) {
		for i, x := range k.cols {
			k.assign(x.From, cpp("%s[%s]", parts[i], j), k.value(x.Args[0]))
		}
	})
	for i, x := range k.cols {
		sum, at := cpp("%s[%s]", parts[i], near), k.partAt()
		k.of(x.From)
		k.pragma("DM_UNROLL")
		k.open("for (int %s = 0; %s < %d; %s++)", def(near), near, p.v, near)
		if p.loop {
			k.oneLine(cpp("%s = %s", sum, combined(x.Kind, x.Elem, cpp("%s[%s]", k.colParts[i], at), sum)), "if (%s != dm::block())", row)
		}
		k.line("%s.store(%s, %s)", k.colParts[i], at, sum)
		k.close()
	}
}

// partAt is the offset of the block's sum of a column in memory.
func (k *rowKernel) partAt() code {
	return cpp("dm::i64(%s) * %d + %s * %d + %s", k.block, k.f.Rows.Cols, col, k.p.v, near)
}

// partials stores the sums of the block's rows that are in registers.
func (k *rowKernel) partials() {
	p := k.p
	for i, x := range k.cols {
		if p.memory {
			break
		}
		k.of(x.From)
		k.along(func() {
			k.pragma("DM_UNROLL")
			k.add(count(near, 0, p.v, &stmt{head: cpp("%s.store(%s, %s[%s][%s])", k.colParts[i], k.partAt(), k.acc[x], along, near)}))
		})
	}
	for i, x := range k.alls {
		k.of(x.From)
		k.oneLine(cpp("%s.store(%s, %s)", k.allParts[i], k.block, k.acc[x]), "if (%s == 0)", first)
	}
}

// accumulatorElem is the element type of an accumulator.
func accumulatorElem(elem types.Elem) types.Elem {
	if small(elem) {
		return types.F32
	}
	return elem
}

const (
	finishWide = 32 // columns of a block that adds up partial sums
	finishDeep = 16 // threads that share a column
)

// finishColumns adds up the blocks' sums of every column and stores the results
// computed from them.
func finishColumns(f *kernel.Form, temps []*assemble.Temp, parts int64) *launch {
	reductions, cols, outs := f.Nest.Columns, f.Rows.Cols, levelOuts(f, kernel.PerColumn)
	l, from := finishLaunch(f, "_columns", temps, outs)
	l.Block.Threads, l.Grid = finishWide*finishDeep, [3]int{int(ceil(cols, finishWide)), 1, 1}
	l.write = func(t *text) error {
		e := t.emitter(t.body)
		const mine ident = "part"
		e.line("const %s %s = %s + dm::thread() %% %d", counter(cols), def(col), scaled(cpp("dm::block()"), finishWide, cols), finishWide)
		e.line("const dm::i32 %s = dm::thread() / %d", def(mine), finishWide)
		accs, shared := make([]ident, len(reductions)), make([]ident, len(reductions))
		for i, x := range reductions {
			shared[i] = sharedSums(i)
			accs[i] = e.name("f")
			e.lineOf(x.From, "DM_SHARED(%s, %s, %d)", register(x.Elem), def(shared[i]), finishWide*finishDeep)
			e.line("%s %s = %s", register(x.Elem), def(accs[i]), identity(x.Kind, x.Elem))
			add := cpp("%s = %s", accs[i], combined(x.Kind, x.Elem, accs[i], cpp("%s[dm::i64(%s) * %d + %s]", from[i], part, cols, col)))
			e.add(&stmt{head: cpp("if (%s < %d)", col, cols), style: inLine, body: []*stmt{{
				head: cpp("for (dm::i32 %s = %s; %s < %d; %s += %d)", def(part), mine, part, parts, part, finishDeep), style: inLine, body: []*stmt{{head: add}},
			}}})
			e.line("%s[dm::thread()] = %s", shared[i], accs[i])
			e.given[x] = cpp("%s", accs[i])
		}
		e.line("dm::sync()")
		e.oneLine(cpp("return"), "if (%s > 0 || %s >= %d)", mine, col, cols)
		for i, x := range reductions {
			e.of(x.From)
			e.add(count(part, 1, finishDeep, &stmt{
				head: cpp("%s = %s", accs[i], combined(x.Kind, x.Elem, accs[i], cpp("%s[%s * %d + dm::thread()]", shared[i], part, finishWide))),
			}))
		}
		e.bind(f.Rows.Col, cpp("%s", col))
		e.finish(outs)
		return nil
	}
	return l
}

// sharedSums is the name of the shared memory for reduction i.
func sharedSums(i int) ident { return ident(fmt.Sprintf("sums_%d", i+1)) }

// finishTotals adds up the blocks' sums of one value and stores the results
// computed from it.
func finishTotals(f *kernel.Form, temps []*assemble.Temp, parts int64) *launch {
	reductions, outs := f.Nest.Totals, levelOuts(f, kernel.PerKernel)
	l, from := finishLaunch(f, "_total", temps, outs)
	l.Block.Threads, l.Grid = blockThreads, [3]int{1, 1, 1}
	l.write = func(t *text) error {
		e := t.emitter(t.body)
		shared := map[types.Elem]bool{}
		for i, x := range reductions {
			e.of(x.From)
			if elem := scratchElem(x.Elem); !shared[elem] {
				shared[elem] = true
				e.scratch(reductions[i : i+1])
			}
			e.joinParts(x, parts, cpp("%s[%s]", from[i], part))
		}
		e.oneLine(cpp("return"), "if (dm::thread() > 0)")
		e.finish(outs)
		return nil
	}
	return l
}

// joinParts makes the threads of a block combine n partial results of a
// reduction, of which from is one.
func (e *emitter) joinParts(x *kernel.Expr, n int64, from code) {
	acc := e.name("f")
	e.line("%s %s = %s", register(x.Elem), def(acc), identity(x.Kind, x.Elem))
	e.oneLine(cpp("%s = %s", acc, combined(x.Kind, x.Elem, acc, from)), "for (dm::i32 %s = dm::thread(); %s < %d; %s += %d)", def(part), part, n, part, blockThreads)
	e.line("%s = %s", acc, reduceThreads(x, acc, false))
	e.given[x] = cpp("%s", acc)
}

func levelOuts(f *kernel.Form, levels ...kernel.Level) []kernel.Out {
	var outs []kernel.Out
	for _, o := range f.Outs {
		if slices.Contains(levels, o.Level) {
			outs = append(outs, o)
		}
	}
	return outs
}

// finishLaunch is a launch that combines partial results and stores outs, which
// are computed from them; from are the parameters for the partial results.
func finishLaunch(f *kernel.Form, suffix string, temps []*assemble.Temp, outs []kernel.Out) (l *launch, from []ident) {
	ns := newNames()
	for _, t := range temps {
		from = append(from, ns.addTemp("partial", t, artifact.In))
	}
	var reads []*kernel.Expr
	for _, o := range outs {
		reads = append(reads, o.Exprs()...)
	}
	ns.rowLoads(reads, f.Rows)
	ns.stores(outs)
	return &launch{Launch: assemble.Launch{Suffix: suffix, Class: string(f.Class), Params: ns.params}, named: ns.of}, from
}

// finish stores outs, whose reductions are complete, one element to a thread.
func (e *emitter) finish(outs []kernel.Out) {
	l := e.lanes(nil, 1)
	l.store(outs)
	l.end()
}
