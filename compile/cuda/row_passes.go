package cuda

import (
	"maps"
	"slices"

	"dmir/compile/kernel"
	"dmir/dialect/types"
)

// arrays declares registers for the loads of some steps.
func (k *rowKernel) arrays(loads []*kernel.Expr, steps int64) {
	for _, x := range loads {
		n := k.name("c")
		k.cache[x] = n
		if k.p.v > 1 {
			k.line("dm::Vec<%s, %d> %s[%d]", storage(x.Elem), k.p.v, def(n), steps)
		} else {
			k.line("%s %s[%d]", storage(x.Elem), def(n), steps)
		}
	}
}

// fill reads the loads of a step into their registers.
func (k *rowKernel) fill(loads []*kernel.Expr) {
	for _, x := range loads {
		to := cpp("%s[%s]", k.cache[x], along)
		if k.p.v > 1 {
			base, _ := contiguous(x.At, k.f.Lane, k.p.v)
			k.assign(x.From, to, cpp("%s.template load<%d>(%s)", k.param(x.Buf), k.p.v, k.index(base)))
		} else {
			k.assign(x.From, to, cpp("%s[%s]", k.param(x.Buf), k.index(x.At)))
		}
	}
}

// along is the loop over the steps of a thread along its row, or its part of it.
func (k *rowKernel) along(body func()) {
	s := k.sweep
	// Registers are indexed by constants only.
	if k.unrolled || len(k.cols) > 0 && !k.p.memory || s.steps <= 4 {
		k.pragma("DM_UNROLL")
	} else {
		k.pragma("DM_NO_UNROLL")
	}
	k.steps(s.steps, cpp("%s", along), !k.even(), body)
}

// batches is the loop over the steps, of which those whose loads are in flight
// together are a batch: body computes a batch, with any number of loops over its
// steps. The loads are those of xs.
func (k *rowKernel) batches(xs []*kernel.Expr, body func(each func(func()))) {
	s, step := k.sweep, cpp("%s", along)
	if s.unroll == 0 {
		body(k.along)
		return
	}
	n := ceil(s.steps, s.unroll)
	if n > 1 {
		i := k.name("step")
		k.pragma("DM_NO_UNROLL")
		k.open("for (int %s = 0; %s < %d; %s += %d)", def(i), i, n*s.unroll, i, s.unroll)
		step = cpp("(%s + %s)", i, along)
	}
	if !k.fetched {
		k.fetch(xs, step)
	}
	body(func(body func()) { k.batch(step, body) })
	clear(k.cache)
	k.fetched = false
	if n > 1 {
		k.close()
	}
}

// batch is the loop over the steps of a batch.
func (k *rowKernel) batch(step code, body func()) {
	k.pragma("DM_UNROLL")
	k.steps(k.sweep.unroll, step, !k.even(), body)
}

// fetch reads the loads of xs of a batch.
func (k *rowKernel) fetch(xs []*kernel.Expr, step code) {
	if loads := k.loadsOf(xs); len(loads) > 0 {
		k.arrays(loads, k.sweep.unroll)
		k.batch(step, func() { k.fill(loads) })
	}
}

// fetchAhead reads the loads of a sweep that is a single batch, so that they are in
// flight while the block waits for partial results.
func (k *rowKernel) fetchAhead(xs []*kernel.Expr) {
	if s := k.sweep; len(xs) > 0 && s.steps <= s.unroll && !k.p.loop {
		k.fetch(xs, cpp("%s", along))
		k.fetched = true
	}
}

// even reports whether the steps of all blocks that share a row end with it, and need no check. Where a thread holds many
// steps, the check keeps the assembler from interleaving them all, in more registers than there are.
func (k *rowKernel) even() bool {
	const interleaved = 8
	s := k.sweep
	n := s.steps
	if k.p.cluster > 0 && n > interleaved {
		return false
	}
	if s.unroll > 0 {
		n = ceil(n, s.unroll) * s.unroll
	}
	return n*k.p.share*s.splits == k.p.chunks
}

