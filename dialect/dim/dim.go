// Package dim is exact arithmetic on sizes: non-negative 64-bit integers and
// polynomials in the symbols that stand for dimensions (b, n, heads …). Shapes,
// byte counts and FLOP counts are all Dims, so a cost that depends on an unbound
// symbol stays a formula and is never guessed. Arithmetic that leaves 64 bits
// is remembered (Overflow) instead of wrapping.
package dim

import (
	"math/bits"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// Dim is an immutable polynomial; the zero value is 0.
type Dim struct {
	c    int64 // the constant term
	rest *rest // nil for a number, as most are
}

// rest is what of a Dim is no number.
type rest struct {
	poly []term // sorted by symbols, no zero coefficients; nil for a constant
	over bool
}

// build returns the Dim of a constant term, of other terms and of an overflow.
func build(c int64, poly []term, over bool) Dim {
	if len(poly) == 0 && !over {
		return Dim{c: c}
	}
	return Dim{c, &rest{poly, over}}
}

func (d Dim) poly() []term {
	if d.rest == nil {
		return nil
	}
	return d.rest.poly
}

type term struct {
	coef int64
	syms []string // sorted, repeated for powers
}

// Const is the constant n.
func Const(n int64) Dim { return Dim{c: n} }

// Consts are the constants of numbers by their symbols, as Subst takes them.
func Consts(numbers map[string]int64) map[string]Dim {
	out := make(map[string]Dim, len(numbers))
	for name, n := range numbers {
		out[name] = Const(n)
	}
	return out
}

// Sym is the symbol name.
func Sym(name string) Dim { return build(0, []term{{1, []string{name}}}, false) }

// Int is the value of a constant; ok is false for a formula or after overflow.
func (d Dim) Int() (n int64, ok bool) { return d.c, d.rest == nil }

// IsConst reports whether d is a number.
func (d Dim) IsConst() bool { return d.rest == nil }

// IsZero reports whether d is the number 0.
func (d Dim) IsZero() bool { return d.IsConst() && d.c == 0 }

// Overflow reports whether computing d left 64 bits.
func (d Dim) Overflow() bool { return d.rest != nil && d.rest.over }

// Largest is the largest of the magnitudes of d's coefficients and constant term.
func (d Dim) Largest() uint64 {
	n := abs(d.c)
	for _, t := range d.poly() {
		n = max(n, abs(t.coef))
	}
	return n
}

// Equal reports whether d and e are the same polynomial.
func (d Dim) Equal(e Dim) bool {
	return d.c == e.c && d.Overflow() == e.Overflow() && slices.EqualFunc(d.poly(), e.poly(), func(t, u term) bool {
		return t.coef == u.coef && slices.Equal(t.syms, u.syms)
	})
}

// Add is d + e.
func (d Dim) Add(e Dim) Dim { return Sum(d, e) }

// Sub is d - e.
func (d Dim) Sub(e Dim) Dim { return d.Add(e.Mul(Const(-1))) }

// Mul is d · e.
func (d Dim) Mul(e Dim) Dim {
	c, over := mulInt(d.c, e.c)
	over = over || d.Overflow() || e.Overflow()
	if d.rest == nil && e.rest == nil {
		return build(c, nil, over)
	}
	var ts []term
	scale := func(poly []term, k int64) {
		if k == 0 {
			return
		}
		for _, t := range poly {
			k2, o := mulInt(t.coef, k)
			over = over || o
			ts = append(ts, term{k2, t.syms})
		}
	}
	scale(d.poly(), e.c)
	scale(e.poly(), d.c)
	for _, t := range d.poly() {
		for _, u := range e.poly() {
			k, o := mulInt(t.coef, u.coef)
			over = over || o
			syms := append(slices.Clone(t.syms), u.syms...)
			sort.Strings(syms)
			ts = append(ts, term{k, syms})
		}
	}
	ts = normalize(ts, &over)
	return build(c, ts, over)
}

// Scale is k · d.
func (d Dim) Scale(k int64) Dim { return d.Mul(Const(k)) }

// Div is d / e where the division is exact: every coefficient divides and e is
// a constant or a single product of symbols. ok is false otherwise.
func (d Dim) Div(e Dim) (q Dim, ok bool) {
	if d.Overflow() || e.Overflow() {
		return Dim{}, false
	}
	var ts []term
	if e.rest == nil {
		if e.c == 0 || d.c%e.c != 0 {
			return Dim{}, false
		}
		for _, t := range d.poly() {
			if t.coef%e.c != 0 {
				return Dim{}, false
			}
			ts = append(ts, term{t.coef / e.c, t.syms})
		}
		return build(d.c/e.c, ts, false), true
	}
	if len(e.poly()) != 1 || e.c != 0 || d.c != 0 {
		return Dim{}, false
	}
	u := e.poly()[0]
	c, over := int64(0), false
	for _, t := range d.poly() {
		syms, divides := without(t.syms, u.syms)
		if !divides || t.coef%u.coef != 0 {
			return Dim{}, false
		}
		if len(syms) == 0 {
			c += t.coef / u.coef
		} else {
			ts = append(ts, term{t.coef / u.coef, syms})
		}
	}
	ts = normalize(ts, &over) // taking symbols away may change the order
	return build(c, ts, over), true
}

// Symbols is the sorted set of symbols in d.
func (d Dim) Symbols() []string {
	var s []string
	for _, t := range d.poly() {
		for _, sym := range t.syms {
			if q, _, ok := quotient(sym); ok {
				s = append(s, q.Symbols()...)
			} else {
				s = append(s, sym)
			}
		}
	}
	sort.Strings(s)
	return slices.Compact(s)
}

// String is the number, or the formula with the highest powers first:
// "4*b*n^2 + 12". An overflowed Dim prints as "overflow".
func (d Dim) String() string {
	if d.Overflow() {
		return "overflow"
	}
	if d.rest == nil {
		return strconv.FormatInt(d.c, 10)
	}
	ts := slices.Clone(d.poly())
	sort.SliceStable(ts, func(i, j int) bool { return len(ts[i].syms) > len(ts[j].syms) })
	var b strings.Builder
	for i, t := range ts {
		k := t.coef
		switch {
		case i > 0 && k < 0:
			b.WriteString(" - ")
			k = -k
		case i > 0:
			b.WriteString(" + ")
		}
		if k != 1 {
			b.WriteString(strconv.FormatInt(k, 10))
			b.WriteByte('*')
		}
		for j := 0; j < len(t.syms); {
			n := j
			for n < len(t.syms) && t.syms[n] == t.syms[j] {
				n++
			}
			if j > 0 {
				b.WriteByte('*')
			}
			b.WriteString(t.syms[j])
			if n-j > 1 {
				b.WriteByte('^')
				b.WriteString(strconv.Itoa(n - j))
			}
			j = n
		}
	}
	switch {
	case d.c > 0:
		b.WriteString(" + " + strconv.FormatInt(d.c, 10))
	case d.c < 0:
		b.WriteString(" - " + strconv.FormatInt(-d.c, 10))
	}
	return b.String()
}

// Sum is the sum of ds.
func Sum(ds ...Dim) Dim {
	c, over := int64(0), false
	var ts []term
	for _, d := range ds {
		sum, o := addInt(c, d.c)
		c, over = sum, over || o || d.Overflow()
		ts = append(ts, d.poly()...)
	}
	if ts != nil {
		ts = normalize(ts, &over)
	}
	return build(c, ts, over)
}

// Prod is the product of ds; 1 for none.
func Prod(ds ...Dim) Dim {
	r := Const(1)
	for _, d := range ds {
		r = r.Mul(d)
	}
	return r
}

func normalize(ts []term, over *bool) []term {
	slices.SortStableFunc(ts, func(t, u term) int { return slices.Compare(t.syms, u.syms) })
	var out []term
	for _, t := range ts {
		if n := len(out); n > 0 && slices.Equal(out[n-1].syms, t.syms) {
			k, o := addInt(out[n-1].coef, t.coef)
			*over = *over || o
			out[n-1].coef = k
		} else {
			out = append(out, t)
		}
	}
	out = slices.DeleteFunc(out, func(t term) bool { return t.coef == 0 })
	if len(out) == 0 {
		return nil // a constant has no terms
	}
	return out
}

func without(syms, less []string) ([]string, bool) {
	rest := slices.Clone(syms)
	for _, s := range less {
		i := slices.Index(rest, s)
		if i < 0 {
			return nil, false
		}
		rest = slices.Delete(rest, i, i+1)
	}
	return rest, true
}

func addInt(a, b int64) (int64, bool) {
	s := a + b
	return s, (a > 0 && b > 0 && s < 0) || (a < 0 && b < 0 && s >= 0)
}

func mulInt(a, b int64) (int64, bool) {
	neg := (a < 0) != (b < 0)
	hi, lo := bits.Mul64(abs(a), abs(b))
	if hi != 0 || lo > 1<<63-1 {
		return 0, true
	}
	if neg {
		return -int64(lo), false
	}
	return int64(lo), false
}

func abs(a int64) uint64 {
	if a < 0 {
		return uint64(-a)
	}
	return uint64(a)
}
