package kernel

// Hoist calls compute, before a loop around x is opened, with those subexpressions of x
// that are ready and not under a guard, and that are not part of another one.
func Hoist(x *Expr, done, ready func(*Expr) bool, compute func(*Expr)) {
	seen := map[*Expr]bool{}
	var visit func(x *Expr)
	visit = func(x *Expr) {
		if seen[x] || x.Op == Number || done(x) {
			return
		}
		seen[x] = true
		if ready(x) {
			compute(x)
			return
		}
		if x.Op == Guard || x.overRows() || x.Rare() {
			return
		}
		for _, a := range x.Args {
			visit(a)
		}
		x.At.Atoms(func(a *Atom) {
			if a.Kind == Datum && searches(a.E) {
				visit(a.E)
			}
		})
	}
	visit(x)
}

// searches reports whether x takes a search, which is too much for every iteration of a loop.
func searches(x *Expr) bool {
	found := false
	Walk(x, func(x *Expr) { found = found || x.Op == Search })
	return found
}

// Ready reports whether x can be computed where the variables of atoms have values and
// the reductions of given are complete.
func Ready[V any](x *Expr, atoms map[*Atom]V, given map[*Expr]V) bool {
	for _, a := range x.Free() {
		if _, bound := atoms[a]; !bound {
			return false
		}
	}
	for _, f := range x.RowReductions() {
		if _, complete := given[f]; !complete {
			return false
		}
	}
	return true
}
