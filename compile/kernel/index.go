package kernel

import (
	"cmp"
	"encoding/binary"
	"slices"

	"dmir/dialect/ir"
)

// Index is an integer that depends on loop variables: C + Σ Coef·Atom, with the
// terms in the order of their atoms and none of them zero.
type Index struct {
	C     int64
	Terms []Term
}

// Term is one summand of an index.
type Term struct {
	Coef int64
	Atom *Atom
}

// AtomKind is the kind of an atom.
type AtomKind uint8

// The atoms of an index.
const (
	Var    AtomKind = iota // a loop variable
	Div                    // ⌊X / N⌋ of a non-negative X
	Mod                    // X mod N of a non-negative X
	Within                 // X, which lies between Min and Max where it is used
	Datum                  // the value of E, an integer read from memory
	Table                  // number X of Values, of which the least is 0
)

// Atom is an indivisible term of an index. Atoms of one space are equal if
// their pointers are.
type Atom struct {
	Kind     AtomKind
	Name     string // of a variable
	X        Index
	N        int64
	E        *Expr
	Values   []int64
	Min, Max int64 // both inclusive
	id       int
	free     []*Atom // the variables that it depends on
}

// Const is the index n.
func Const(n int64) Index { return Index{C: n} }

func (a *Atom) index() Index { return Index{Terms: []Term{{1, a}}} }

// IndexOf is the index with the value of the atom.
func IndexOf(a *Atom) Index { return a.index() }

// IsConst reports whether x is a number, and which.
func (x Index) IsConst() (int64, bool) { return x.C, len(x.Terms) == 0 }

// Equal reports whether x and y have the same normal form, and thus are the
// same for all values of their atoms.
func (x Index) Equal(y Index) bool { return x.C == y.C && slices.Equal(x.Terms, y.Terms) }

// Plus is x + c.
func (x Index) Plus(c int64) Index { return Index{x.C + c, x.Terms} }

// Times is k·x.
func (x Index) Times(k int64) Index {
	if k == 0 {
		return Index{}
	}
	y := Index{C: x.C * k, Terms: make([]Term, len(x.Terms))}
	for i, t := range x.Terms {
		y.Terms[i] = Term{t.Coef * k, t.Atom}
	}
	return y
}

// Add is x + y, in which n·⌊z/n⌋ + z mod n is simplified to z.
func (x Index) Add(y Index) Index {
	terms := make([]Term, 0, len(x.Terms)+len(y.Terms))
	terms = append(append(terms, x.Terms...), y.Terms...)
	slices.SortFunc(terms, func(a, b Term) int { return cmp.Compare(a.Atom.id, b.Atom.id) })
	kept := terms[:0]
	for _, t := range terms {
		if n := len(kept); n > 0 && kept[n-1].Atom == t.Atom {
			if kept[n-1].Coef += t.Coef; kept[n-1].Coef == 0 {
				kept = kept[:n-1]
			}
			continue
		}
		kept = append(kept, t)
	}
	return Index{x.C + y.C, kept}.rejoin()
}

func (x Index) rejoin() Index {
	for i, d := range x.Terms {
		if d.Atom.Kind != Div {
			continue
		}
		for j, m := range x.Terms {
			if m.Atom.Kind == Mod && m.Atom.N == d.Atom.N && m.Coef*m.Atom.N == d.Coef && m.Atom.X.Equal(d.Atom.X) {
				rest := Index{C: x.C}
				for k, t := range x.Terms {
					if k != i && k != j {
						rest.Terms = append(rest.Terms, t)
					}
				}
				return rest.Add(d.Atom.X.Times(m.Coef))
			}
		}
	}
	return x
}

// Bounds are the least and the greatest value of x, both inclusive.
func (x Index) Bounds() (lo, hi int64) {
	lo, hi = x.C, x.C
	for _, t := range x.Terms {
		a, b := t.Coef*t.Atom.Min, t.Coef*t.Atom.Max
		lo, hi = lo+min(a, b), hi+max(a, b)
	}
	return lo, hi
}

// Atoms visits all atoms in x, those within others included, each once.
func (x Index) Atoms(visit func(*Atom)) {
	for _, t := range x.Terms {
		visit(t.Atom)
		if t.Atom.Kind != Datum {
			t.Atom.X.Atoms(visit)
		}
	}
}

// free are the variables that x depends on.
func (x Index) free() []*Atom {
	var out []*Atom
	for _, t := range x.Terms {
		out = union(out, t.Atom.free)
	}
	return out
}

// DependsOn reports whether a occurs in x.
func (x Index) DependsOn(a *Atom) bool { return slices.Contains(x.free(), a) }

// Space owns the atoms and expressions of one kernel; equal ones are the same
// pointer.
type Space struct {
	atoms map[atomKey]*Atom
	exprs map[exprKey]*Expr
	spans map[spanKey]*Span
	vars  int
	from  *ir.Op // the op that is being lowered

	numbers map[string]int // see intern
	key     []byte         // memory for what is interned
}

func newSpace() *Space {
	return &Space{atoms: map[atomKey]*Atom{}, exprs: map[exprKey]*Expr{}, spans: map[spanKey]*Span{}, numbers: map[string]int{}}
}

// intern is the number of a sequence of bytes, which is in the memory of s.key: equal ones have equal numbers.
func (s *Space) intern(b []byte) int {
	s.key = b
	n, ok := s.numbers[string(b)]
	if !ok {
		n = len(s.numbers)
		s.numbers[string(b)] = n
	}
	return n
}

// atomKey identifies an atom of a space.
type atomKey struct {
	kind     AtomKind
	parts    int // X and Values, see Space.intern; of a variable its number
	n        int64
	e        *Expr
	min, max int64
}

