package cost

import (
	"maps"
	"slices"
	"sort"
	"sync"

	"dmir/analysis/machine"
	"dmir/dialect/ir"
	"dmir/dialect/lower"
)

// Costs are those of a module, kept so that they can follow changes.
type Costs struct {
	Funcs   []*Func // with a body, in textual order
	c       *coster
	callers map[string]map[*Func]bool // by the name of what they call; nil until it is asked for
}

// Open is like Module.
func Open(m *ir.Module, bind map[string]int64) *Costs {
	t := &Costs{c: newCoster(m, bind)}
	t.c.prepare()
	for _, fn := range m.Funcs {
		if fn.Body != nil {
			t.Funcs = append(t.Funcs, t.c.function(fn))
		}
	}
	t.c.ready = nil
	return t
}

// Splice follows a change of one function, before which all that lies before
// from stays. It reports whether Funcs are others.
func (t *Costs) Splice(ch *lower.Change, from int) (others bool) {
	t.c.forget(ch.Gone)
	if ch.Whole {
		t.functions(ch)
		return true
	}
	f := t.Of(ch.Func)
	if f == nil { // a second function of its name
		return false
	}
	above, ok := t.above(f)
	if !ok || f.FLOP.Overflow() || f.Read.Overflow() || f.Written.Overflow() {
		return t.afresh()
	}
	if len(above) > 0 {
		names := map[string]bool{f.Func.Name: true}
		for _, c := range above {
			names[c.Func.Func.Name] = true
		}
		if slices.ContainsFunc(callees(ch.New), func(name string) bool { return names[name] }) { // f leads back to itself
			return t.afresh()
		}
		for _, c := range above {
			if !c.take() {
				return t.afresh()
			}
		}
	}
	env := sizes(f.Func, t.c.bind)
	s := t.c.scopeOf(f.Func, env)
	f.body.entries = nil // they are overwritten: a new op that calls f must not look at them
	if f.follow == nil {
		f.visit("cost", len(f.Entries))
		f.follow = map[*ir.Op]bool{}
		for _, e := range f.Entries {
			if e.follows {
				f.follow[e.Op] = true
			}
		}
	}
	f.cut(ch.Gone, from)
	if f.marked != nil {
		f.marked.drop(ch.Gone)
		f.marked.add(ch.Module, ch.New)
		t.note(f, ch)
	}
	t.c.m.Work.Add("cost", len(ch.Gone)+len(ch.New))
	for _, o := range ch.New {
		f.put(s, o)
	}
	f.tail(s, ch.Block, len(ch.New))
	f.again(s)
	if t.c.called[f.Func] && len(above) == 0 { // by itself, from now on
		return t.afresh()
	}
	f.settle(s)
	for _, c := range above {
		c.put(t.c)
	}
	return false
}

// afresh makes t the costs of the module as it is.
func (t *Costs) afresh() (others bool) {
	t.c.m.Work.Add("cost", len(t.c.m.Ops))
	*t = *Open(t.c.m, t.c.bind)
	return true
}

// settle takes over the entries, which have changed. Calls of f must be made again.
func (f *Func) settle(s *scope) {
	if f.lead == nil {
		f.visit("cost", len(f.Entries))
		f.lead = leading(f.Entries)
	}
	f.extra = slices.DeleteFunc(append(f.extra, s.extra...), func(e *Entry) bool { return !e.Op.Inside(f.Func.Op) })
	b := &body{entries: f.Entries, extra: f.extra, total: total{f.FLOP, f.Read, f.Written}, lead: f.lead, odd: f.odd, in: s, fn: f.Func}
	b.hold(s)
	f.timed.Range(func(of, sum any) bool {
		if y, ok := sum.(*tally); ok {
			b.timed.Store(of, y.time())
		}
		return true
	})
	s.bodies[f.Func] = map[string]*body{text(s.env): b}
	f.body = b
	f.least, f.overlap = nil, new(sync.Map)
	f.divided, f.undivided, f.tried = nil, nil, false
	f.unshardable, f.spread = nil, false // what was found stays, see LastShardings
}

// Of is the cost of the function that o is the op of, nil where there is none.
func (t *Costs) Of(o *ir.Op) *Func {
	i, found := slices.BinarySearchFunc(t.Funcs, o.Span.Start, func(f *Func, at int) int { return f.Func.Op.Span.Start - at })
	if !found || t.Funcs[i].Func.Op != o {
		return nil
	}
	return t.Funcs[i]
}

