package cost

import (
	"maps"
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/lower"
)

// An edit of a function changes the cost of those that call it, and of those that call these: of each the entries
// of the calls are made again, and its sums follow.

// caller is a function and those of its ops whose cost a change of what they call changes.
type caller struct {
	*Func
	ops []*ir.Op
}

// above are the functions that call f, or call one that does, each behind those that it calls; ok is false where
// f is one of them, or a gradient is taken of one.
func (t *Costs) above(f *Func) (list []caller, ok bool) {
	if !t.c.called[f.Func] {
		return nil, true
	}
	if t.callers == nil {
		t.callers = map[string]map[*Func]bool{}
		for _, g := range t.Funcs {
			for name := range g.marks().calls {
				t.calls(name, g)
			}
		}
	}
	const entered, left = 1, 2
	state := map[*Func]int{}
	ok = true
	var order []*Func
	var visit func(g *Func)
	visit = func(g *Func) {
		ok = ok && state[g] != entered && !t.c.joint[g.Func]
		if state[g] != 0 || !ok {
			return
		}
		state[g] = entered
		for h := range t.callers[g.Func.Name] {
			visit(h)
		}
		state[g] = left
		order = append(order, g)
	}
	visit(f)
	if !ok {
		return nil, false
	}
	slices.Reverse(order) // f first
	calls := map[*Func]map[*ir.Op]bool{}
	for _, called := range order {
		for g := range t.callers[called.Func.Name] {
			if calls[g] == nil {
				calls[g] = map[*ir.Op]bool{}
			}
			maps.Copy(calls[g], g.marked.calls[called.Func.Name])
		}
	}
	for _, g := range order[1:] {
		list = append(list, caller{g, slices.Collect(maps.Keys(calls[g]))})
	}
	return list, true
}

// calls notes whether g calls the function of a name.
func (t *Costs) calls(name string, g *Func) {
	switch {
	case len(g.marked.calls[name]) == 0:
		delete(t.callers[name], g)
	case t.callers[name] == nil:
		t.callers[name] = map[*Func]bool{g: true}
	default:
		t.callers[name][g] = true
	}
}

// note follows the calls of f, of which a change was made.
func (t *Costs) note(f *Func, ch *lower.Change) {
	if t.callers == nil {
		return
	}
	for _, name := range append(callees(ch.Gone), callees(ch.New)...) {
		t.calls(name, f)
	}
}

// take takes the entries of the ops from the sums, while what they call is as it was.
func (c caller) take() bool {
	for _, o := range c.ops {
		i := c.at(o.Span.Start)
		if i == len(c.Entries) || c.Entries[i].Op != o {
			return false
		}
		c.count(c.Entries[i], -1)
	}
	return true
}

// put makes the entries again.
func (c caller) put(k *coster) {
	c.visit("cost", len(c.ops))
	s := k.scopeOf(c.Func.Func, sizes(c.Func.Func, k.bind))
	for _, o := range c.ops {
		c.renew(s, c.at(o.Span.Start))
	}
	c.settle(s)
}
