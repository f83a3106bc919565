package cuda

import (
	"fmt"
	"slices"
	"strings"

	"dmir/compile/kernel"
	"dmir/dialect/ir"
)

const (
	// mostWritten bounds the expressions of a thread that computes a cell, and mostRead the
	// elements that it reads, which it has in registers.
	mostWritten, mostRead = 4096, 112
	// waves is how many waves of threads a kernel has at least where cells are larger than
	// indices ask for.
	waves = 2
)

// cells is f with its results in cells, nil where these gain nothing; see kernel.Fit: those
// by which an element has the fewest expressions of its own.
func (t Target) cells(f *kernel.Form) (best *kernel.Form) {
	least := 0.0
	if slices.ContainsFunc(f.Outs, func(o kernel.Out) bool { return o.Value.Elem().Packed() }) {
		return nil // one thread stores both halves of a byte
	}
	widest := vectorOf(f, func(kernel.Out) int64 { return 16 })
	for _, times := range [][2]int64{{1, 1}, {2, 2}, {2, 3}} {
		if times[0] != times[1] && slices.ContainsFunc(f.Fit(1, [2]int64{2, 2}), (*kernel.Cells).Whole) {
			continue // lines are read and written in vectors
		}
		for v := widest; v >= 1; v /= 2 {
			cells := f.Fit(v, times)
			if cells == nil || times[0]*v > 1 && !slices.ContainsFunc(cells, func(c *kernel.Cells) bool { return c.Count() >= waves*blockThreads*t.multiprocessors() }) {
				continue
			}
			g, err := f.Divided(cells)
			if err != nil {
				continue
			}
			if work, ok := settled(f, g); ok && (best == nil || work < least) {
				best, least = g, work
			}
		}
	}
	return best
}

// settled is how many expressions g, which is f in cells, has for each element; ok is false
// where g has loops, or conditions as f has if that has no loops, or more of all than a
// thread is to compute.
func settled(f, g *kernel.Form) (work float64, ok bool) {
	before, after := expressions(f), expressions(g)
	if after[kernel.Reduce] > 0 || f.Class != kernel.ClassLoop && after[kernel.Guard] >= before[kernel.Guard] {
		return 0, false
	}
	all := 0
	for _, n := range after {
		all += n
	}
	return float64(all) / float64(len(g.Outs)), all <= mostWritten && after[kernel.Load] <= mostRead
}

// expressions counts the expressions of f's results by their op.
func expressions(f *kernel.Form) map[string]int {
	seen := map[*kernel.Expr]bool{}
	counts := map[string]int{}
	for _, o := range f.Outs {
		kernel.Walk(o.X, func(x *kernel.Expr) {
			if !seen[x] {
				seen[x] = true
				counts[x.Op]++
			}
		})
	}
	return counts
}

// cell computes outs, elements of a cell, and stores them, as vectors where they are
// contiguous; those at an edge only where they are inside. Before them it computes parts of them in stages, so that
// what a stage alone reads is in registers no longer.
func (e *emitter) cell(outs []kernel.Out, stages [][]*kernel.Expr) {
	l := e.lanes(nil, 1)
	for _, xs := range stages {
		e.gather(xs)
		for _, x := range xs {
			e.value(x)
		}
	}
	var xs []*kernel.Expr
	for _, o := range outs {
		xs = append(xs, o.X)
	}
	e.gather(xs)
	// A result may overwrite operands of others.
	values := make([]code, len(outs))
	places := make([]kernel.Index, len(outs))
	for i, o := range outs {
		values[i], places[i] = l.stored(o.X, o.Value.Elem()), o.At
	}
	type under struct {
		value *ir.Value
		conds string
	}
	for _, r := range runs(places, func(i int) any { return under{outs[i].Value, conditionsKey(outs[i].If)} }, func(i int) int64 { return width(outs[i].Value.Elem(), 16) }) {
		o := outs[r[0]]
		l.when(o.If, func() {
			if len(r) == 1 {
				e.lineOf(o.Value.Op, "%s.store(%s, %s)", e.param(o.Value), e.index(o.At), values[r[0]])
				return
			}
			n := e.name("out")
			parts := make([]code, len(r))
			for k, i := range r {
				parts[k] = values[i]
			}
			e.lineOf(o.Value.Op, "const dm::Vec<%s, %d> %s = {%s}", storage(o.Value.Elem()), len(r), def(n), parts)
			e.lineOf(o.Value.Op, "%s.template store<%d>(%s, %s)", e.param(o.Value), len(r), e.index(o.At), n)
		})
	}
	l.end()
}

