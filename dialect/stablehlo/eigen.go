package stablehlo

import (
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// Eigenvalues of symmetric matrices and singular values are found by Jacobi's rotations: pairs of columns
// (and of rows) are turned until they are orthogonal, as many pairs at once as have no column in common.
// Rotations are accurate for small values too, have a derivative, and are the same on every device. The
// signs of the vectors follow from the rotations; those of LAPACK follow from its own steps and may differ.

// sweeps is how often each pair of columns is turned: the convergence is quadratic after the first few.
func sweeps(e types.Elem) int { return either(e == types.F64, 16, 12) }

// rounds is a tournament of numbers below size: in each round every number has a partner, another one or
// itself, and in all rounds together each other number once.
func rounds(size int) [][]int64 {
	players := size + size%2
	if size == 1 {
		return [][]int64{{0}}
	}
	all := make([][]int64, players-1)
	for r := range all {
		partner := make([]int64, players)
		pair := func(a, b int) { partner[a], partner[b] = int64(b), int64(a) }
		pair(players-1, r)
		for k := 1; k < players/2; k++ {
			pair((r+k)%(players-1), (r-k+players-1)%(players-1))
		}
		for i, p := range partner {
			if int(p) >= size { // the one who has no partner
				partner[i] = int64(i)
			}
		}
		all[r] = partner[:size]
	}
	return all
}

// rotated carries values through sweeps of rotations of size columns; turn is given the values and the
// partner of each column.
func (n *node) rotated(size int, e types.Elem, values []*ir.Value, turn func(now []*ir.Value, partners *ir.Value) []*ir.Value) []*ir.Value {
	all := rounds(size)
	partners := n.constant(literal(tensorOf(types.I64, len(all), size), slices.Concat(all...)))
	return n.scan(nil, values, []*ir.Value{n.numbersBelow(sweeps(e))}, func(now, _ []*ir.Value) []*ir.Value {
		return n.scan(nil, now, []*ir.Value{partners}, func(now, next []*ir.Value) []*ir.Value { return turn(now, next[0]) })
	})
}

// rotation is by what each column and its partner are multiplied, so that what has the squared lengths (or
// diagonal elements) own and other and the product cross becomes orthogonal.
func (n *node) rotation(own, other, cross, partners *ir.Value) (cosine, sine *ir.Value) {
	e, size := own.Elem(), n.shape(own)[1]
	zero, one, two := n.fill(e, 0), n.fill(e, 1), n.fill(e, 2)
	at := n.numbersBelow(size)
	first := n.compare("lt", at, partners)
	cross = n.choose(n.compare("eq", at, partners), zero, cross)
	apart := n.choose(first, n.binary("sub", other, own), n.binary("sub", own, other))
	side := n.choose(n.compare("ge", apart, zero), one, n.fill(e, -1))
	twice := n.binary("mul", two, cross)
	// The root of apart² + twice² by the larger of both, whose square may be too large or too small.
	far := n.binary("max", n.unary("abs", apart), n.unary("abs", twice))
	none := n.compare("eq", far, zero)
	scale := n.choose(none, one, far)
	apart, twice = n.binary("div", apart, scale), n.binary("div", twice, scale)
	root := n.unary("sqrt", n.choose(none, one, n.binary("add", n.binary("mul", apart, apart), n.binary("mul", twice, twice))))
	tangent := n.binary("div", n.binary("mul", side, twice), n.binary("add", n.unary("abs", apart), root))
	cosine = n.unary("rsqrt", n.binary("add", one, n.binary("mul", tangent, tangent)))
	sine = n.binary("mul", tangent, cosine)
	return cosine, n.choose(first, n.unary("neg", sine), sine)
}

// mixed is each column of x, turned with its partner.
func (n *node) mixed(x, cosine, sine, partners *ir.Value) *ir.Value {
	return n.binary("add", n.binary("mul", n.level(cosine), x), n.binary("mul", n.level(sine), n.column(x, partners)))
}

// products is the sum of the products of x and y along the rows.
func (n *node) products(x, y *ir.Value) *ir.Value {
	return n.reduced("add", n.binary("mul", x, y), []int{1})
}

// identity is the identity matrix for each matrix of x, of as many rows as x has columns.
func (n *node) identity(x *ir.Value) *ir.Value {
	s := n.shape(x)
	return n.trailing(n.convert(n.triangle("eq", s[2], s[2]), x.Elem()), []int{s[0], s[2], s[2]})
}

// symmetric is the eigenvalues of matrices, rising, and the eigenvectors as columns.
func (n *node) symmetric(a *ir.Value, lower bool) (values, vectors *ir.Value) {
	size, e := n.shape(a)[1], a.Elem()
	zero := n.fill(e, 0)
	half := n.choose(n.triangle(either(lower, "gt", "lt"), size, size), a, zero)
	diagonal := n.convert(n.triangle("eq", size, size), e)
	a = n.binary("add", n.binary("add", half, n.transpose(half, []int{0, 2, 1})), n.choose(n.triangle("eq", size, size), a, zero))
	done := n.rotated(size, e, []*ir.Value{a, n.identity(a)}, func(now []*ir.Value, partners *ir.Value) []*ir.Value {
		a, v := now[0], now[1]
		own := n.products(a, diagonal)
		chosen := n.convert(n.compare("eq", n.numbersBelow(size), n.reshape(partners, size, 1)), e)
		cross := n.reduced("add", n.binary("mul", a, chosen), []int{2})
		cross = n.binary("mul", n.binary("add", cross, n.column1(cross, partners)), n.fill(e, 0.5)) // rounding made two of them
		cosine, sine := n.rotation(own, n.column1(own, partners), cross, partners)
		rows := n.binary("add", n.binary("mul", n.upright(cosine), a), n.binary("mul", n.upright(sine), n.row(a, partners)))
		return []*ir.Value{n.mixed(rows, cosine, sine, partners), n.mixed(v, cosine, sine, partners)}
	})
	values, order := n.ordered(n.products(done[0], diagonal), false)
	return values, n.gather(done[1], order, 2, 1)
}

// column1 is elements of each vector.
func (n *node) column1(v, at *ir.Value) *ir.Value { return n.gather(v, at, 1, 0) }

// ordered is the elements of each vector in order, and the places that they had.
func (n *node) ordered(v *ir.Value, descending bool) (sorted, order *ir.Value) {
	var attrs []types.Named
	if descending {
		attrs = append(attrs, named("descending", types.Bool(true)))
	}
	o := n.make("sort", []*ir.Value{v}, attrs, v.Type, tensorOf(types.I64, n.shape(v)...))
	return o.Results[0], o.Results[1]
}

// singular is the singular values of matrices with at least as many rows as columns, falling, and the
// matrices U, with so many columns, and V.
func (n *node) singular(a *ir.Value, columns int) (u, values, v *ir.Value) {
	s, e := n.shape(a), a.Elem()
	done := n.rotated(s[2], e, []*ir.Value{a, n.identity(a)}, func(now []*ir.Value, partners *ir.Value) []*ir.Value {
		a, v := now[0], now[1]
		other := n.column(a, partners)
		cosine, sine := n.rotation(n.products(a, a), n.products(other, other), n.products(a, other), partners)
		return []*ir.Value{n.mixed(a, cosine, sine, partners), n.mixed(v, cosine, sine, partners)}
	})
	values, order := n.ordered(n.unary("sqrt", n.products(done[0], done[0])), true)
	// The columns are orthogonal. Their directions, others in place of those without a length, and more of
	// them are what reflections make of the identity, up to the signs of the diagonal.
	packed, taus := n.reflections(n.gather(done[0], order, 2, 1))
	diagonal := n.reduced("add", n.choose(n.triangle("eq", s[1], s[2]), packed, n.fill(e, 0)), []int{1})
	sign := n.choose(n.compare("lt", diagonal, n.fill(e, 0)), n.fill(e, -1), n.fill(e, 1))
	if columns > s[2] {
		packed = n.padded(packed, n.fill(e, 0), []int{0, 0, 0}, []int{0, 0, columns - s[2]}, []int{0, 0, 0})
		sign = n.padded(sign, n.fill(e, 1), []int{0, 0}, []int{0, columns - s[2]}, []int{0, 0})
	}
	u = n.binary("mul", n.reflecting(packed, taus), n.level(sign))
	return u, values, n.gather(done[1], order, 2, 1)
}

// syevd gives eigenvectors and eigenvalues, and but for Eigh whether that succeeded.
func syevd(n *node) []*ir.Value {
	n.takes(1)
	lower := n.name == "Eigh" || n.lower() // which is given symmetric matrices
	a, batch, rows, columns := n.matrices(n.in[0])
	n.must(rows == columns, "DM142", "%s takes square matrices, not a %s", n.name, n.in[0].Type)
	values, vectors := n.symmetric(a, lower)
	e := n.in[0].Elem()
	out := []*ir.Value{n.like(vectors, batch, e), n.like(values, batch, e)}
	if len(n.out) == 3 {
		out = append(out, n.succeeded(batch))
	}
	return out
}

// gesdd gives the matrix that it overwrites, the singular values, U, and V or its transpose.
func gesdd(n *node) []*ir.Value {
	n.takes(1)
	n.must(len(n.out) == 5, "DM142", "%s has five results", n.name)
	a, batch, rows, columns := n.matrices(n.in[0])
	u, v := n.sizes(n.result(2)), n.sizes(n.result(3))
	wide := rows < columns
	if wide {
		a = n.transpose(a, []int{0, 2, 1})
	}
	// As many columns as the larger side's matrix has, if it has those of the smaller one at least.
	want := either(wide, v[len(v)-2], u[len(u)-1])
	if n.setting("compute_uv") != nil && wide { // V itself, not its transpose
		want = v[len(v)-1]
	}
	left, values, right := n.singular(a, max(min(rows, columns), want))
	if wide {
		left, right = right, left
	}
	if n.setting("compute_uv") == nil {
		right = n.transpose(right, []int{0, 2, 1})
	}
	e := n.in[0].Elem()
	full := []*ir.Value{n.in[0], n.like(values, batch, e), n.like(left, batch, e), n.like(right, batch, e), n.succeeded(batch)}
	for i := 2; i < 4; i++ { // which nothing reads where no vectors are asked for
		if to := n.sizes(n.result(i)); !slices.Equal(n.shape(full[i]), to) {
			full[i] = n.filled(e, 0, to...)
		}
	}
	return full
}

// luDecomposition is getrf with exchanges counted from 0, and their permutation.
func luDecomposition(n *node) []*ir.Value {
	n.must(len(n.out) == 3, "DM142", "%s has three results", n.name)
	lu := getrf(n)
	shape := n.shape(n.in[0])
	pivots := n.binary("sub", lu[1], n.whole(types.I32, 1))
	return []*ir.Value{lu[0], pivots, n.permutation(pivots, shape[len(shape)-2], types.I32)}
}

// pivotsToPermutation is the order of rows after the exchanges of getrf.
func pivotsToPermutation(n *node) []*ir.Value {
	n.takes(1)
	shape, to := n.shape(n.in[0]), n.sizes(n.result(0))
	n.must(len(shape) > 0 && len(to) == len(shape), "DM142", "%s takes the exchanges of rows, not a %s", n.name, n.in[0].Type)
	return []*ir.Value{n.permutation(n.in[0], to[len(to)-1], n.result(0).Elem)}
}

// permutation is the order of size rows after exchanges, which are counted from 0.
func (n *node) permutation(x *ir.Value, size int, e types.Elem) *ir.Value {
	shape := n.shape(x)
	steps, count := shape[len(shape)-1], product(shape[:len(shape)-1])
	pivots := n.reshape(n.convert(x, types.I64), count, steps)
	at := n.numbersBelow(size)
	start := n.trailing(at, []int{count, size})
	order := n.scan(nil, []*ir.Value{start}, []*ir.Value{n.transpose(pivots, []int{1, 0}), n.numbersBelow(steps)}, func(now, next []*ir.Value) []*ir.Value {
		p, pivot, k := now[0], n.reshape(next[0], count, 1), next[1]
		here := n.reshape(n.gather(p, k, 1, 0), count, 1)
		there := n.gather(p, pivot, 1, 1)
		return []*ir.Value{n.choose(n.compare("eq", at, k), there, n.choose(n.compare("eq", at, pivot), here, p))}
	})[0]
	return n.convert(n.reshape(order, append(slices.Clone(shape[:len(shape)-1]), size)...), e)
}
