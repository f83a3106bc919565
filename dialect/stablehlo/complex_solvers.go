package stablehlo

import (
	"slices"
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// The factorizations and solutions of solvers.go for complex matrices, whose transposes are
// conjugated.

func complexSolvers() map[string]conversion {
	return map[string]conversion{"cholesky": complexCholesky, "triangular_solve": complexTriangularSolve, "custom_call": complexCustom}
}

// complexLapack are the routines that JAX calls on a processor, by their names without the
// letter of the type.
var complexLapack = map[string]conversion{"potrf": complexPotrf, "trsm": complexTrsm, "getrf": complexGetrf, "geqrf": complexGeqrf, "ungqr": complexUngqr}

// complexCustom calls a routine.
func complexCustom(n *node) []*ir.Value {
	target := n.callee()
	name, ok := strings.CutPrefix(strings.TrimSuffix(target, "_ffi"), "lapack_")
	f := complexLapack[strings.TrimLeft(name, "cz")]
	n.must(ok && f != nil, Unsupported, "the custom call of %s of complex numbers is not supported", target)
	n.name = target
	return f(n)
}

// each is f of both parts.
func (z complexNumber) each(f func(v *ir.Value) *ir.Value) complexNumber {
	return complexNumber{f(z.re), f(z.im)}
}

func (n *node) minus(x, y complexNumber) complexNumber {
	return complexNumber{n.binary("sub", x.re, y.re), n.binary("sub", x.im, y.im)}
}

// chosen is x where p is true, otherwise y.
func (n *node) chosen(p *ir.Value, x, y complexNumber) complexNumber {
	return complexNumber{n.choose(p, x.re, y.re), n.choose(p, x.im, y.im)}
}

// contraction is the einsum of complex numbers.
func (n *node) contraction(equation string, x, y complexNumber) complexNumber {
	f := func(a, b *ir.Value) *ir.Value {
		return n.op("einsum", []*ir.Value{a, b}, named("equation", types.Str(equation)))
	}
	return complexNumber{n.binary("sub", f(x.re, y.re), f(x.im, y.im)), n.binary("add", f(x.re, y.im), f(x.im, y.re))}
}

// complexMatrices is matrices of both parts of x.
func (n *node) complexMatrices(x *ir.Value) (z complexNumber, batch []int, rows, columns int) {
	v := n.complexOf(x)
	z.re, batch, rows, columns = n.matrices(v.re)
	z.im, _, _, _ = n.matrices(v.im)
	return z, batch, rows, columns
}

// likeComplex gives z, computed from matrices, the dimensions in front of the operands.
func (n *node) likeComplex(z complexNumber, batch []int) *ir.Value {
	return n.complexValue(z.each(func(v *ir.Value) *ir.Value { return n.like(v, batch, v.Elem()) }))
}

// adjoint is the conjugated transpose.
func (n *node) adjoint(z complexNumber) complexNumber {
	return conjugate(n, z.each(func(v *ir.Value) *ir.Value { return n.transpose(v, []int{0, 2, 1}) }))
}

// zeros are as many numbers as z has.
func (n *node) zeros(shape []int, e types.Elem) complexNumber {
	return complexNumber{n.filled(e, 0, shape...), n.filled(e, 0, shape...)}
}

// scanned is scan with one complex value, and others behind it.
func (n *node) scanned(z complexNumber, others []*ir.Value, over *ir.Value, step func(z complexNumber, others []*ir.Value, k *ir.Value) (complexNumber, []*ir.Value)) (complexNumber, []*ir.Value) {
	out := n.scan(nil, append([]*ir.Value{z.re, z.im}, others...), []*ir.Value{over}, func(now, next []*ir.Value) []*ir.Value {
		z, others := step(complexNumber{now[0], now[1]}, now[2:], next[0])
		return append([]*ir.Value{z.re, z.im}, others...)
	})
	return complexNumber{out[0], out[1]}, out[2:]
}

func complexCholesky(n *node) []*ir.Value {
	n.takes(1)
	z, batch := n.complexCholeskyOf(n.in[0], n.flag("lower"))
	return []*ir.Value{n.likeComplex(z, batch)}
}

func (n *node) complexCholeskyOf(x *ir.Value, lower bool) (complexNumber, []int) {
	a, batch, size, columns := n.complexMatrices(x)
	n.must(size == columns, "DM142", "%s takes square matrices, not a %s", n.name, x.Type)
	if !lower {
		a = n.adjoint(a)
	}
	e := a.re.Elem()
	zero := complexNumber{n.fill(e, 0), n.fill(e, 0)}
	l := n.zeros(n.shape(a.re), e)
	_, ls := n.scanned(a, []*ir.Value{l.re, l.im}, n.numbersBelow(size), func(a complexNumber, ls []*ir.Value, k *ir.Value) (complexNumber, []*ir.Value) {
		at := n.numbersBelow(size)
		column := a.each(func(v *ir.Value) *ir.Value { return n.column(v, k) })
		root := n.reshape(n.unary("sqrt", n.row(column.re, k)), n.shape(column.re)[0], 1)
		column = n.chosen(n.compare("ge", at, k), column.each(func(v *ir.Value) *ir.Value { return n.binary("div", v, root) }), zero)
		column.im = n.choose(n.compare("eq", at, k), zero.im, column.im) // the diagonal is real
		up := column.each(n.upright)
		rest := n.minus(a, n.times(up, conjugate(n, column.each(n.level))))
		here := n.chosen(n.compare("eq", at, k), up, complexNumber{ls[0], ls[1]})
		return rest, []*ir.Value{here.re, here.im}
	})
	l = complexNumber{ls[0], ls[1]}
	if !lower {
		l = n.adjoint(l)
	}
	return l, batch
}

func complexPotrf(n *node) []*ir.Value {
	n.takes(1)
	lower := n.letter("uplo") == 'L'
	z, batch := n.complexCholeskyOf(n.in[0], lower)
	size := n.shape(z.re)[1]
	same := n.triangle(either(lower, "ge", "le"), size, size)
	bad := n.reduced("max", n.convert(n.compare("ne", z.re, z.re), types.I32), []int{1, 2})
	old, _, _, _ := n.complexMatrices(n.in[0])
	return []*ir.Value{n.likeComplex(n.chosen(same, z, old), batch), n.reshape(bad, batch...)}
}

func complexTriangularSolve(n *node) []*ir.Value {
	n.takes(2)
	how := n.keyword("transpose_a")
	return []*ir.Value{n.complexSolved(n.flag("left_side"), n.flag("lower"), n.flag("unit_diagonal"), how == "TRANSPOSE" || how == "ADJOINT", how == "ADJOINT")}
}

func complexTrsm(n *node) []*ir.Value {
	n.takes(2)
	how := n.letter("trans_x")
	return []*ir.Value{n.complexSolved(n.letter("side") == 'L', n.letter("uplo") == 'L', n.letter("diag") == 'U', how != 'N', how == 'C')}
}

// complexSolved is solved for complex matrices, the first one conjugated or not.
func (n *node) complexSolved(left, lower, unit, transposed, conjugated bool) *ir.Value {
	ma, mb := n.in[0], n.in[1]
	a, batch, size, columns := n.complexMatrices(ma)
	b, batchB, rows, width := n.complexMatrices(mb)
	n.must(size == columns && slices.Equal(batch, batchB) && size == either(left, rows, width), "DM142", "%s: %s and %s do not fit together", n.name, ma.Type, mb.Type)
	turn := func(v *ir.Value) *ir.Value { return n.transpose(v, []int{0, 2, 1}) }
	if conjugated {
		a = conjugate(n, a)
	}
	if !left {
		b = b.each(turn)
	}
	if transposed == left {
		a, lower = a.each(turn), !lower
	}
	order, known := n.numbersBelow(size), "lt"
	if !lower {
		order, known = n.backward(order), "gt"
	}
	e := a.re.Elem()
	zero := complexNumber{n.fill(e, 0), n.fill(e, 0)}
	x, _ := n.scanned(n.zeros(n.shape(b.re), e), nil, order, func(x complexNumber, _ []*ir.Value, k *ir.Value) (complexNumber, []*ir.Value) {
		at := n.numbersBelow(size)
		pick := func(v *ir.Value) *ir.Value { return n.row(v, k) }
		row := a.each(pick)
		y := n.minus(b.each(pick), n.contraction("bn,bnm->bm", n.chosen(n.compare(known, at, k), row, zero), x))
		if !unit {
			y = n.over(y, row.each(func(v *ir.Value) *ir.Value { return n.reshape(n.row(v, k), n.shape(v)[0], 1) }))
		}
		return n.chosen(n.reshape(n.compare("eq", at, k), size, 1), y.each(n.level), x), nil
	})
	if !left {
		x = x.each(turn)
	}
	return n.likeComplex(x, batch)
}

// complexGetrf is getrf; the pivot is the element with the largest |re| + |im|.
func complexGetrf(n *node) []*ir.Value {
	n.takes(1)
	a, batch, rows, columns := n.complexMatrices(n.in[0])
	e := a.re.Elem()
	steps, count := min(rows, columns), n.shape(a.re)[0]
	zero, one := complexNumber{n.fill(e, 0), n.fill(e, 0)}, complexNumber{n.fill(e, 1), n.fill(e, 0)}
	a, rest := n.scanned(a, []*ir.Value{n.trailing(n.whole(types.I64, 0), []int{count, steps})}, n.numbersBelow(steps), func(a complexNumber, pivots []*ir.Value, k *ir.Value) (complexNumber, []*ir.Value) {
		at := n.numbersBelow(rows)
		column := a.each(func(v *ir.Value) *ir.Value { return n.column(v, k) })
		size := n.binary("add", n.unary("abs", column.re), n.unary("abs", column.im))
		size = n.choose(n.compare("ge", at, k), size, n.fill(e, -1))
		pivot := n.make("argmax", []*ir.Value{size}, []types.Named{intAttr("dim", 1)}, tensorOf(types.I64, count)).Results[0]
		exchanged := n.compare("eq", at, n.reshape(pivot, count, 1))
		mask := n.convert(exchanged, e)
		low := a.each(func(v *ir.Value) *ir.Value {
			return n.op("einsum", []*ir.Value{mask, v}, named("equation", types.Str("br,brc->bc")))
		})
		high := a.each(func(v *ir.Value) *ir.Value { return n.row(v, k) })
		a = n.chosen(n.upright(exchanged), high.each(n.level), a)
		a = n.chosen(n.reshape(n.compare("eq", at, k), rows, 1), low.each(n.level), a)
		column = a.each(func(v *ir.Value) *ir.Value { return n.column(v, k) })
		top := column.each(func(v *ir.Value) *ir.Value { return n.reshape(n.row(v, k), count, 1) })
		none := n.binary("and", n.compare("eq", top.re, zero.re), n.compare("eq", top.im, zero.im))
		factor := n.chosen(n.compare("gt", at, k), n.over(column, n.chosen(none, one, top)), zero)
		right := n.compare("gt", n.numbersBelow(columns), k)
		row := n.chosen(right, a.each(func(v *ir.Value) *ir.Value { return n.level(n.row(v, k)) }), zero)
		up := factor.each(n.upright)
		below := n.binary("and", n.reshape(n.compare("gt", at, k), rows, 1), n.compare("eq", n.numbersBelow(columns), k))
		next := n.chosen(below, up, n.minus(a, n.times(up, row)))
		return next, []*ir.Value{n.choose(n.compare("eq", n.numbersBelow(steps), k), n.reshape(pivot, count, 1), pivots[0])}
	})
	pivots := n.convert(n.binary("add", rest[0], n.whole(types.I64, 1)), types.I32)
	return []*ir.Value{n.likeComplex(a, batch), n.reshape(pivots, append(slices.Clone(batch), steps)...), n.succeeded(batch)}
}

// complexGeqrf makes a matrix triangular by reflections I - τ v vᴴ, adjoint, so that the
// diagonal of R is real.
func complexGeqrf(n *node) []*ir.Value {
	n.takes(1)
	a, batch, rows, columns := n.complexMatrices(n.in[0])
	e := a.re.Elem()
	steps, count := min(rows, columns), n.shape(a.re)[0]
	zero, one := complexNumber{n.fill(e, 0), n.fill(e, 0)}, complexNumber{n.fill(e, 1), n.fill(e, 0)}
	square := func(v *ir.Value) *ir.Value { return n.binary("mul", v, v) }
	empty := n.zeros([]int{count, steps}, e)
	a, taus := n.scanned(a, []*ir.Value{empty.re, empty.im}, n.numbersBelow(steps), func(a complexNumber, taus []*ir.Value, k *ir.Value) (complexNumber, []*ir.Value) {
		at := n.numbersBelow(rows)
		column := a.each(func(v *ir.Value) *ir.Value { return n.column(v, k) })
		alpha := column.each(func(v *ir.Value) *ir.Value { return n.row(v, k) })
		below := n.compare("gt", at, k)
		tail := n.chosen(below, column, zero)
		rest := n.binary("add", n.reduced("add", n.binary("add", square(tail.re), square(tail.im)), []int{1}), square(alpha.im))
		norm := n.unary("sqrt", n.binary("add", square(alpha.re), rest))
		none := n.compare("eq", rest, zero.re)
		beta := n.choose(none, alpha.re, n.choose(n.compare("ge", alpha.re, zero.re), n.unary("neg", norm), norm))
		by := n.choose(none, one.re, beta)
		tau := n.chosen(none, zero, complexNumber{n.binary("div", n.binary("sub", beta, alpha.re), by), n.binary("div", n.unary("neg", alpha.im), by)})
		scale := n.chosen(none, one, complexNumber{n.binary("sub", alpha.re, beta), alpha.im})
		v := n.over(tail, scale.each(func(v *ir.Value) *ir.Value { return n.reshape(v, count, 1) }))
		v = n.chosen(n.compare("eq", at, k), one, v)
		reflected := n.complexReflect(a, v, conjugate(n, tau))
		here := n.compare("eq", n.numbersBelow(columns), k)
		packed := n.chosen(below, v, n.chosen(n.compare("eq", at, k), complexNumber{n.reshape(beta, count, 1), zero.im}, column))
		next := n.chosen(n.compare("gt", n.numbersBelow(columns), k), reflected, n.chosen(here, packed.each(n.upright), a))
		all := n.chosen(n.compare("eq", n.numbersBelow(steps), k), tau.each(func(v *ir.Value) *ir.Value { return n.reshape(v, count, 1) }), complexNumber{taus[0], taus[1]})
		return next, []*ir.Value{all.re, all.im}
	})
	tau := complexNumber{taus[0], taus[1]}.each(func(v *ir.Value) *ir.Value { return n.reshape(v, append(slices.Clone(batch), steps)...) })
	return []*ir.Value{n.likeComplex(a, batch), n.complexValue(tau)}
}

// complexReflect is (I - τ v vᴴ) a.
func (n *node) complexReflect(a, v, tau complexNumber) complexNumber {
	product := n.contraction("br,brc->bc", conjugate(n, v), a)
	product = n.times(product, tau.each(func(v *ir.Value) *ir.Value { return n.reshape(v, n.shape(v)[0], 1) }))
	return n.minus(a, n.times(v.each(n.upright), product.each(n.level)))
}

// complexUngqr is the first columns of the product of geqrf's reflections.
func complexUngqr(n *node) []*ir.Value {
	n.takes(2)
	a, batch, rows, columns := n.complexMatrices(n.in[0])
	e := a.re.Elem()
	tau := n.complexOf(n.in[1])
	steps, count := n.shape(tau.re)[len(batch)], n.shape(a.re)[0]
	tau = tau.each(func(v *ir.Value) *ir.Value { return n.reshape(v, count, steps) })
	zero, one := complexNumber{n.fill(e, 0), n.fill(e, 0)}, complexNumber{n.fill(e, 1), n.fill(e, 0)}
	unit := n.zeros([]int{count, rows, columns}, e)
	unit.re = n.trailing(n.convert(n.triangle("eq", rows, columns), e), []int{count, rows, columns})
	q, _ := n.scanned(unit, nil, n.backward(n.numbersBelow(steps)), func(q complexNumber, _ []*ir.Value, k *ir.Value) (complexNumber, []*ir.Value) {
		at := n.numbersBelow(rows)
		column := a.each(func(v *ir.Value) *ir.Value { return n.column(v, k) })
		v := n.chosen(n.compare("gt", at, k), column, n.chosen(n.compare("eq", at, k), one, zero))
		return n.complexReflect(q, v, tau.each(func(v *ir.Value) *ir.Value { return n.row(v, k) })), nil
	})
	return []*ir.Value{n.likeComplex(q, batch)}
}
