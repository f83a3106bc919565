package raise

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// A term is a value as a formula of one of its elements, in a normal form: what
// programs write in different ways has one term. Sums and products are flat, sorted
// and without neutral elements; quotients, roots and powers are factors with an
// exponent; the numbers of a sum are taken out of it, so that its first term has the
// coefficient 1. Nothing is cancelled: x - x is NaN for an infinite x, and so is its
// term.
type term struct {
	kind termKind
	name string  // of a leaf, a function or a reduction; with what else tells it from others
	num  float64 // of a product its coefficient, of a sum the number in it
	args []*term
	exps []int // of a product: twice the exponent of each factor
	size float64
	// key is the term without its numbers, and nums these in their order: numbers that
	// differ by rounding are the same number (alike).
	key  string
	nums []float64
}

type termKind byte

const (
	leaf termKind = iota
	function
	reduction
	sum
	product
	guard // the second argument where the first holds, NaN elsewhere
)

// maxKey bounds the size of a term.
const maxKey = 4096

func newTerm(kind termKind, name string, num float64, args []*term, exps []int) *term {
	t := &term{kind: kind, name: name, num: num, args: args, exps: exps}
	var b strings.Builder
	b.WriteByte("vfr+*?"[kind])
	b.WriteString(name)
	if kind == sum || kind == product {
		t.nums = append(t.nums, num)
	}
	if len(args) > 0 {
		b.WriteByte('(')
		for i, a := range args {
			if b.Len() > maxKey {
				break
			}
			b.WriteString(a.key)
			if exps != nil {
				b.WriteByte('^')
				b.WriteString(strconv.Itoa(exps[i]))
			}
			b.WriteByte(' ')
			t.nums = append(t.nums, a.nums...)
		}
		b.WriteByte(')')
	}
	t.key = b.String()
	return t
}

// alike reports whether two terms are the same but for a relative difference of
// their numbers.
func alike(a, b *term, slack float64) bool {
	if a == nil || b == nil || a.key != b.key || len(a.key) > maxKey {
		return false
	}
	for i, x := range a.nums {
		y := b.nums[i]
		if x != y && !(math.Abs(x-y) <= slack*math.Min(math.Abs(x), math.Abs(y))) { // so no infinity is like a number
			return false
		}
	}
	return true
}

func number(v float64) *term { return newTerm(product, "", v, nil, nil) }

// isNumber is the number that t is.
func (t *term) isNumber() (float64, bool) { return t.num, t.kind == product && len(t.args) == 0 }

// split is a term as a coefficient and the rest, whose own coefficient is 1.
func (t *term) split() (float64, *term) {
	switch {
	case t.kind != product:
		return 1, t
	case len(t.args) == 1 && t.exps[0] == 2:
		return t.num, t.args[0]
	case t.num == 1:
		return 1, t
	}
	return t.num, newTerm(product, "", 1, t.args, t.exps)
}

// times is t with a coefficient.
func times(v float64, t *term) *term {
	c, rest := t.split()
	c *= v
	switch {
	case c == 1:
		return rest
	case rest.kind == product:
		return newTerm(product, "", c, rest.args, rest.exps)
	}
	return newTerm(product, "", c, []*term{rest}, []int{2})
}

func compareTerms(a, b *term) int {
	if c := strings.Compare(a.key, b.key); c != 0 {
		return c
	}
	return slices.Compare(a.nums, b.nums)
}

// add is the sum of terms.
func add(ts ...*term) *term {
	for i, t := range ts {
		if c, g := t.split(); g.kind == guard { // NaN absorbs what is added
			all := slices.Clone(ts)
			all[i] = times(c, g.args[1])
			return guarded(g.args[0], add(all...))
		}
	}
	num := 0.0
	var parts []*term
	var put func(v float64, t *term)
	put = func(v float64, t *term) {
		c, rest := t.split()
		switch n, is := t.isNumber(); {
		case is:
			num += v * n
		case rest.kind == sum:
			num += v * c * rest.num
			for _, a := range rest.args {
				put(v*c, a)
			}
		default:
			parts = append(parts, times(v, t))
		}
	}
	for _, t := range ts {
		put(1, t)
	}
	slices.SortStableFunc(parts, func(a, b *term) int {
		_, x := a.split()
		_, y := b.split()
		return compareTerms(x, y)
	})
	switch {
	case len(parts) == 0:
		return number(num)
	case len(parts) == 1 && num == 0:
		return parts[0]
	}
	c, _ := parts[0].split()
	if c == 0 {
		c = 1
	}
	for i, p := range parts {
		parts[i] = times(1/c, p)
	}
	return times(c, newTerm(sum, "", num/c, parts, nil))
}

