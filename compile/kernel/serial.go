package kernel

import "slices"

// once reports whether f, whose reductions are serial, computes each of them
// once, or little more often: its results have one loop, updates in place aside, no reduction is in
// another, and neighbours do not repeat the work of one that they share.
func (f *Form) once() bool {
	ok := true
	var loops []*Atom
	for _, o := range f.Outs {
		if !f.Over[o.Value] {
			ok = ok && (loops == nil || slices.Equal(o.Loops, loops))
			loops = o.Loops
		}
		for _, x := range o.Exprs() {
			Walk(x, func(x *Expr) {
				if x.Op == Reduce {
					ok = ok && (f.Visits() > 0 || !wasteful(x, o.Loops)) // updates that are looked through count as visits
					Walk(x.Args[0], func(y *Expr) { ok = ok && y.Op != Reduce })
				}
			})
		}
	}
	return ok
}

// mostRepeated is how many times more work than it needs a kernel may do where elements that share a reduction each compute it.
const mostRepeated = 8

// wasteful reports whether a loop in which the reduction x is computed for each step does far more work than there is: x has few
// values, by the indices that it depends on, and each is a long sum. Of a segment whose number is data each step of the segment would compute the
// sum again: that is too much however short segments are on average, since one may have most elements.
func wasteful(x *Expr, loops []*Atom) bool {
	steps, length, values := 1.0, float64(x.Steps()), 1.0
	loops = present(slices.Clone(loops)...)
	for _, a := range loops {
		steps *= float64(a.Max - a.Min + 1)
	}
	number := x.number(loops)
	seen := map[*Atom]bool{}
	index := func(i Index) {
		for _, t := range i.Terms {
			a := t.Atom
			if seen[a] || len(number) > 0 && a.Kind == Datum || !slices.ContainsFunc(a.vars(), func(v *Atom) bool { return slices.Contains(loops, v) }) {
				continue
			}
			seen[a] = true
			values *= float64(a.Max - a.Min + 1)
		}
	}
	isNumber := func(y *Expr) bool { return slices.Contains(number, y) }
	walk(x, &visited{}, isNumber, func(y *Expr) {
		if isNumber(y) {
			return
		}
		index(y.At)
		for _, c := range y.If {
			index(c.X)
		}
	})
	if len(number) > 0 {
		return values < steps
	}
	values = min(values, steps)
	return steps*length > mostRepeated*max(values*length, steps)
}

// number are the searches and the loads by which a step of loops finds the segment that x, a reduction, runs over; none of others.
func (x *Expr) number(loops []*Atom) (data []*Expr) {
	if x.Span == nil {
		return nil
	}
	x.Span.From.data(func(bound *Expr) {
		bound.At.data(func(y *Expr) {
			if slices.ContainsFunc(loops, y.DependsOn) {
				data = append(data, y)
			}
		})
	})
	return data
}

// data visits the loads and the searches that x depends on, but not those that these depend on.
func (x Index) data(visit func(*Expr)) {
	ends := func(y *Expr) bool { return y.Op == Load || y.Op == Search }
	x.Atoms(func(a *Atom) {
		if a.Kind == Datum {
			walk(a.E, &visited{}, ends, func(y *Expr) {
				if ends(y) {
					visit(y)
				}
			})
		}
	})
}

// vars are the variables that a depends on, itself if it is one.
func (a *Atom) vars() []*Atom {
	if a.Kind == Var {
		return []*Atom{a}
	}
	return a.free
}
