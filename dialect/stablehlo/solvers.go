package stablehlo

import (
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/syntax/ast"
)

// Factorizations of matrices and solutions of triangular systems are written out as loops over the
// columns or rows, each step of which updates whole matrices: n³ work in n steps, on every device,
// with a gradient. Matrices have one dimension in front, which numbers them.

func solvers() map[string]conversion {
	return map[string]conversion{"cholesky": cholesky, "triangular_solve": triangularSolve}
}

// lapack are the routines that JAX calls on a processor, by their names without the letter of the type.
var lapack = map[string]conversion{
	"potrf": potrf, "trsm": trsm, "getrf": getrf, "geqrf": geqrf, "orgqr": orgqr, "syevd": syevd, "gesdd": gesdd, "gtsv": gtsv,
}

// lapackCalls are the custom calls of the routines, and what JAX calls on other devices in place of them.
func lapackCalls() map[string]conversion {
	m := map[string]conversion{
		"cusolver_potrf_ffi": potrf, "cusolver_getrf_ffi": getrf, "cusolver_geqrf_ffi": geqrf, "cusolver_orgqr_ffi": orgqr,
		"cusolver_syevd_ffi": syevd, "cusolver_gesvdj_ffi": gesdd, "cusparse_gtsv2_ffi": gtsv, "cu_lu_pivots_to_permutation": pivotsToPermutation,
		"Qr": geqrf, "ProductOfElementaryHouseholderReflectors": orgqr, "Eigh": syevd, "LuDecomposition": luDecomposition,
	}
	for name, f := range lapack {
		m["lapack_s"+name+"_ffi"], m["lapack_d"+name+"_ffi"] = f, f
	}
	return m
}

// matrices is x, whose elements are computed with as f32 or f64, with one dimension in front of its
// rows and columns.
func (n *node) matrices(x *ir.Value) (y *ir.Value, batch []int, rows, columns int) {
	shape, e := n.shape(x), x.Elem()
	n.must(len(shape) >= 2, "DM142", "%s takes matrices, not a %s", n.name, x.Type)
	n.must(e.IsFloat(), "DM142", "%s takes floating-point numbers, not %s", n.name, e)
	k := len(shape) - 2
	n.must(product(shape) > 0, Unsupported, "%s of matrices without elements is not supported", n.name)
	return n.convert(n.reshape(x, product(shape[:k]), shape[k], shape[k+1]), wideFloat(e)), shape[:k], shape[k], shape[k+1]
}

// like gives y, computed from matrices, the dimensions in front and the elements of the operands.
func (n *node) like(y *ir.Value, batch []int, e types.Elem) *ir.Value {
	return n.reshape(n.convert(y, e), append(slices.Clone(batch), n.shape(y)[1:]...)...)
}

// column is x[:, :, k], and row is x[:, k]: a row of each matrix, or an element of each vector.
func (n *node) column(x, k *ir.Value) *ir.Value { return n.gather(x, k, 2, 0) }
func (n *node) row(x, k *ir.Value) *ir.Value    { return n.gather(x, k, 1, 0) }

// upright and level give vectors the form of a matrix of one column, or of one row.
func (n *node) upright(v *ir.Value) *ir.Value {
	s := n.shape(v)
	return n.reshape(v, s[0], s[1], 1)
}

func (n *node) level(v *ir.Value) *ir.Value {
	s := n.shape(v)
	return n.reshape(v, s[0], 1, s[1])
}

// numbersBelow are 0, 1, … below size.
func (n *node) numbersBelow(size int) *ir.Value { return n.stepped(types.I64, size, 1) }

// filled is a tensor of one number.
func (n *node) filled(e types.Elem, v float64, shape ...int) *ir.Value {
	return n.trailing(n.fill(e, v), shape)
}

// triangle is whether an element of a matrix lies on the diagonal or on the side that direction says
// of it: "ge" below, "le" above, "gt" and "lt" without the diagonal.
func (n *node) triangle(direction string, rows, columns int) *ir.Value {
	return n.compare(direction, n.reshape(n.numbersBelow(rows), rows, 1), n.reshape(n.numbersBelow(columns), 1, columns))
}

func cholesky(n *node) []*ir.Value {
	n.takes(1)
	lower := n.flag("lower")
	y, batch := n.choleskyOf(n.in[0], lower)
	return []*ir.Value{n.like(y, batch, n.in[0].Elem())}
}

