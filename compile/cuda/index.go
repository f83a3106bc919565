package cuda

import (
	"math"
	"math/bits"
	"slices"
	"strings"

	"dmir/compile/kernel"
)

// index is the C++ expression for x, of 32 bits where these suffice.
func (e *emitter) index(x kernel.Index) code {
	if n, ok := x.IsConst(); ok {
		return cpp("%d", n)
	}
	lo, hi := extent(x)
	wide := lo < math.MinInt32 || hi > math.MaxInt32
	var format strings.Builder
	var args []any
	for i, t := range x.Terms {
		a, c := e.atom(t.Atom), t.Coef
		if base, n, ok := e.multiple(t); ok {
			a, c = base, c/n
		}
		switch {
		case i > 0 && c < 0:
			format.WriteString(" - ")
			c = -c
		case i > 0:
			format.WriteString(" + ")
		case c == -1:
			format.WriteString("-")
			c = 1
		}
		if wide {
			a = cpp("dm::i64(%s)", a)
		}
		format.WriteString("%s")
		args = append(args, a)
		if c != 1 {
			format.WriteString(" * %d")
			args = append(args, c)
		}
	}
	switch {
	case x.C > 0:
		format.WriteString(" + %d")
		args = append(args, x.C)
	case x.C < 0:
		format.WriteString(" - %d")
		args = append(args, -x.C)
	}
	return code{format.String(), args}
}

// factor is x as an operand of an operator that binds more tightly than a sum.
func (e *emitter) factor(x kernel.Index) code {
	c := e.index(x)
	if _, ok := x.IsConst(); ok || len(x.Terms) == 1 && x.C == 0 && (c.format == "%s" || c.format == "-%s") {
		return c
	}
	return cpp("(%s)", c)
}

// multiple is n * (X / n) for a term that is a multiple of it, where n is a
// power of two: the compiler can tell that the low bits are zero.
func (e *emitter) multiple(t kernel.Term) (c code, n int64, ok bool) {
	if r, ok := e.runs[t.Atom]; ok && t.Coef%r.n == 0 {
		return cpp("(%s & -%d)", r.name, r.n), r.n, true
	}
	a := t.Atom
	if _, bound := e.atoms[a]; bound || a.Kind != kernel.Div || a.N&(a.N-1) != 0 || t.Coef%a.N != 0 {
		return code{}, 0, false
	}
	return cpp("(%s & -%d)", e.factor(a.X), a.N), a.N, true
}

// run is a variable that counts vectors of n, a power of two.
type run struct {
	name ident
	n    int64
}

// extent bounds x and all its partial sums.
func extent(x kernel.Index) (lo, hi int64) {
	lo, hi = min(x.C, 0), max(x.C, 0)
	for _, t := range x.Terms {
		a, b := t.Coef*t.Atom.Min, t.Coef*t.Atom.Max
		lo, hi = lo+min(a, b, 0), hi+max(a, b, 0)
	}
	return lo, hi
}

func (e *emitter) atom(a *kernel.Atom) code {
	if c, ok := e.atoms[a]; ok {
		return c
	}
	switch a.Kind {
	case kernel.Div:
		return cpp("(%s / %d)", e.factor(a.X), a.N)
	case kernel.Mod:
		return cpp("(%s %% %d)", e.factor(a.X), a.N)
	case kernel.Within:
		return e.factor(a.X)
	case kernel.Datum:
		return cpp("dm::i64(%s)", e.value(a.E))
	case kernel.Table:
		return e.entry(a)
	}
	return e.fail("the variable %s is read where it has no value", a.Name)
}

// entry is an entry of a table, whose values lie side by side in numbers of 64 bits.
func (e *emitter) entry(a *kernel.Atom) code {
	x := e.factor(a.X)
	width := bits.Len64(uint64(a.Max))
	each := 64 / width
	var words []code
	for from := range slices.Chunk(a.Values, each) {
		word := uint64(0)
		for i, v := range from {
			word |= uint64(v) << (i * width)
		}
		words = append(words, cpp("0x%xull", word))
	}
	n := len(words) - 1
	word, at := words[n], x
	for i := n - 1; i >= 0; i-- {
		word = cpp("%s < %d ? %s : %s", x, (i+1)*each, words[i], word)
	}
	if n > 0 {
		word, at = cpp("(%s)", word), cpp("%s %% %d", x, each)
	}
	return cpp("dm::i32(%s >> %s * %d & %d)", word, at, width, 1<<width-1)
}