// runs groups places in memory: those of a group, of which `of` is equal, are contiguous and
// aligned, and as many as most allows.
func runs(places []kernel.Index, of func(i int) any, most func(i int) int64) (all [][]int) {
	type place struct {
		base kernel.Index
		at   int64
	}
	split := make([]place, len(places))
	type key struct {
		of   any
		base string
		at   int64
	}
	where := map[key]int{}
	for i, x := range places {
		split[i].base, split[i].at = x.Apart()
		where[key{of(i), split[i].base.Key(), split[i].at}] = i
	}
	done := make([]bool, len(places))
	for i := range places {
		if done[i] {
			continue
		}
		run := []int{i}
		for w := most(i); w > 1; w /= 2 {
			aligned := !slices.ContainsFunc(split[i].base.Terms, func(t kernel.Term) bool { return t.Coef%w != 0 })
			var found []int
			for k := range w {
				j, ok := where[key{of(i), split[i].base.Key(), split[i].at - (split[i].at%w+w)%w + k}]
				if !ok || done[j] {
					break
				}
				found = append(found, j)
			}
			if aligned && len(found) == int(w) {
				run = found
				break
			}
		}
		for _, j := range run {
			done[j] = true
		}
		all = append(all, run)
	}
	return all
}

// gather reads what xs need, before they are computed: neighbours in memory as vectors, and
// what is under the same conditions under one branch.
func (e *emitter) gather(xs []*kernel.Expr) {
	var loads, keys []*kernel.Expr
	var branches []string
	under := map[string][]*kernel.Expr{}
	seen := map[*kernel.Expr]bool{}
	var visit func(x *kernel.Expr)
	visit = func(x *kernel.Expr) {
		if seen[x] || e.done(x) {
			return
		}
		seen[x] = true
		switch x.Op {
		case kernel.Guard:
			if x.Args[1].Op != kernel.Number { // either side is read only where it is inside
				return
			}
			key := conditionsKey(x.If)
			if under[key] == nil {
				branches = append(branches, key)
			}
			under[key] = append(under[key], x)
			return
		case kernel.Load:
			loads = append(loads, x)
		case kernel.Key:
			if load, _ := keyed(x); load != nil {
				keys = append(keys, x)
			}
		}
		for _, a := range x.Args {
			visit(a)
		}
	}
	for _, x := range xs {
		visit(x)
	}
	e.vectors(loads)
	e.keys(keys)
	for _, key := range branches {
		e.branch(under[key])
	}
}

// conditionsKey is the same for conditions that differ in bounds alone that always hold.
func conditionsKey(conds []kernel.Condition) string {
	var b strings.Builder
	for _, c := range conds {
		lo, hi := c.X.Bounds()
		if lo < c.Lo {
			fmt.Fprintf(&b, "%s>=%d ", c.X.Key(), c.Lo)
		}
		if hi >= c.Hi {
			fmt.Fprintf(&b, "%s<%d ", c.X.Key(), c.Hi)
		}
	}
	return b.String()
}

