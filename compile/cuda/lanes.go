package cuda

import (
	"maps"
	"slices"

	"dmir/compile/kernel"
	"dmir/dialect/types"
)

// lanes computes neighbouring elements in one thread: contiguous memory is read
// and written as vectors.
type lanes struct {
	*emitter
	lane *kernel.Atom // nil: one element
	n    int64
	vecs map[*kernel.Expr]ident
	skip func(x *kernel.Expr) bool // loads that were read before
	end  func()                    // called at the end of the scope in which the vectors were read
}

// width is the number of elements of one memory access, at most 16 bytes.
func width(elem types.Elem, n int64) int64 { return min(n, 16/elem.Bytes()) }

// contiguous reports whether the elements at x are contiguous in memory along
// lane, in aligned groups of w; base is x for lane 0.
func contiguous(x kernel.Index, lane *kernel.Atom, w int64) (base kernel.Index, ok bool) {
	x = expanded(x, lane)
	base = kernel.Const(x.C)
	found := false
	for _, t := range x.Terms {
		if t.Atom == lane {
			found = t.Coef == 1
			continue
		}
		inner := t.Atom.Kind == kernel.Datum && t.Atom.E.DependsOn(lane)
		t.Atom.X.Atoms(func(a *kernel.Atom) { inner = inner || a == lane })
		if inner || t.Coef%w != 0 {
			return base, false
		}
		base.Terms = append(base.Terms, t)
	}
	return base, found && x.C%w == 0
}

// expanded is x with bounded sums that depend on lane written out.
func expanded(x kernel.Index, lane *kernel.Atom) kernel.Index {
	out := kernel.Const(x.C)
	add := func(t kernel.Term) {
		for i, u := range out.Terms {
			if u.Atom == t.Atom {
				out.Terms[i].Coef += t.Coef
				return
			}
		}
		out.Terms = append(out.Terms, t)
	}
	for _, t := range x.Terms {
		inside := false
		if t.Atom.Kind == kernel.Within {
			t.Atom.X.Atoms(func(a *kernel.Atom) { inside = inside || a == lane })
		}
		if !inside {
			add(t)
			continue
		}
		y := expanded(t.Atom.X, lane)
		out.C += t.Coef * y.C
		for _, u := range y.Terms {
			add(kernel.Term{Coef: t.Coef * u.Coef, Atom: u.Atom})
		}
	}
	out.Terms = slices.DeleteFunc(out.Terms, func(t kernel.Term) bool { return t.Coef == 0 })
	return out
}

// ready computes what is common to all lanes and reads vectors, for all of xs.
func (l *lanes) ready(xs ...*kernel.Expr) {
	if l.lane == nil {
		return
	}
	for _, x := range xs {
		l.hoist(x)
	}
	for _, x := range xs {
		l.vectors(x)
	}
}

// vectors reads the loads of x that are vectors, except those under a guard.
func (l *lanes) vectors(x *kernel.Expr) {
	if x.Op == kernel.Guard && !l.done(x) {
		l.guarded(x)
		return
	}
	if x.Op == kernel.Reduce && (x.Groups != nil || x.Span != nil) && !l.done(x) {
		l.updates(x)
		return
	}
	if l.done(x) || x.Op == kernel.Reduce || !x.DependsOn(l.lane) {
		return
	}
	if x.Op != kernel.Load {
		for _, a := range x.Args {
			l.vectors(a)
		}
		return
	}
	if _, known := l.vecs[x]; known || l.skip != nil && l.skip(x) {
		return
	}
	w := width(x.Elem, l.n)
	base, ok := contiguous(x.At, l.lane, w)
	if !ok || w == 1 {
		return
	}
	n := l.name("v")
	l.vecs[x] = n
	at := l.index(base)
	if l.n == w {
		l.lineOf(x.From, "const auto %s = %s.template load<%d>(%s)", def(n), l.param(x.Buf), w, at)
		return
	}
	var parts []code
	for k := int64(0); k < l.n; k += w {
		parts = append(parts, cpp("%s.template load<%d>(%s + %d)", l.param(x.Buf), w, at, k))
	}
	l.lineOf(x.From, "const dm::Vec<%s, %d> %s[] = {%s}", storage(x.Elem), w, def(n), parts)
}

