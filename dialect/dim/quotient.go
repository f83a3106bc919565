package dim

import (
	"strconv"
	"strings"
)

// Quotient is d / n, rounded down, where that is known to have no remainder, as in
// n·(n+1)/2, or its remainder does not count.
// Where the coefficients do not divide it is a symbol that spells the division,
// which replacing the symbols of d resolves; one of a "?" stays unknown.
func Quotient(d Dim, n int64) Dim {
	if q, ok := d.Div(Const(n)); ok || d.Overflow() {
		return build(q.c, q.poly(), d.Overflow())
	}
	if c, ok := d.Int(); ok && c >= 0 {
		return Const(c / n)
	}
	if t := d.poly(); len(t) == 1 && t[0].coef == 1 && len(t[0].syms) == 1 { // a part of a part
		if whole, m, ok := quotient(t[0].syms[0]); ok {
			if by, over := mulInt(m, n); !over {
				return Quotient(whole.Add(Const(d.c).Scale(m)), by)
			}
		}
	}
	text := "(" + d.String() + ")/" + strconv.FormatInt(n, 10)
	if d.IsUnnamed() {
		return Unnamed(text)
	}
	return Sym(text)
}

// Halves is d / 2, rounded up.
func Halves(d Dim) Dim {
	if q, ok := d.Div(Const(2)); ok {
		return q
	}
	if n, ok := d.Int(); ok {
		return Const(n/2 + n%2)
	}
	return Quotient(d.Add(Const(1)), 2)
}

// quotient is what a symbol divides; ok is false for one that is a name.
func quotient(sym string) (d Dim, n int64, ok bool) {
	if !strings.HasPrefix(sym, "(") {
		return Dim{}, 0, false
	}
	at := strings.LastIndex(sym, ")/")
	if at < 0 {
		return Dim{}, 0, false
	}
	n, err := strconv.ParseInt(sym[at+2:], 10, 64)
	if err != nil || n < 1 {
		return Dim{}, 0, false
	}
	d, err = Parse(sym[1:at])
	return d, n, err == nil
}
