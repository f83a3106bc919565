package kernel

// planes is the division of a result's elements into planes of equal size: lines of
// length neighbours each.
type planes struct{ lines, length int64 }

// divide reports whether n elements are whole planes.
func (p planes) divide(n int64) bool { return p.lines > 0 && n%(p.lines*p.length) == 0 }

// Planes is f, a pointwise kernel, with v neighbours, which divide length, and its
// results' elements in planes of so many lines of that length. The loops of a result
// that consists of whole planes are a variable that numbers planes, nil for a single
// one, one that numbers the lines of a plane, and one that counts steps of v elements
// along a line, nil for a single step. Other results, which v need not divide, are not
// for use.
func (f *Form) Planes(v, lines, length int64) (*Form, error) {
	g := *f
	g.in = planes{lines, length}
	return g.Widen(v, 0)
}

// planes are the variables of a loop over n elements in planes, and the element that
// they stand for.
func (s *Space) planes(n int64, in planes, v int64, lane *Atom) ([]*Atom, Index) {
	step, at := s.wide("step", in.length, v, lane)
	line := s.Loop("line", in.lines)
	at = at.Add(IndexOf(line).Times(in.length))
	var plane *Atom
	if size := in.lines * in.length; n > size {
		plane = s.Loop("plane", n/size)
		at = at.Add(IndexOf(plane).Times(size))
	}
	return []*Atom{plane, line, step}, at
}

// RunOf is the stride and the number of the values of a, a variable, over which x grows by one at a time; n is 0 where it does
// not.
func (x Index) RunOf(a *Atom) (stride, n int64) {
	for _, t := range x.Terms {
		if stride, n = t.Atom.digit(a); n > 0 && t.Coef == 1 {
			return stride, n
		}
	}
	return 0, 0
}

// LongestRunOf is RunOf with the runs that follow each other as one.
func (x Index) LongestRunOf(a *Atom) (stride, n int64) {
	stride, n = x.RunOf(a)
	for i := 0; i < len(x.Terms); i++ {
		t := x.Terms[i]
		if s, m := t.Atom.digit(a); n > 0 && m > 1 && t.Coef == n && s == stride*n {
			n *= m
			i = -1
		}
	}
	return stride, n
}

// digit describes b as ⌊a / stride⌋ mod n; n is 0 where it is none.
func (b *Atom) digit(a *Atom) (stride, n int64) {
	of := a.Max + 1
	inner := func() *Atom {
		if len(b.X.Terms) == 1 && b.X.C == 0 && b.X.Terms[0].Coef == 1 {
			return b.X.Terms[0].Atom
		}
		return nil
	}
	if b.Kind == Mod {
		of = b.N
		b = inner()
	}
	stride = 1
	for b != nil && b.Kind == Div {
		stride *= b.N
		b = inner()
	}
	if b != a {
		return 0, 0
	}
	return stride, min(of, (a.Max+1)/stride)
}

// Value is x where each variable has its value of vars, and a number that is read from
// memory is 0.
func (x Index) Value(vars map[*Atom]int64) int64 {
	sum := x.C
	for _, t := range x.Terms {
		sum += t.Coef * t.Atom.value(vars)
	}
	return sum
}

func (a *Atom) value(vars map[*Atom]int64) int64 {
	switch a.Kind {
	case Var:
		return vars[a]
	case Div:
		return floorDiv(a.X.Value(vars), a.N)
	case Mod:
		x := a.X.Value(vars)
		return x - floorDiv(x, a.N)*a.N
	case Within:
		return a.X.Value(vars)
	case Table:
		return a.Values[a.X.Value(vars)]
	}
	return 0
}