// functions replaces functions that are not called by others.
func (t *Costs) functions(ch *lower.Change) {
	gone := map[*ir.Op]bool{}
	for _, o := range ch.Gone {
		gone[o] = true
	}
	t.Funcs = slices.DeleteFunc(t.Funcs, func(f *Func) bool { return gone[f.Func.Op] })
	maps.DeleteFunc(t.c.bodies, func(f *ir.Func, _ map[string]*body) bool { return gone[f.Op] })
	maps.DeleteFunc(t.c.called, func(f *ir.Func, _ bool) bool { return gone[f.Op] })
	t.callers = nil
	for _, fn := range ch.Module.Funcs {
		if fn.Body != nil && slices.Contains(ch.New, fn.Op) {
			t.Funcs = append(t.Funcs, t.c.function(fn))
		}
	}
	slices.SortFunc(t.Funcs, func(f, g *Func) int { return f.Func.Op.Span.Start - g.Func.Op.Span.Start })
}

// cut takes out the entries of ops that are gone. Those that the change
// replaced still have their old places.
func (f *Func) cut(gone []*ir.Op, from int) {
	if len(gone) == 0 {
		return
	}
	set := make(map[*ir.Op]bool, len(gone))
	for _, o := range gone {
		set[o] = true
	}
	at := f.at(from)
	for end := at; ; end++ {
		if end < len(f.Entries) && set[f.Entries[end].Op] {
			f.count(f.Entries[end], -1)
			continue
		}
		f.Entries = slices.Delete(f.Entries, at, end)
		break
	}
	for _, o := range gone {
		if i := f.at(o.Span.Start); i < len(f.Entries) && f.Entries[i].Op == o {
			f.count(f.Entries[i], -1)
			f.Entries = slices.Delete(f.Entries, i, i+1)
		}
	}
}

// at is the first entry that begins at off or behind it.
func (f *Func) at(off int) int {
	return sort.Search(len(f.Entries), func(i int) bool { return f.Entries[i].Op.Span.Start >= off })
}

// put adds the entry of an op of the body.
func (f *Func) put(s *scope, o *ir.Op) {
	if !counts(o, false) {
		return
	}
	e := s.entry(o, false)
	f.Entries = slices.Insert(f.Entries, f.at(o.Span.Start), e)
	f.count(e, 1)
}

// again makes the entries that follow what other ops do again.
func (f *Func) again(s *scope) {
	f.visit("cost", len(f.follow))
	for _, o := range slices.SortedFunc(maps.Keys(f.follow), func(a, b *ir.Op) int { return a.Span.Start - b.Span.Start }) {
		i := f.at(o.Span.Start)
		if i == len(f.Entries) || f.Entries[i].Op != o {
			continue
		}
		f.count(f.Entries[i], -1)
		f.renew(s, i)
	}
}

// renew makes entry i, which the totals no longer hold, again.
func (f *Func) renew(s *scope, i int) {
	o := f.Entries[i].Op
	if len(o.Regions) > 0 {
		f.extra = slices.DeleteFunc(f.extra, func(e *Entry) bool { return e.Op.Inside(o) })
	}
	f.Entries[i] = s.entry(o, false)
	f.count(f.Entries[i], 1)
}

// count adds an entry to the totals, or takes it from them.
func (f *Func) count(e *Entry, sign int) {
	if e.follows && f.follow != nil {
		if sign > 0 {
			f.follow[e.Op] = true
		} else {
			delete(f.follow, e.Op)
		}
	}
	if sign > 0 {
		f.FLOP, f.Read, f.Written = f.FLOP.Add(e.FLOP), f.Read.Add(e.Read), f.Written.Add(e.Written)
	} else {
		f.FLOP, f.Read, f.Written = f.FLOP.Sub(e.FLOP), f.Read.Sub(e.Read), f.Written.Sub(e.Written)
	}
	f.Unknown += sign * unknown([]*Entry{e})
	if !e.Known {
		f.odd += sign
	}
	switch {
	case sign < 0 && f.lead == e:
		f.lead = nil
	case sign > 0 && f.lead != nil && (strength[e.Class] > strength[f.lead.Class] || strength[e.Class] == strength[f.lead.Class] && e.Op.Span.Start < f.lead.Op.Span.Start):
		f.lead = e
	}
	f.timed.Range(func(of, sum any) bool {
		switch sum := sum.(type) {
		case *tally:
			timer{of.(*machine.Machine)}.count(sum, e, int64(sign))
		case *sends:
			sum.add(e, sign)
		}
		return true
	})
}

// tail ensures that, of ops that count unless they are the last, the last
// does not and the one before does.
func (f *Func) tail(s *scope, b *ir.Block, fresh int) {
	n := len(b.Ops)
	for i := max(0, n-2-fresh); i < n; i++ {
		o := b.Ops[i]
		at := f.at(o.Span.Start)
		listed := at < len(f.Entries) && f.Entries[at].Op == o
		switch want := counts(o, i == n-1); {
		case listed && !want:
			f.count(f.Entries[at], -1)
			f.Entries = slices.Delete(f.Entries, at, at+1)
		case !listed && want:
			f.put(s, o)
		}
	}
}
