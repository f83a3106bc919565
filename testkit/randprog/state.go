package randprog

import "slices"

// states writes the next values of some arguments: computed from the argument
// itself and another value, as an optimizer does, or any value of its type.
func (w *writer) states() {
	for _, a := range w.args {
		if !a.float() && !isInt(a.elem) || w.chance(4) {
			continue
		}
		like := func(v value) bool {
			return v.elem == a.elem && slices.Equal(v.shape, a.shape) && v.name != a.name
		}
		x, ok := w.find(like)
		if ok && !x.arg && w.chance(4) && !slices.ContainsFunc(w.state, func(s state) bool { return s.next.name == x.name }) {
			w.state = append(w.state, state{a.name, x})
			continue
		}
		if !ok {
			x = a
		}
		head, lo, hi := "max", max(a.lo, x.lo), max(a.hi, x.hi)
		if a.float() && a.top()+x.top() < limit(a.elem) && w.chance(2) {
			head, lo, hi = "add", a.lo+x.lo, a.hi+x.hi
		}
		next := w.fresh(a.elem, a.shape, lo, hi, a.exact && x.exact && (head == "max" || !coarse(a.elem)), a, x)
		w.state = append(w.state, state{a.name, w.one(head, "", next, a, x)})
	}
}