// vectors reads loads that are neighbours in memory at once.
func (e *emitter) vectors(loads []*kernel.Expr) {
	places := make([]kernel.Index, len(loads))
	for i, x := range loads {
		places[i] = x.At
	}
	top := e.scopes[len(e.scopes)-1].names
	for _, r := range runs(places, func(i int) any { return loads[i].Buf }, func(i int) int64 { return width(loads[i].Elem, 16) }) {
		x := loads[r[0]]
		if len(r) == 1 {
			continue
		}
		n := e.name("v")
		e.lineOf(x.From, "const auto %s = %s.template load<%d>(%s)", def(n), e.param(x.Buf), len(r), e.index(x.At))
		for k, i := range r {
			e.keep(loads[i], cpp("%s[%d]", n, k))
			top[loads[i]] = cpp("dm::wide(%s[%d])", n, k)
		}
	}
}

// stored is a number as it is in memory, and how many were read before it: those of a vector lie side by side.
type stored struct {
	name   code
	number int
}

// keep notes that x was read, here and in scopes within this one.
func (e *emitter) keep(x *kernel.Expr, name code) {
	in := &e.scopes[len(e.scopes)-1]
	in.loads = append(in.loads, x)
	e.stored[x] = stored{name, len(e.stored)}
}

// keyed is the load whose number, or with negate the negative one, x is the key of; nil where it is that of another value.
func keyed(x *kernel.Expr) (load *kernel.Expr, negate bool) {
	y := x.Args[0]
	if negate = y.Op == "neg"; negate {
		y = y.Args[0]
	}
	if y.Op != kernel.Load {
		return nil, false
	}
	return y, negate
}

// keys computes keys of loads in pairs, as a register has two of their numbers.
func (e *emitter) keys(xs []*kernel.Expr) {
	top := e.scopes[len(e.scopes)-1].names
	var own []*kernel.Expr
	for _, x := range xs {
		load, _ := keyed(x)
		if _, ok := e.stored[load]; !ok && !e.done(load) {
			n := e.name("h")
			e.lineOf(x.From, "const %s %s = %s[%s]", storage(load.Elem), def(n), e.param(load.Buf), e.index(load.At))
			e.keep(load, cpp("%s", n))
			top[load] = cpp("dm::wide(%s)", n)
		}
		if _, ok := e.stored[load]; ok && !e.done(x) {
			own = append(own, x)
		}
	}
	slices.SortStableFunc(own, func(a, b *kernel.Expr) int {
		x, _ := keyed(a)
		y, _ := keyed(b)
		return e.stored[x].number - e.stored[y].number
	})
	for i := 0; i < len(own); i++ {
		x := own[i]
		a, negate := keyed(x)
		n := e.name("k")
		if i+1 < len(own) {
			if b, other := keyed(own[i+1]); other == negate && b.Elem == a.Elem {
				e.lineOf(x.From, "const auto %s = dm::order_keys<%t>(%s, %s)", def(n), negate, e.stored[a].name, e.stored[b].name)
				top[x], top[own[i+1]] = cpp("%s[0]", n), cpp("%s[1]", n)
				i++
				continue
			}
		}
		e.lineOf(x.From, "const dm::i32 %s = dm::order_key<%t>(%s)", def(n), negate, e.stored[a].name)
		top[x] = cpp("%s", n)
	}
}

// branch computes guards with the same conditions, which are numbers otherwise.
func (e *emitter) branch(guards []*kernel.Expr) {
	guards = slices.DeleteFunc(guards, e.done)
	if len(guards) == 0 {
		return
	}
	names := make([]ident, len(guards))
	yes := make([]*kernel.Expr, len(guards))
	for i, x := range guards {
		names[i], yes[i] = e.name("t"), x.Args[0]
		e.lineOf(x.From, "%s %s = %s", register(x.Elem), def(names[i]), e.value(x.Args[1]))
	}
	e.open("if (%s)", e.conditions(guards[0].If))
	e.gather(yes)
	for i, x := range guards {
		e.assign(x.From, names[i], e.value(x.Args[0]))
	}
	e.close()
	top := e.scopes[len(e.scopes)-1].names
	for i, x := range guards {
		top[x] = cpp("%s", names[i])
	}
}
