package llvm

import (
	"maps"
	"slices"

	"dmir/compile/assemble"
	"dmir/compile/kernel"
	"dmir/compile/llvm/code"
	dm "dmir/dialect/ir"
	"dmir/gpu/artifact"

	"github.com/llir/llvm/ir/enum"
	"github.com/llir/llvm/ir/value"
)

// elements is the scheme of a kernel whose results are computed element by element.
type elements struct {
	f      *kernel.Form
	over   map[*dm.Value]*dm.Value
	groups []*grouping // of the updates of scatters
	parts  []*kernel.Form
	loops  []elementLoop
}

// elementLoop is a loop over the elements of results that have the same shape: steps
// of v neighbours, of which each task has some.
type elementLoop struct {
	form  *kernel.Form
	outs  []kernel.Out
	v     int64 // neighbours
	steps int64
	each  int64 // steps of a task, or neighbours where there is one step
	tasks int64
	tiles *tiling // nil: none
	// Of reductions of segments: the rows that tasks share by what they have, nil where they have
	// equally many; those across neighbours; and whether elements may be computed again.
	balance *kernel.Span
	strips  []*sweep
	again   bool
}

func newElements(f *kernel.Form, over map[*dm.Value]*dm.Value) (*elements, error) {
	p := &elements{f: f, over: over}
	if f.Class == kernel.ClassLoop && f.Visits() > 0 {
		grouped, err := f.Grouped()
		if err != nil {
			return nil, err
		}
		var n int64
		for _, o := range f.Outs {
			n += o.Elements()
		}
		if gs := groupings(grouped.Groups); groupingPays(gs, f.Visits(), n) {
			p.f, p.groups = grouped, gs
		}
	}
	for _, outs := range together(p.f) {
		if err := p.part(outs); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// together are the results of f in groups that share loops, in which the vector width
// is the same.
func together(f *kernel.Form) [][]*dm.Value {
	var groups [][]*dm.Value
	var loops [][]*kernel.Atom // of each group
	for _, v := range f.Outputs {
		var own []*kernel.Atom
		for _, o := range f.Storing(v) {
			own = append(own, o.Loops[0])
		}
		at := slices.IndexFunc(loops, func(l []*kernel.Atom) bool {
			return slices.ContainsFunc(own, func(a *kernel.Atom) bool { return slices.Contains(l, a) })
		})
		if at < 0 {
			at = len(groups)
			groups, loops = append(groups, nil), append(loops, nil)
		}
		groups[at], loops[at] = append(groups[at], v), append(loops[at], own...)
	}
	return groups
}

// part adds the loops of outputs, which share loops.
func (p *elements) part(outputs []*dm.Value) error {
	sub := *p.f
	sub.Outputs = outputs
	f, err := sub.Widen(1, 0)
	if err != nil {
		return err
	}
	if f, err = neighbours(f); err != nil {
		return err
	}
	for _, o := range f.Outs {
		i := slices.IndexFunc(p.loops, func(l elementLoop) bool {
			return l.form == f && l.outs[0].Loops[0] == o.Loops[0] && l.outs[0].Elements() == o.Elements()
		})
		if i >= 0 {
			p.loops[i].outs = append(p.loops[i].outs, o)
			continue
		}
		l := elementLoop{form: f, outs: []kernel.Out{o}, v: f.V, steps: o.Elements() / f.V}
		most := max(16, task/max(1, work(o)))
		switch {
		case l.steps == 1:
			l.each = (most + 63) &^ 63
			l.tasks = ceil(l.v, l.each)
		default:
			l.each = max(1, most/l.v)
			l.tasks = ceil(l.steps, l.each)
		}
		p.loops = append(p.loops, l)
	}
	for i := range p.loops {
		if l := &p.loops[i]; l.form == f {
			if l.segments(len(p.over)+len(f.Over) == 0); l.balance != nil {
				continue
			}
			if l.turn(); l.tiles != nil {
				strips := l.tiles.runs * l.tiles.each()
				l.each = max(1, l.each/min(tileSteps, l.tiles.steps))
				l.tasks = ceil(strips, l.each)
			}
		}
	}
	p.parts = append(p.parts, f)
	return nil
}

// rows is the variable that tasks divide.
func (l *elementLoop) rows() *kernel.Atom {
	if l.steps > 1 {
		return l.outs[0].Loops[0]
	}
	return l.form.Lane
}

// segments divides the rows of reductions over segments; again says that no element is overwritten.
func (l *elementLoop) segments(again bool) {
	xs := exprsOf(l.outs)
	l.again = again
	if l.steps > 1 {
		l.strips = acrossNeighbours(l.outs, l.form.Lane)
	}
	if l.balance = rowsOf(xs, l.rows()); l.balance == nil {
		if a := l.rows(); rising(xs, a) != nil {
			l.each = max(l.each, risingRows)
			l.tasks = ceil(a.Max+1, l.each)
		}
		return
	}
	rows, each := l.steps, l.v
	if l.steps == 1 {
		rows, each = l.v, 1
	}
	l.tasks = max(1, min(rows, ceil(rows*(l.balance.Mean+1)*each, segmentTask)))
}

// work is about the number of iterations that an element of o takes, beyond its own.
func work(o kernel.Out) int64 {
	n := int64(1)
	for _, x := range o.Exprs() {
		kernel.Walk(x, func(x *kernel.Expr) {
			if x.Op == kernel.Reduce && x.Groups == nil {
				n += x.Steps()
			}
		})
	}
	return min(n, 1<<20)
}

// neighbours is f, whose width is 1, with the width of inner loops, over neighbours,
// that have the fewest divisions.
func neighbours(f *kernel.Form) (*kernel.Form, error) {
	var n int64
	divided := map[*kernel.Atom]bool{}
	for _, o := range f.Outs {
		n = kernel.GCD(n, o.Elements())
		if o.Loops[0] != nil {
			maps.Copy(divided, divisions(o.Exprs(), placesOf(o), o.Loops[0]))
		}
	}
	return widest(n, divided, f, func(w int64) (*kernel.Form, map[*kernel.Atom]bool, error) {
		g, err := f.Widen(w, 0)
		left := map[*kernel.Atom]bool{}
		if err == nil {
			for _, o := range g.Outs {
				maps.Copy(left, divisions(o.Exprs(), placesOf(o), g.Lane))
			}
		}
		return g, left, err
	})
}

// placesOf are the indices of o besides those of its expressions.
func placesOf(o kernel.Out) []kernel.Index {
	at := []kernel.Index{o.At}
	for _, c := range o.If {
		at = append(at, c.X)
	}
	return at
}

func (p *elements) temps() (all []*assemble.Temp) {
	for _, g := range p.groups {
		all = append(all, g.temps()...)
	}
	return all
}

func (p *elements) launches() ([]*launch, error) {
	var all []*launch
	for i, g := range p.groups {
		all = append(all, g.launches(i)...)
	}
	ps := newParams()
	ps.reads(p.f.Inputs)
	ps.writes(p.f.Outputs, p.over)
	for _, g := range p.groups {
		ps.temp("starts", g.starts, artifact.In)
		ps.temp("order", g.order, artifact.In)
	}
	var tasks int64
	for _, l := range p.loops {
		tasks += l.tasks
	}
	l := newLaunch("", p.f.Class, tasks, ps.list, p.write)
	for i := range p.loops {
		l.Scratch += p.loops[i].scratch()
	}
	return append(all, l), nil
}

func (p *elements) write(b *body) error {
	for _, f := range p.parts {
		for i, of := range f.Groups {
			if i < len(p.groups) {
				g := p.groups[i]
				b.lists[of] = lists{b.memory[g.starts], b.memory[g.order]}
			}
		}
	}
	var before int64
	for _, l := range p.loops {
		first, last := b.first, b.last
		if len(p.loops) > 1 {
			first, last = b.share(before, l.tasks)
			before += l.tasks
		}
		l.write(b, first, last)
	}
	return nil
}

// share is the part of the tasks, numbered from 0, that the body runs of n tasks from
// number before on.
func (b *body) share(before, n int64) (first, last value.Value) {
	clamp := func(x value.Value) value.Value {
		return b.least(b.most(b.NewSub(x, code.Int(before)), code.Int(0)), code.Int(n))
	}
	return clamp(b.first), clamp(b.last)
}

// span is the range of n items, each of which each tasks have, of the tasks first to
// last - 1.
func (b *body) span(first, last value.Value, each, n int64) (from, to value.Value) {
	return b.NewMul(first, code.Int(each)), b.least(b.NewMul(last, code.Int(each)), code.Int(n))
}

func (l *elementLoop) write(b *body, first, last value.Value) {
	var xs []*kernel.Expr
	for _, o := range l.outs {
		xs = append(xs, o.Exprs()...)
	}
	segs := segments(xs, l.form.Lane, l.v)
	span := func(each, n int64) (from, to value.Value) {
		if l.balance != nil {
			return b.shares(l.balance, l.rows(), first, last, l.tasks)
		}
		return b.span(first, last, each, n)
	}
	inner := func(from, to value.Value) {
		if s := searched(xs, l.form.Lane); s != nil {
			b.bySegments(s, l.form.Lane, from, to, code.Loop{Vectorize: true}, nil, func(value.Value, []value.Value) []value.Value {
				b.storeAll(l.outs)
				return nil
			})
			return
		}
		if ss := rising(xs, l.form.Lane); l.steps == 1 && ss != nil {
			b.risen(ss, l.form.Lane, from, to, code.Loop{}, func(value.Value) { b.storeAll(l.outs) })
			return
		}
		b.along(l.form.Lane, segs, from, to, code.Loop{Vectorize: true, Short: l.v < short && near(xs, l.form.Lane)}, nil, func(value.Value, []value.Value) []value.Value {
			b.storeAll(l.outs)
			return nil
		})
	}
	if l.steps == 1 {
		if l.v == 1 {
			b.If(b.NewICmp(enum.IPredSLT, first, last), func() {
				b.within(func() { b.storeAll(l.outs) })
			})
			return
		}
		inner(span(l.each, l.v))
		return
	}
	if l.tiles != nil {
		from, to := b.span(first, last, l.each, l.tiles.runs*l.tiles.each())
		l.writeTiles(b, from, to)
		return
	}
	from, to := span(l.each, l.steps)
	step := l.outs[0].Loops[0]
	how := code.Loop{Vectorize: l.v == 1}
	each := func(value.Value, []value.Value) []value.Value {
		for _, x := range xs {
			b.hoist(x)
		}
		if l.strips != nil {
			l.writeStrips(b)
		} else {
			inner(code.Int(0), code.Int(l.v))
		}
		return nil
	}
	if s := searched(xs, step); s != nil {
		b.bySegments(s, step, from, to, how, nil, each)
		return
	}
	if ss := rising(xs, step); ss != nil {
		b.risen(ss, step, from, to, how, func(i value.Value) { each(i, nil) })
		return
	}
	b.along(step, segments(xs, step, l.steps), from, to, how, nil, each)
}

// short is the neighbours below which the rest of a vector counts.
const short = 256

// near reports whether what xs load is side by side along a: masks make gathers of others.
func near(xs []*kernel.Expr, a *kernel.Atom) bool {
	side := true
	eachLoad(xs, func(x *kernel.Expr) {
		if a != nil {
			step, _ := x.At.Along(a)
			side = side && step <= 1
		}
	})
	return side
}
