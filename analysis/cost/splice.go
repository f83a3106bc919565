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
	Funcs []*Func // with a body, in textual order
	c     *coster
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
// from stays; what follows is by so many lines further down.
func (t *Costs) Splice(ch *lower.Change, from, lines int) {
	t.c.forget(ch.Gone)
	if ch.Whole {
		t.functions(ch, from, lines)
		return
	}
	var f *Func
	for _, g := range t.Funcs {
		if g.Func.Op == ch.Func {
			f = g
		}
	}
	if f == nil { // a second function of its name
		t.Renumber(from, lines)
		return
	}
	if t.c.called[f.Func] || f.FLOP.Overflow() || f.Read.Overflow() || f.Written.Overflow() {
		*t = *Open(t.c.m, t.c.bind)
		return
	}
	env := sizes(f.Func, t.c.bind)
	s := t.c.scopeOf(f.Func, env)
	f.body.entries = nil // they are overwritten: a new op that calls f must not look at them
	if f.follow == nil {
		f.follow = map[*ir.Op]bool{}
		for _, e := range f.Entries {
			if e.follows {
				f.follow[e.Op] = true
			}
		}
	}
	f.cut(ch.Gone, from)
	t.Renumber(from, lines)
	for _, o := range ch.New {
		f.put(s, o)
	}
	f.tail(s, ch.Block, len(ch.New))
	f.again(s)
	if t.c.called[f.Func] { // by itself, from now on
		*t = *Open(t.c.m, t.c.bind)
		return
	}
	b := f.body
	f.extra = slices.DeleteFunc(append(f.extra, s.extra...), func(e *Entry) bool { return !e.Op.Inside(ch.Func) })
	b.entries, b.extra, b.in, b.known, b.timed = f.Entries, f.extra, s, false, sync.Map{}
	b.total = total{f.FLOP, f.Read, f.Written}
	b.hold(s)
	f.least, f.overlap = nil, new(sync.Map)
	f.divided, f.undivided, f.tried = nil, nil, false
	f.shardings, f.unshardable, f.spread = nil, nil, false
}

// functions replaces functions that are not called by others.
func (t *Costs) functions(ch *lower.Change, from, lines int) {
	gone := map[*ir.Op]bool{}
	for _, o := range ch.Gone {
		gone[o] = true
	}
	t.Funcs = slices.DeleteFunc(t.Funcs, func(f *Func) bool { return gone[f.Func.Op] })
	maps.DeleteFunc(t.c.bodies, func(k bodyKey, _ *body) bool { return gone[k.fn.Op] })
	maps.DeleteFunc(t.c.called, func(f *ir.Func, _ bool) bool { return gone[f.Op] })
	t.Renumber(from, lines)
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
	for _, o := range slices.SortedFunc(maps.Keys(f.follow), func(a, b *ir.Op) int { return a.Span.Start - b.Span.Start }) {
		i := f.at(o.Span.Start)
		if i == len(f.Entries) || f.Entries[i].Op != o {
			continue
		}
		f.count(f.Entries[i], -1)
		if len(o.Regions) > 0 {
			f.extra = slices.DeleteFunc(f.extra, func(e *Entry) bool { return e.Op.Inside(o) })
		}
		f.Entries[i] = s.entry(o, false)
		f.count(f.Entries[i], 1)
	}
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
	f.timed.Range(func(m, y any) bool {
		y.(*tally).add(timer{m.(*machine.Machine)}.entry(e), int64(sign))
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

// Renumber shifts the line numbers of ops after from.
func (t *Costs) Renumber(from, lines int) {
	if lines == 0 {
		return
	}
	move := func(e *Entry) {
		if e.Line > 0 {
			e.Line += lines
		}
	}
	for _, f := range t.Funcs {
		if f.Func.Op.Span.End < from {
			continue
		}
		walk(f.Entries[f.at(from):], move)
		if d := f.divided; d != nil {
			walk(d.Lines.Entries[d.Lines.at(from):], move)
		}
		walk(f.extra, func(e *Entry) {
			if e.Op.Span.Start >= from {
				move(e)
			}
		})
	}
}