// choleskyOf is L, or its transpose, with L Lᵀ = x; it is NaN where x is not positive definite.
func (n *node) choleskyOf(x *ir.Value, lower bool) (l *ir.Value, batch []int) {
	a, batch, size, columns := n.matrices(x)
	n.must(size == columns, "DM142", "%s takes square matrices, not a %s", n.name, x.Type)
	if !lower {
		a = n.transpose(a, []int{0, 2, 1})
	}
	zero := n.fill(a.Elem(), 0)
	l = n.scan(nil, []*ir.Value{a, n.filled(a.Elem(), 0, n.shape(a)...)}, []*ir.Value{n.numbersBelow(size)}, func(now, next []*ir.Value) []*ir.Value {
		k, at := next[0], n.numbersBelow(size)
		column := n.column(now[0], k)
		root := n.reshape(n.unary("sqrt", n.row(column, k)), n.shape(column)[0], 1)
		column = n.choose(n.compare("ge", at, k), n.binary("div", column, root), zero)
		rest := n.binary("sub", now[0], n.binary("mul", n.upright(column), n.level(column)))
		return []*ir.Value{rest, n.choose(n.compare("eq", at, k), n.upright(column), now[1])}
	})[1]
	if !lower {
		l = n.transpose(l, []int{0, 2, 1})
	}
	return l, batch
}

func triangularSolve(n *node) []*ir.Value {
	n.takes(2)
	transposed := n.keyword("transpose_a")
	return []*ir.Value{n.solved(n.in[0], n.in[1], n.flag("left_side"), n.flag("lower"), n.flag("unit_diagonal"), transposed == "TRANSPOSE" || transposed == "ADJOINT")}
}

// solved is x with a x = b, or with x a = b, for the triangle a of a matrix, or its transpose.
func (n *node) solved(ma, mb *ir.Value, left, lower, unit, transposed bool) *ir.Value {
	a, batch, size, columns := n.matrices(ma)
	b, batchB, rows, width := n.matrices(mb)
	n.must(size == columns && slices.Equal(batch, batchB) && size == either(left, rows, width), "DM142", "%s: %s and %s do not fit together", n.name, ma.Type, mb.Type)
	if !left { // x a = b is aᵀ xᵀ = bᵀ
		b = n.transpose(b, []int{0, 2, 1})
	}
	if transposed == left {
		a, lower = n.transpose(a, []int{0, 2, 1}), !lower
	}
	order := n.numbersBelow(size)
	known := "lt"
	if !lower {
		order, known = n.backward(order), "gt"
	}
	zero := n.fill(a.Elem(), 0)
	x := n.scan(nil, []*ir.Value{n.filled(b.Elem(), 0, n.shape(b)...)}, []*ir.Value{order}, func(now, next []*ir.Value) []*ir.Value {
		k, at := next[0], n.numbersBelow(size)
		row := n.row(a, k)
		sum := n.op("einsum", []*ir.Value{n.choose(n.compare(known, at, k), row, zero), now[0]}, named("equation", types.Str("bn,bnm->bm")))
		y := n.binary("sub", n.row(b, k), sum)
		if !unit {
			y = n.binary("div", y, n.reshape(n.row(row, k), n.shape(row)[0], 1))
		}
		return []*ir.Value{n.choose(n.reshape(n.compare("eq", at, k), size, 1), n.level(y), now[0])}
	})[0]
	if !left {
		x = n.transpose(x, []int{0, 2, 1})
	}
	return n.like(x, batch, mb.Elem())
}

// setting is an option of a routine, nil where it is absent.
func (n *node) setting(name string) *ast.AttrExpr { return n.attrs["mhlo.backend_config"].x.Get(name) }

// letter is an option of a routine, the number of a letter.
func (n *node) letter(name string) byte {
	x := n.setting(name)
	n.must(x != nil, "DM141", "%s needs %s in its mhlo.backend_config", n.name, name)
	return byte(x.Int)
}

// succeeded is the last result of a routine: 0 for each matrix.
func (n *node) succeeded(batch []int) *ir.Value { return n.trailing(n.whole(types.I32, 0), batch) }

