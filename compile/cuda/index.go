package cuda

import (
	"fmt"
	"math"
	"strings"

	"dmir/compile/kernel"
)

// index is the C++ expression for x: of 32 bits where that is enough.
func (e *emitter) index(x kernel.Index) string {
	if n, ok := x.IsConst(); ok {
		return fmt.Sprint(n)
	}
	lo, hi := extent(x)
	wide := lo < math.MinInt32 || hi > math.MaxInt32
	var b strings.Builder
	for i, t := range x.Terms {
		a, c := e.atom(t.Atom), t.Coef
		if base, n, ok := e.multiple(t); ok {
			a, c = base, c/n
		}
		switch {
		case i > 0 && c < 0:
			b.WriteString(" - ")
			c = -c
		case i > 0:
			b.WriteString(" + ")
		case c == -1:
			b.WriteString("-")
			c = 1
		}
		if wide {
			a = "dm::i64(" + a + ")"
		}
		if c == 1 {
			b.WriteString(a)
		} else {
			fmt.Fprintf(&b, "%s * %d", a, c)
		}
	}
	switch {
	case x.C > 0:
		fmt.Fprintf(&b, " + %d", x.C)
	case x.C < 0:
		fmt.Fprintf(&b, " - %d", -x.C)
	}
	return b.String()
}

// multiple is the text of n * (X / n) for a term that is a multiple of it, where n
// is a power of two: the compiler sees that the last bits are zero.
func (e *emitter) multiple(t kernel.Term) (text string, n int64, ok bool) {
	if r, ok := e.runs[t.Atom]; ok && t.Coef%r.n == 0 {
		return fmt.Sprintf("(%s & -%d)", r.name, r.n), r.n, true
	}
	a := t.Atom
	if _, bound := e.atoms[a]; bound || a.Kind != kernel.Div || a.N&(a.N-1) != 0 || t.Coef%a.N != 0 {
		return "", 0, false
	}
	return fmt.Sprintf("(%s & -%d)", operand(e.index(a.X)), a.N), a.N, true
}

// run is a variable of which an atom counts runs of n, a power of two.
type run struct {
	name string
	n    int64
}

// extent bounds x and every sum on the way to it.
func extent(x kernel.Index) (lo, hi int64) {
	lo, hi = min(x.C, 0), max(x.C, 0)
	for _, t := range x.Terms {
		a, b := t.Coef*t.Atom.Min, t.Coef*t.Atom.Max
		lo, hi = lo+min(a, b, 0), hi+max(a, b, 0)
	}
	return lo, hi
}

func (e *emitter) atom(a *kernel.Atom) string {
	if n, ok := e.atoms[a]; ok {
		return n
	}
	switch a.Kind {
	case kernel.Div:
		return fmt.Sprintf("(%s / %d)", operand(e.index(a.X)), a.N)
	case kernel.Mod:
		return fmt.Sprintf("(%s %% %d)", operand(e.index(a.X)), a.N)
	case kernel.Within:
		return operand(e.index(a.X))
	case kernel.Datum:
		return "dm::i64(" + e.value(a.E) + ")"
	}
	return e.fail("the variable %s is read where it has no value", a.Name)
}

// operand is s as an operand of an operator that binds more tightly than a sum.
func operand(s string) string {
	if !strings.Contains(s, " ") || s[0] == '(' && closes(s) {
		return s
	}
	return "(" + s + ")"
}

// closes reports whether the parenthesis that s begins with ends it.
func closes(s string) bool {
	depth := 0
	for i, c := range s {
		switch c {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return i == len(s)-1
			}
		}
	}
	return false
}