// power is t to the power of half of twice: an integer, or a half of one.
func power(t *term, twice int) *term {
	if twice == 2 {
		return t
	}
	if n, is := t.isNumber(); is {
		return number(math.Pow(n, float64(twice)/2))
	}
	if t.kind != product {
		return newTerm(product, "", 1, []*term{t}, []int{twice})
	}
	if twice%2 == 0 && (twice > 0 || twice == -2) {
		whole := true // √x · √x is not x for a negative x
		exps := make([]int, len(t.exps))
		for i, e := range t.exps {
			whole = whole && (e%2 == 0 || twice == -2)
			exps[i] = e * twice / 2
		}
		if whole {
			return newTerm(product, "", math.Pow(t.num, float64(twice/2)), t.args, exps)
		}
	}
	return newTerm(product, "", 1, []*term{t}, []int{twice})
}

// mul is the product of terms.
func mul(ts ...*term) *term {
	num := 1.0
	type factor struct {
		t   *term
		exp int
	}
	var fs []factor
	for _, t := range ts {
		if t.kind != product {
			fs = append(fs, factor{t, 2})
			continue
		}
		num *= t.num
		for i, a := range t.args {
			fs = append(fs, factor{a, t.exps[i]})
		}
	}
	slices.SortStableFunc(fs, func(a, b factor) int {
		if c := compareTerms(a.t, b.t); c != 0 {
			return c
		}
		return a.exp - b.exp
	})
	var args []*term
	var exps []int
	for _, f := range fs {
		if n := len(args); n > 0 && compareTerms(args[n-1], f.t) == 0 && exps[n-1] > 0 && f.exp > 0 && exps[n-1]%2 == 0 && f.exp%2 == 0 {
			exps[n-1] += f.exp
			continue
		}
		args, exps = append(args, f.t), append(exps, f.exp)
	}
	switch {
	case len(args) == 0:
		return number(num)
	case len(args) == 1 && exps[0] == 2:
		return times(num, args[0])
	}
	if t := expanded(num, args, exps); t != nil {
		return t
	}
	return newTerm(product, "", num, args, exps)
}

// expanded is x^n · (a + b x + …) multiplied out, x being one term; nil for any
// other product.
func expanded(num float64, args []*term, exps []int) *term {
	if len(args) != 2 || len(args[0].args)+len(args[1].args) > 8 {
		return nil
	}
	for i, s := range args {
		x := args[1-i]
		if s.kind != sum || exps[i] != 2 || exps[1-i] <= 0 || exps[1-i]%2 != 0 || x.kind == sum {
			continue
		}
		all := true
		for _, a := range s.args {
			_, rest := a.split()
			all = all && (rest.key == x.key || rest.kind == product && len(rest.args) == 1 && rest.args[0].key == x.key && rest.exps[0] > 0)
		}
		if !all {
			continue
		}
		outer := times(num, power(x, exps[1-i]))
		parts := []*term{times(s.num, outer)}
		if s.num == 0 {
			parts = nil
		}
		for _, a := range s.args {
			parts = append(parts, mul(outer, a))
		}
		return add(parts...)
	}
	return nil
}

// apply is a function of terms.
func apply(name string, args ...*term) *term {
	x := args[0]
	switch name {
	case "erf":
		if c, _ := x.split(); c < 0 {
			return times(-1, apply(name, times(-1, x)))
		}
	case "erfc":
		return add(number(1), times(-1, apply("erf", x)))
	case "tanh": // 2 / (1 + e^(-2x)) - 1, as the logistic function
		return add(number(-1), times(2, power(add(number(1), apply("exp", times(-2, x))), -2)))
	case "abs":
		if x.kind == reduction && strings.HasPrefix(x.name, "add") && x.args[0].kind == function && x.args[0].name == "exp" {
			return x // a sum of exponentials is not negative
		}
	case "max":
		for i, a := range args {
			switch n, is := a.isNumber(); {
			case is && math.IsInf(n, -1), is && n == 0 && args[1-i].isVariance():
				return args[1-i]
			}
		}
		if compareTerms(args[0], args[1]) > 0 {
			args = []*term{args[1], args[0]}
		}
	}
	return newTerm(function, name, 0, args, nil)
}