// guarded computes x, one of two values under a condition, for all lanes at
// once where the condition is the same in all: its loads are vectors then.
func (l *lanes) guarded(x *kernel.Expr) {
	if l.inLanes(x) || !x.DependsOn(l.lane) {
		return
	}
	conds, ok := l.shared(x.If)
	if !ok {
		return
	}
	n := l.name("t")
	l.lineOf(x.From, "%s %s[%d]", register(x.Elem), def(n), l.n)
	part := func(y *kernel.Expr, format string, args ...any) {
		l.open(format, args...)
		vecs, held := maps.Clone(l.vecs), maps.Clone(l.emitter.lane)
		l.ready(y)
		l.each(func(j code) { l.assign(y.From, cpp("%s[%s]", n, j), l.value(y)) })
		l.vecs, l.emitter.lane = vecs, held
		l.close()
	}
	part(x.Args[0], "if (%s)", l.conditions(conds))
	part(x.Args[1], "else")
	l.emitter.lane[x] = n
}

// updates computes x, a reduction over the updates of a group or over a segment, for all lanes
// at once: its loads are vectors then.
func (l *lanes) updates(x *kernel.Expr) {
	if l.inLanes(x) || !x.DependsOn(l.lane) {
		return
	}
	n := l.name("f")
	if selects(x) {
		l.ready(x.Args[1])
	}
	l.lineOf(x.From, "%s %s[%d]", register(x.Elem), def(n), l.n)
	l.each(func(j code) { l.assign(x.From, cpp("%s[%s]", n, j), l.begin(x)) })
	if x.Span != nil {
		l.overSegment(x, func(y *kernel.Expr) { l.add(x, n, y) })
		if l.team != nil {
			l.each(func(j code) { l.together(x, cpp("%s[%s]", n, j)) })
		}
	} else {
		l.eachUpdate(x, func(y *kernel.Expr) { l.add(x, n, y) })
	}
	l.emitter.lane[x] = n
}

// add adds y, a value of the reduction x in each lane, to sums.
func (l *lanes) add(x *kernel.Expr, sums ident, y *kernel.Expr) {
	vecs, held := maps.Clone(l.vecs), maps.Clone(l.emitter.lane)
	l.ready(y)
	l.each(func(j code) { l.accumulate(x, cpp("%s[%s]", sums, j), y) })
	l.vecs, l.emitter.lane = vecs, held
}

// shared are the conditions with the same value in all lanes; ok is false where
// they may differ.
func (l *lanes) shared(conds []kernel.Condition) (out []kernel.Condition, ok bool) {
	for _, c := range conds {
		varies := false
		c.X.Atoms(func(a *kernel.Atom) {
			varies = varies || a == l.lane || a.Kind == kernel.Datum && a.E.DependsOn(l.lane)
		})
		if varies {
			base, ok := contiguous(c.X, l.lane, l.n)
			if !ok || c.Lo%l.n != 0 || c.Hi%l.n != 0 {
				return nil, false
			}
			c.X = base
		}
		out = append(out, c)
	}
	return out, true
}

// element is the value of load x in the current lane, where a vector has it.
func (l *lanes) element(x *kernel.Expr) (c code, ok bool) {
	n, ok := l.vecs[x]
	if !ok {
		return code{}, false
	}
	w, j := width(x.Elem, l.n), l.atoms[l.lane]
	if l.n == w {
		return cpp("dm::wide(%s[%s])", n, j), true
	}
	return cpp("dm::wide(%s[%s / %d][%s %% %d])", n, j, w, j, w), true
}

// each opens the loop over the lanes and calls body with the lane's number; a
// single lane needs no loop.
func (l *lanes) each(body func(j code)) {
	if l.lane == nil {
		body(cpp("0"))
		return
	}
	j := l.name("j")
	l.pragma("DM_UNROLL")
	l.open("for (int %s = 0; %s < %d; %s++)", def(j), j, l.n, j)
	l.bind(l.lane, cpp("%s", j))
	body(l.atoms[l.lane])
	l.close()
}

// lanes makes vectors the source of loads of the emitter.
func (e *emitter) lanes(lane *kernel.Atom, n int64) *lanes {
	l := &lanes{emitter: e, lane: lane, n: n, vecs: map[*kernel.Expr]ident{}}
	if lane == nil {
		l.n = 1
	} else {
		e.lanesOf = lane
	}
	outer, held := e.loaded, maps.Clone(e.lane)
	l.end = func() { e.loaded, e.lane = outer, held }
	e.loaded = func(x *kernel.Expr) (code, bool) {
		if c, ok := l.element(x); ok || outer == nil {
			return c, ok
		}
		return outer(x)
	}
	return l
}