// potrf leaves the other triangle as it is. Where the matrix is not positive definite, LAPACK says the first
// column of which that is true; this is 1.
func potrf(n *node) []*ir.Value {
	n.takes(1)
	x, lower := n.in[0], n.lower()
	y, batch := n.choleskyOf(x, lower)
	size := n.shape(y)[1]
	same := n.triangle(either(lower, "ge", "le"), size, size)
	bad := n.reduced("max", n.convert(n.compare("ne", y, y), types.I32), []int{1, 2})
	old, _, _, _ := n.matrices(x)
	return []*ir.Value{n.like(n.choose(same, y, old), batch, x.Elem()), n.reshape(bad, batch...)}
}

// lower is whether a routine reads the lower triangle: cuSOLVER's say so, LAPACK's name it by a letter.
func (n *node) lower() bool {
	if x := n.setting("lower"); x != nil {
		return x.Bool
	}
	return n.letter("uplo") == 'L'
}

func trsm(n *node) []*ir.Value {
	n.takes(2)
	return []*ir.Value{n.solved(n.in[0], n.in[1], n.letter("side") == 'L', n.letter("uplo") == 'L', n.letter("diag") == 'U', n.letter("trans_x") != 'N')}
}

// getrf is Gauss' elimination with the largest element of a column as its pivot: L without its diagonal
// and U in one matrix, and the rows, counted from 1, that each row was exchanged with.
func getrf(n *node) []*ir.Value {
	n.takes(1)
	a, batch, rows, columns := n.matrices(n.in[0])
	steps, count := min(rows, columns), n.shape(a)[0]
	zero := n.fill(a.Elem(), 0)
	done := n.scan(nil, []*ir.Value{a, n.trailing(n.whole(types.I64, 0), []int{count, steps})}, []*ir.Value{n.numbersBelow(steps)}, func(now, next []*ir.Value) []*ir.Value {
		a, k, at := now[0], next[0], n.numbersBelow(rows)
		column := n.column(a, k)
		size := n.choose(n.compare("ge", at, k), n.unary("abs", column), n.fill(a.Elem(), -1))
		pivot := n.make("argmax", []*ir.Value{size}, []types.Named{intAttr("dim", 1)}, tensorOf(types.I64, count)).Results[0]
		chosen := n.compare("eq", at, n.reshape(pivot, count, 1)) // count × rows
		one := n.convert(chosen, a.Elem())
		low := n.op("einsum", []*ir.Value{one, a}, named("equation", types.Str("br,brc->bc")))
		high := n.row(a, k)
		is := n.compare("eq", at, k)
		a = n.choose(n.upright(chosen), n.level(high), a)
		a = n.choose(n.reshape(is, rows, 1), n.level(low), a)
		column = n.column(a, k)
		top := n.row(column, k)
		factor := n.choose(n.compare("gt", at, k), n.binary("div", column, n.reshape(n.choose(n.compare("eq", top, zero), n.fill(a.Elem(), 1), top), count, 1)), zero)
		right := n.compare("gt", n.numbersBelow(columns), k)
		rest := n.binary("sub", a, n.binary("mul", n.upright(factor), n.choose(right, n.level(n.row(a, k)), zero)))
		below := n.binary("and", n.reshape(n.compare("gt", at, k), rows, 1), n.compare("eq", n.numbersBelow(columns), k))
		pivots := n.choose(n.compare("eq", n.numbersBelow(steps), k), n.reshape(pivot, count, 1), now[1])
		return []*ir.Value{n.choose(below, n.upright(factor), rest), pivots}
	})
	pivots := n.convert(n.binary("add", done[1], n.whole(types.I64, 1)), types.I32)
	return []*ir.Value{n.like(done[0], batch, n.in[0].Elem()), n.reshape(pivots, append(slices.Clone(batch), steps)...), n.succeeded(batch)}
}

// geqrf makes a matrix triangular by reflections I - τ v vᵀ: R with the vectors below its diagonal, and
// the numbers τ.
func geqrf(n *node) []*ir.Value {
	n.takes(1)
	a, batch, rows, columns := n.matrices(n.in[0])
	packed, taus := n.reflections(a)
	return []*ir.Value{n.like(packed, batch, n.in[0].Elem()), n.reshape(n.convert(taus, n.in[0].Elem()), append(slices.Clone(batch), min(rows, columns))...)}
}