// guarded is t where cond holds, NaN elsewhere.
func guarded(cond, t *term) *term {
	c, rest := t.split()
	if rest.kind == guard && compareTerms(rest.args[0], cond) < 0 { // of two, in one order
		return times(c, guarded(rest.args[0], guarded(cond, rest.args[1])))
	}
	return times(c, newTerm(guard, "", 0, []*term{cond, rest}, nil))
}

// choose is a select. What is finite of x, 0 in place of infinities, has one term:
// the comparisons differ in NaN alone, which what is computed from x has anyway.
func choose(cond, yes, no *term) *term {
	if cond.kind == function && cond.name == "compare gt" { // of a known size, as a variance has
		x, known := cond.args[0].isNumber()
		y, also := cond.args[1].isNumber()
		if known && also && x > y {
			return yes
		}
	}
	if n, is := no.isNumber(); is && math.IsNaN(n) {
		return guarded(cond, yes)
	}
	for _, c := range []struct {
		name    string
		yes, no *term
	}{{"compare lt", yes, no}, {"compare ne", yes, no}, {"compare eq", no, yes}} {
		if cond.kind != function || cond.name != c.name {
			continue
		}
		of, limit := cond.args[0], cond.args[1]
		if _, is := of.isNumber(); is && c.name != "compare lt" {
			of, limit = limit, of
		}
		inf, isInf := limit.isNumber()
		zero, isZero := c.no.isNumber()
		if isInf && math.IsInf(inf, 1) && isZero && zero == 0 && of.kind == function && of.name == "abs" && compareTerms(of.args[0], c.yes) == 0 {
			return newTerm(function, "finite", 0, []*term{c.yes}, nil)
		}
	}
	return newTerm(function, "select", 0, []*term{cond, yes, no}, nil)
}

// reduced is t reduced over axes of size elements. Numbers are taken out of sums. The
// sum of squared differences from the mean is Σ x² - (Σ x)² / n, as some write it.
func reduced(kind, axes string, size float64, t *term) *term {
	if kind != "add" {
		r := newTerm(reduction, kind+axes, 0, []*term{t}, nil)
		r.size = size
		return r
	}
	c, rest := t.split()
	if rest.kind == product && len(rest.args) == 1 && rest.exps[0] == 4 && size > 0 {
		if d := rest.args[0]; d.kind == sum && d.num == 0 && len(d.args) == 2 {
			for i, x := range d.args {
				a, p := x.split()
				b, mean := d.args[1-i].split()
				if p.kind != sum && mean.key == reduced(kind, axes, size, p).key && math.Abs(b*size/a+1) < 1e-5 {
					total := reduced(kind, axes, size, p)
					return times(c*a*a, add(reduced(kind, axes, size, power(p, 4)), times(-1/size, power(total, 4))))
				}
			}
		}
	}
	r := newTerm(reduction, kind+axes, 0, []*term{rest}, nil)
	r.size = size
	return times(c, r)
}

// isVariance reports whether t is a multiple of Σ x² - (Σ x)² / n.
func (t *term) isVariance() bool {
	c, s := t.split()
	if s.kind != sum || s.num != 0 || len(s.args) != 2 {
		return false
	}
	for i, x := range s.args {
		a, squares := x.split()
		b, total := s.args[1-i].split()
		if squares.kind != reduction || total.kind != product || len(total.args) != 1 || total.exps[0] != 4 || c*a < 0 {
			continue
		}
		if p := squares.args[0]; p.kind == product && len(p.args) == 1 && p.exps[0] == 4 && math.Abs(b*squares.size/a+1) < 1e-5 &&
			newTerm(reduction, squares.name, 0, []*term{p.args[0]}, nil).key == total.args[0].key {
			return true
		}
	}
	return false
}