// Loop returns a new variable that runs from 0 to n - 1.
func (s *Space) Loop(name string, n int64) *Atom {
	s.vars++
	a := &Atom{Kind: Var, Name: name, Min: 0, Max: n - 1, id: len(s.atoms)}
	a.free = []*Atom{a}
	s.atoms[atomKey{kind: Var, parts: s.vars}] = a
	return a
}

func (s *Space) atom(a Atom) Index {
	b := a.X.appendTo(s.key[:0])
	for _, v := range a.Values {
		b = binary.AppendVarint(b, v)
	}
	key := atomKey{a.Kind, s.intern(b), a.N, a.E, a.Min, a.Max}
	if old := s.atoms[key]; old != nil {
		return old.index()
	}
	a.id = len(s.atoms)
	if a.free = a.X.free(); a.Kind == Datum {
		a.free = a.E.free
	}
	s.atoms[key] = &a
	return (&a).index()
}

// appendTo appends what identifies x in its space, from which x can be read again.
func (x Index) appendTo(b []byte) []byte {
	b = binary.AppendVarint(b, x.C)
	b = binary.AppendUvarint(b, uint64(len(x.Terms)))
	for _, t := range x.Terms {
		b = binary.AppendUvarint(binary.AppendVarint(b, t.Coef), uint64(t.Atom.id))
	}
	return b
}

// split decomposes x into n·whole + rest, where no term of rest is a multiple
// of n.
func (x Index) split(n int64) (whole, rest Index) {
	for _, t := range x.Terms {
		if t.Coef%n == 0 {
			whole.Terms = append(whole.Terms, Term{t.Coef / n, t.Atom})
		} else {
			rest.Terms = append(rest.Terms, t)
		}
	}
	whole.C = floorDiv(x.C, n)
	rest.C = x.C - whole.C*n
	if lo, _ := rest.Bounds(); lo < 0 { // a rest below zero borrows, which is no gain
		return Index{}, x
	}
	return whole, rest
}

// factor writes x as g·y + r with 0 <= r < g for a g > 1 that divides n, so that
// dividing x by n is dividing y by n/g; g is 1 where there is none.
func (x Index) factor(n int64) (y, r Index, g int64) {
	tried := map[int64]bool{}
	for _, t := range x.Terms {
		g := GCD(n, t.Coef)
		if g <= 1 || tried[g] {
			continue
		}
		tried[g] = true
		y, r := x.split(g)
		if lo, hi := r.Bounds(); lo >= 0 && hi < g && len(y.Terms) > 0 {
			return y, r, g
		}
	}
	return Index{}, x, 1
}

// floorDiv is ⌊a / n⌋ for n > 0.
func floorDiv(a, n int64) int64 {
	q := a / n
	if a%n < 0 {
		q--
	}
	return q
}

// GCD is the greatest common divisor of a and b, not negative.
func GCD(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return max(a, -a)
}

// Div is ⌊x / n⌋; x is not negative where it is used.
func (s *Space) Div(x Index, n int64) Index {
	if n == 1 {
		return x
	}
	whole, rest := x.split(n)
	lo, hi := rest.Bounds()
	if lo >= 0 && hi < n {
		return whole
	}
	if y, _, g := rest.factor(n); g > 1 {
		return whole.Add(s.Div(y, n/g))
	}
	return whole.Add(s.atom(Atom{Kind: Div, X: rest, N: n, Min: max(lo, 0) / n, Max: max(hi, 0) / n}))
}

// Mod is x mod n; x is not negative where it is used.
func (s *Space) Mod(x Index, n int64) Index {
	if n == 1 {
		return Index{}
	}
	_, rest := x.split(n)
	if lo, hi := rest.Bounds(); lo >= 0 && hi < n {
		return rest
	}
	if y, r, g := rest.factor(n); g > 1 {
		return s.Mod(y, n/g).Times(g).Add(r)
	}
	return s.atom(Atom{Kind: Mod, X: rest, N: n, Max: n - 1})
}

// Within is x where it is known to lie between lo and hi.
func (s *Space) Within(x Index, lo, hi int64) Index {
	if a, b := x.Bounds(); a >= lo && b <= hi {
		return x
	}
	return s.atom(Atom{Kind: Within, X: x, Min: lo, Max: hi})
}

// wide is a new loop over n in steps of v neighbours: v times the variable that
// counts steps, plus lane.
func (s *Space) wide(name string, n, v int64, lane *Atom) (step *Atom, x Index) {
	if n/v > 1 {
		step = s.Loop(name, n/v)
		x = IndexOf(step).Times(v)
	}
	if v > 1 {
		x = x.Add(IndexOf(lane))
	}
	return step, x
}

// Linear is the row-major offset of the element at idx.
func Linear(idx []Index, shape []int64) Index {
	var x Index
	for i, n := range shape {
		x = x.Times(n).Add(idx[i])
	}
	return x
}

// Unlinear is the index of element number x in a tensor of that shape.
func (s *Space) Unlinear(x Index, shape []int64) []Index {
	idx := make([]Index, len(shape))
	for i := len(shape) - 1; i >= 0; i-- {
		if i == 0 || Product(shape[:i]) == 1 && shape[i] > 1 {
			idx[i] = x
			if shape[i] == 1 {
				idx[i] = Index{}
			}
			x = Index{}
			continue
		}
		idx[i] = s.Mod(x, shape[i])
		x = s.Div(x, shape[i])
	}
	return idx
}

// Product is the product of ns, 1 of none.
func Product(ns []int64) int64 {
	p := int64(1)
	for _, n := range ns {
		p *= n
	}
	return p
}