// steps is a loop over n steps, of which step is the number along the row; check
// skips those behind its end.
func (k *rowKernel) steps(n int64, step code, check bool, body func()) {
	p, cols := k.p, k.f.Rows.Cols
	k.open("for (int %s = 0; %s < %d; %s++)", def(along), along, n, along)
	k.line("const %s %s = %s + %s", counter(cols), def(col), first, scaled(step, p.share, cols))
	k.bind(k.f.Rows.Col, cpp("%s", col))
	if check {
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
func (k *rowKernel) initAccumulators(level []*kernel.Expr) map[*kernel.Expr]ident {
	accs := map[*kernel.Expr]ident{}
	for _, x := range level {
		k.hoist(x.Args[0])
		accs[x] = k.accumulator(x)
	}
	return accs
}

// accumulator declares an accumulator of x.
func (k *rowKernel) accumulator(x *kernel.Expr) ident {
	n := k.name("f")
	k.lineOf(x.From, "%s %s = %s", register(x.Elem), def(n), identity(x.Kind, x.Elem))
	return n
}

// accumulate adds the elements at one position of the row to reductions.
func (k *rowKernel) accumulate(level []*kernel.Expr, accs map[*kernel.Expr]ident) {
	l := k.lanesOfRow()
	for _, x := range level {
		l.ready(x.Args[0])
	}
	l.each(func(code) {
		for _, x := range level {
			k.assign(x.From, accs[x], combined(x.Kind, x.Elem, accs[x], k.value(x.Args[0])))
		}
	})
	l.end()
}

// reduceAlong computes the reductions of one pass along the row, or along the
// block's part of it, which has so many elements.
func (k *rowKernel) reduceAlong(level []*kernel.Expr, elements code) {
	accs := k.initAccumulators(level)
	var sums, direct, bases []*kernel.Expr
	for _, x := range level {
		if base := k.Base[x]; base == nil {
			direct = append(direct, x)
		} else if sums = append(sums, x); !slices.Contains(bases, base) {
			bases = append(bases, base)
		}
	}
	counts := map[*kernel.Expr]ident{} // elements of the thread, of bases that are sums
	for _, b := range bases {
		if b.Kind == "add" {
			counts[b] = k.name("c")
			k.lineOf(b.From, "%s %s = 0", register(b.Elem), def(counts[b]))
		}
	}
	k.batches(reduced(level), func(each func(func())) {
		if len(sums) == 0 {
			each(func() { k.accumulate(level, accs) })
			return
		}
		k.reduceBatch(each, direct, sums, bases, accs, counts)
	})
	for _, x := range level {
		all := k.name("f")
		if b := k.Base[x]; b != nil {
			k.of(x.From)
			if b.Kind == "max" {
				k.line("%s = %s * dm::rebase(%s, %s)", accs[x], accs[x], accs[b], k.given[b])
			} else {
				k.line("%s = %s + dm::spread(%s, %s, %s(%s), %s)", accs[x], accs[x], counts[b], accs[b], register(b.Elem), elements, k.given[b])
			}
		}
		k.lineOf(x.From, "const %s %s = %s", register(x.Elem), def(all), reduceThreads(x, accs[x], k.p.warp))
		k.given[x] = cpp("%s", all)
	}
}

// reduceBatch reduces the elements of a batch: first the bases, then, relative to
// these, the sums.
func (k *rowKernel) reduceBatch(each func(func()), direct, sums, bases []*kernel.Expr, accs, counts map[*kernel.Expr]ident) {
	fresh, n := maps.Clone(accs), map[*kernel.Expr]ident{}
	for _, b := range bases {
		fresh[b] = k.accumulator(b)
		if counts[b] != "" {
			n[b] = k.name("c")
			k.line("%s %s = 0", register(b.Elem), def(n[b]))
		}
	}
	each(func() {
		k.accumulate(direct, fresh)
		for _, b := range bases {
			if n[b] != "" {
				k.lineOf(b.From, "%s += %d", n[b], k.p.v)
			}
		}
	})
	k.keepPacked()
	for _, b := range bases {
		k.of(b.From)
		to := k.name("f")
		if b.Kind == "max" {
			k.line("const %s %s = %s", register(b.Elem), def(to), combined(b.Kind, b.Elem, accs[b], fresh[b]))
		} else {
			k.line("const %s %s = %s * (%d / %s)", register(b.Elem), def(to), fresh[b], k.f.Rows.Cols, n[b])
		}
		for _, x := range sums {
			switch {
			case k.Base[x] != b:
			case b.Kind == "max":
				k.lineOf(x.From, "%s = %s * dm::rebase(%s, %s)", accs[x], accs[x], accs[b], to)
			default:
				k.lineOf(x.From, "%s = %s + dm::between(%s, %s, %s, %s)", accs[x], accs[x], counts[b], accs[b], n[b], fresh[b])
			}
		}
		k.of(b.From)
		if b.Kind == "max" {
			k.line("%s = %s", accs[b], to)
			base := k.name("f")
			k.line("const %s %s = dm::base_of(%s)", register(b.Elem), def(base), to)
			k.given[b] = cpp("%s", base)
		} else {
			k.line("%s = %s + %s", accs[b], accs[b], fresh[b])
			k.line("%s += %s", counts[b], n[b])
			k.given[b] = cpp("%s", to)
		}
	}
	each(func() { k.accumulate(sums, accs) })
	for _, b := range bases {
		delete(k.given, b)
	}
}

// settle makes the sums of a pass those of the whole row.
func (k *rowKernel) settle(level []*kernel.Expr) {
	for _, x := range level {
		b := k.Base[x]
		if b == nil {
			continue
		}
		n, how := k.name("f"), "squares"
		if b.Kind == "max" {
			how = "exps"
		}
		k.lineOf(x.From, "const %s %s = dm::settled_%s(%s, %s)", register(x.Elem), def(n), how, k.given[x], k.given[b])
		k.given[x] = cpp("%s", n)
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