// store computes outs and writes them, as vectors where they are contiguous.
func (l *lanes) store(outs []kernel.Out) { l.storeAnd(outs, nil, nil) }

// storeAnd is store; more, which reads xs, is called for each lane as well.
func (l *lanes) storeAnd(outs []kernel.Out, xs []*kernel.Expr, more func(j code)) {
	var under []kernel.Out // their loads are in bounds only under their conditions
	outs = slices.DeleteFunc(slices.Clone(outs), func(o kernel.Out) bool {
		if len(o.If) > 0 {
			under = append(under, o)
		}
		return len(o.If) > 0
	})
	if len(outs) > 0 || more != nil {
		l.storeAll(outs, xs, more)
	}
	for _, o := range under {
		l.storeUnder(o)
	}
}

// storeAll is storeAnd for results without conditions.
func (l *lanes) storeAll(outs []kernel.Out, xs []*kernel.Expr, more func(j code)) {
	for _, o := range outs {
		xs = append(xs, o.X)
	}
	l.ready(xs...)
	type vector struct {
		name ident
		base kernel.Index
		w    int64
	}
	vectors := make([]vector, len(outs))
	for i, o := range outs {
		if l.lane == nil {
			continue
		}
		elem := o.Value.Elem()
		w := width(elem, l.n)
		base, ok := contiguous(o.At, l.lane, w)
		if !ok || w == 1 {
			continue
		}
		vectors[i] = vector{l.name("out"), base, w}
		l.line("dm::Vec<%s, %d> %s[%d]", storage(elem), w, def(vectors[i].name), l.n/w)
	}
	l.each(func(j code) {
		// A result may overwrite operands of others.
		values := make([]code, len(outs))
		for i, o := range outs {
			values[i] = l.stored(o.X, o.Value.Elem())
		}
		for i, o := range outs {
			if v := vectors[i]; v.name != "" {
				l.assign(o.Value.Op, cpp("%s[%s / %d][%s %% %d]", v.name, j, v.w, j, v.w), values[i])
				continue
			}
			l.lineOf(o.Value.Op, "%s.store(%s, %s)", l.param(o.Value), l.index(o.At), values[i])
		}
		if more != nil {
			more(j)
		}
	})
	for i, o := range outs {
		v := vectors[i]
		if v.name == "" {
			continue
		}
		at := l.index(v.base)
		for k := int64(0); k < l.n/v.w; k++ {
			l.lineOf(o.Value.Op, "%s.template store<%d>(%s, %s[%d])", l.param(o.Value), v.w, plus(at, k*v.w), v.name, k)
		}
	}
}

// give computes the elements of o as the result of a function.
func (l *lanes) give(o kernel.Out) {
	const given ident = "out"
	l.ready(o.X)
	l.line("dm::Vec<%s, %d> %s", storage(o.Value.Elem()), l.n, def(given))
	l.each(func(j code) { l.assign(o.Value.Op, cpp("%s[%s]", given, j), l.stored(o.X, o.Value.Elem())) })
	l.line("return %s", given)
}

// storeUnder is store for a result under its conditions.
func (l *lanes) storeUnder(o kernel.Out) {
	conds, ok := l.shared(o.If)
	if !ok {
		l.each(func(code) {
			l.when(o.If, func() {
				l.lineOf(o.Value.Op, "%s.store(%s, %s)", l.param(o.Value), l.index(o.At), l.stored(o.X, o.Value.Elem()))
			})
		})
		return
	}
	o.If = nil
	vecs, held := maps.Clone(l.vecs), maps.Clone(l.emitter.lane)
	l.when(conds, func() { l.store([]kernel.Out{o}) })
	l.vecs, l.emitter.lane = vecs, held
}

func plus(at code, n int64) code {
	if n == 0 {
		return at
	}
	return cpp("%s + %d", at, n)
}

func (l *lanes) when(conds []kernel.Condition, body func()) {
	if len(conds) == 0 {
		body()
		return
	}
	l.open("if (%s)", l.conditions(conds))
	body()
	l.close()
}

// stored is x as bytes of elem; a conversion to the stored type is left out.
func (l *lanes) stored(x *kernel.Expr, elem types.Elem) code {
	for x.Op == "convert" && x.Elem == elem && small(elem) && x.Args[0].Elem.IsFloat() && !l.done(x) {
		x = x.Args[0]
	}
	v := l.value(x)
	if narrowed(elem) {
		return cpp("dm::narrow<%s>(%s)", storage(elem), v)
	}
	return v
}
