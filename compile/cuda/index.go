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
		a := e.atom(t.Atom)
		c := t.Coef
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
	return "unbound"
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
