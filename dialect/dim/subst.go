package dim

// Eval replaces symbols by numbers; symbols not in bind stay.
func (d Dim) Eval(bind map[string]int64) Dim {
	if len(bind) == 0 {
		return d
	}
	return d.replace(func(s string) Dim {
		if n, ok := bind[s]; ok {
			return Const(n)
		}
		return Sym(s)
	})
}

// Subst replaces symbols by sizes; symbols not in by stay.
func (d Dim) Subst(by map[string]Dim) Dim {
	if len(by) == 0 {
		return d
	}
	return d.replace(func(s string) Dim {
		if e, ok := by[s]; ok {
			return e
		}
		return Sym(s)
	})
}

func (d Dim) replace(value func(sym string) Dim) Dim {
	if len(d.poly()) == 0 {
		return d
	}
	r := build(d.c, nil, d.Overflow())
	for _, t := range d.poly() {
		p := Const(t.coef)
		for _, s := range t.syms {
			if q, n, ok := quotient(s); ok {
				p = p.Mul(Quotient(q.replace(value), n))
			} else {
				p = p.Mul(value(s))
			}
		}
		r = r.Add(p)
	}
	return r
}

// maxShift is the degree up to which AtLeast looks beyond the coefficients:
// a term of degree n becomes 2^n terms there.
const maxShift = 8

// AtLeast reports whether d ≥ e for all values of the symbols from 1 on. It
// errs on the side of false: a polynomial with terms that make up for each
// other in a hidden way is not recognised.
func (d Dim) AtLeast(e Dim) bool {
	diff := d.Sub(e)
	if diff.Overflow() {
		return false
	}
	if diff.positive() {
		return true
	}
	shift := map[string]Dim{}
	for _, t := range diff.poly() {
		if len(t.syms) > maxShift {
			return false
		}
		for _, s := range t.syms {
			shift[s] = Sym(s).Add(Const(1))
		}
	}
	if shifted := diff.Subst(shift); len(shift) > 0 && !shifted.Overflow() {
		return shifted.positive()
	}
	return false
}

// positive reports whether no coefficient is negative.
func (d Dim) positive() bool {
	for _, t := range d.poly() {
		if t.coef < 0 {
			return false
		}
	}
	return d.c >= 0
}

// Terms is the number of terms of d besides the constant: what arithmetic on it costs.
func (d Dim) Terms() int { return len(d.poly()) }

// Symbol is the name that d consists of; ok is false for a number or a formula.
func (d Dim) Symbol() (name string, ok bool) {
	if t := d.poly(); d.c == 0 && !d.Overflow() && len(t) == 1 && t[0].coef == 1 && len(t[0].syms) == 1 {
		name = t[0].syms[0]
		_, _, division := quotient(name)
		return name, !division
	}
	return "", false
}

// Linear reports whether d is a multiple of one symbol and a number, so that Solve fails for sizes alone that it never is.
func (d Dim) Linear() bool {
	t := d.poly()
	if len(t) != 1 || d.Overflow() {
		return false
	}
	_, ok := build(0, []term{{1, t[0].syms}}, false).Symbol()
	return ok
}

// Solve is the one symbol of d and the size of it for which d is e: h is n + 1 where 2*h is 2*n + 2. ok is false
// where d has no symbol or several, is not linear in it, or is e for no size of 0 or more.
func (d Dim) Solve(e Dim) (name string, x Dim, ok bool) {
	if !d.Linear() {
		return "", Dim{}, false
	}
	t := d.poly()
	name = t[0].syms[0]
	x, ok = e.Sub(Const(d.c)).Div(Const(t[0].coef))
	if n, number := x.Int(); !ok || number && n < 0 {
		return "", Dim{}, false
	}
	return name, x, true
}