// reflections are R, with the vectors of the reflections below its diagonal, and their numbers τ.
func (n *node) reflections(a *ir.Value) (packed, taus *ir.Value) {
	shape, e := n.shape(a), a.Elem()
	count, rows, columns := shape[0], shape[1], shape[2]
	steps := min(rows, columns)
	zero, one := n.fill(e, 0), n.fill(e, 1)
	done := n.scan(nil, []*ir.Value{a, n.filled(e, 0, count, steps)}, []*ir.Value{n.numbersBelow(steps)}, func(now, next []*ir.Value) []*ir.Value {
		a, k, at := now[0], next[0], n.numbersBelow(rows)
		column := n.column(a, k)
		alpha := n.row(column, k)
		below := n.compare("gt", at, k)
		tail := n.choose(below, column, zero)
		rest := n.reduced("add", n.binary("mul", tail, tail), []int{1})
		norm := n.unary("sqrt", n.binary("add", n.binary("mul", alpha, alpha), rest))
		beta := n.choose(n.compare("ge", alpha, zero), n.unary("neg", norm), norm)
		none := n.compare("eq", rest, zero)
		beta = n.choose(none, alpha, beta)
		tau := n.choose(none, zero, n.binary("div", n.binary("sub", beta, alpha), n.choose(none, one, beta)))
		scale := n.choose(none, one, n.binary("sub", alpha, beta))
		v := n.choose(n.compare("eq", at, k), one, n.binary("div", tail, n.reshape(scale, count, 1)))
		reflected := n.reflect(a, v, tau)
		right := n.compare("gt", n.numbersBelow(columns), k)
		here := n.compare("eq", n.numbersBelow(columns), k)
		packed := n.choose(below, v, n.choose(n.compare("eq", at, k), n.reshape(beta, count, 1), column))
		next0 := n.choose(right, reflected, n.choose(here, n.upright(packed), a))
		return []*ir.Value{next0, n.choose(n.compare("eq", n.numbersBelow(steps), k), n.reshape(tau, count, 1), now[1])}
	})
	return done[0], done[1]
}

// reflect is (I - τ v vᵀ) a.
func (n *node) reflect(a, v, tau *ir.Value) *ir.Value {
	product := n.op("einsum", []*ir.Value{v, a}, named("equation", types.Str("br,brc->bc")))
	product = n.binary("mul", product, n.reshape(tau, n.shape(tau)[0], 1))
	return n.binary("sub", a, n.binary("mul", n.upright(v), n.level(product)))
}

// orgqr is the first columns of the product of geqrf's reflections.
func orgqr(n *node) []*ir.Value {
	n.takes(2)
	a, batch, _, _ := n.matrices(n.in[0])
	n.must(len(n.shape(n.in[1])) == len(batch)+1, "DM142", "%s: %s and %s do not fit together", n.name, n.in[0].Type, n.in[1].Type)
	taus := n.convert(n.reshape(n.in[1], n.shape(a)[0], n.shape(n.in[1])[len(batch)]), a.Elem())
	return []*ir.Value{n.like(n.reflecting(a, taus), batch, n.in[0].Elem())}
}

// reflecting is the first columns, as many as a has, of the product of the reflections that it holds.
func (n *node) reflecting(a, taus *ir.Value) *ir.Value {
	shape, steps, e := n.shape(a), n.shape(taus)[1], a.Elem()
	count, rows, columns := shape[0], shape[1], shape[2]
	zero, one := n.fill(e, 0), n.fill(e, 1)
	unit := n.trailing(n.convert(n.triangle("eq", rows, columns), e), []int{count, rows, columns})
	return n.scan(nil, []*ir.Value{unit}, []*ir.Value{n.backward(n.numbersBelow(steps))}, func(now, next []*ir.Value) []*ir.Value {
		k, at := next[0], n.numbersBelow(rows)
		v := n.choose(n.compare("gt", at, k), n.column(a, k), n.choose(n.compare("eq", at, k), one, zero))
		return []*ir.Value{n.reflect(now[0], v, n.row(taus, k))}
	})[0]
}

// backward is a list in the opposite order.
func (n *node) backward(x *ir.Value) *ir.Value {
	return n.op("reverse", []*ir.Value{x}, named("dims", op.IntList(0)))
}
