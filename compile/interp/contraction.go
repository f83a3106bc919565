package interp

import (
	"slices"

	"dmir/compile/tensor"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

func contractionExecutors() map[string]executor {
	return map[string]executor{
		"dm.einsum":            runEinsum,
		"dm.matmul":            runMatmul,
		"dm.grouped_matmul":    runGroupedMatmul,
		"dm.structured_einsum": runStructuredEinsum,
		"dm.convolution":       runConvolution,
	}
}

// labelled is an operand of a contraction: a tensor, perhaps read with other
// strides than its own, whose dimensions are named by letters.
type labelled struct {
	t       *tensor.Tensor
	letters []rune
	shape   []int
	strides []int
}

func label(t *tensor.Tensor, letters []rune) labelled {
	return labelled{t, letters, t.Shape, tensor.Strides(t.Shape)}
}

// accumulator is the type in which a contraction accumulates, and how it rounds
// partial sums.
type accumulator struct {
	elem types.Elem // F32, F64 or I64
	half bool       // round every partial sum to f16
}

func (c *call) accumulator() accumulator {
	elem := c.outElem(0)
	switch tensor.KindOf(elem) {
	case tensor.KindF64:
		return accumulator{elem: types.F64}
	case tensor.KindF32:
		return accumulator{elem: types.F32, half: op.Str(c.op, "accumulate") == "f16"}
	}
	return accumulator{elem: types.I64}
}

func runEinsum(c *call) ([]*tensor.Tensor, error) {
	e, err := op.EquationOf(c.op)
	if err != nil {
		return nil, c.errorf("DM704", "%s", err)
	}
	acc := c.accumulator()
	args := make([]labelled, len(c.in))
	most := map[byte]int{} // the sizes of what an ellipsis stands for
	for i, t := range c.in {
		if t.Rank() != len(e.Inputs[i]) {
			return nil, c.errorf("DM704", "input %q names another number of dimensions than %s has", e.Inputs[i], t.Type())
		}
		for d, n := range t.Shape {
			if l := e.Inputs[i][d]; n != 1 || most[l] == 0 {
				most[l] = n
			}
		}
	}
	for i, t := range c.in {
		letters, dims := e.Without(i, func(d int) bool { return t.Shape[d] == 1 && most[e.Inputs[i][d]] != 1 })
		if len(dims) < t.Rank() {
			shape := make([]int, len(dims))
			for k, d := range dims {
				shape[k] = t.Shape[d]
			}
			e.Inputs[i], t = letters, t.Reshape(shape...)
		}
		args[i] = diagonal(label(c.widened(t, acc), []rune(e.Inputs[i])))
	}
	sizes := map[rune]int{}
	for _, a := range args {
		for d, l := range a.letters {
			if n, seen := sizes[l]; seen && n != a.shape[d] {
				return nil, c.errorf("DM704", "letter %q has sizes %d and %d", l, n, a.shape[d])
			}
			sizes[l] = a.shape[d]
		}
	}
	left := args[0]
	if len(args) == 1 {
		return one(c.sumOut(left, []rune(e.Output), c.outElem(0), acc)), nil
	}
	for i, s := range e.Steps() {
		elem := acc.elem
		if i == len(args)-2 {
			elem = c.outElem(0)
		}
		part := c.contract(left, args[i+1], []rune(s.Out), elem, acc)
		if i < len(args)-2 && op.TF32(c.op) { // an operand of the next product
			part = c.roundedTF32(part)
		}
		left = label(part, []rune(s.Out))
	}
	return one(left.t), nil
}

// widened converts an operand to the storage of the accumulator, rounded to TF32 where the op says so.
func (c *call) widened(t *tensor.Tensor, acc accumulator) *tensor.Tensor {
	if op.TF32(c.op) && t.F32 != nil {
		return c.roundedTF32(t)
	}
	if t.Kind() == tensor.KindOf(acc.elem) {
		return t
	}
	return convert(c.pool, t, acc.elem)
}

// roundedTF32 is t rounded to TF32.
func (c *call) roundedTF32(t *tensor.Tensor) *tensor.Tensor {
	to := tensor.New(t.Elem, t.Shape...)
	c.parallel(len(t.F32), elements, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			to.F32[i] = tensor.RoundTF32(t.F32[i])
		}
	})
	return to
}

// diagonal reads a repeated letter as one dimension with the sum of its
// strides.
func diagonal(a labelled) labelled {
	out := labelled{t: a.t}
	for d, l := range a.letters {
		if i := slices.Index(out.letters, l); i >= 0 {
			out.strides[i] += a.strides[d]
			continue
		}
		out.letters = append(out.letters, l)
		out.shape = append(out.shape, a.shape[d])
		out.strides = append(out.strides, a.strides[d])
	}
	return out
}

// pick is the shape and the strides of the letters in want that a has.
func (a labelled) pick(want []rune) (shape, strides []int) {
	for _, l := range want {
		if i := slices.Index(a.letters, l); i >= 0 {
			shape, strides = append(shape, a.shape[i]), append(strides, a.strides[i])
		}
	}
	return shape, strides
}

func (a labelled) offsets(letters []rune) []int { return offsets(a.pick(letters)) }

// contract is the product of a and b summed over the letters that out lacks.
func (c *call) contract(a, b labelled, out []rune, elem types.Elem, acc accumulator) *tensor.Tensor {
	a, b = c.onlyHere(a, b, out, acc), c.onlyHere(b, a, out, acc)
	var batch, m, n, k []rune
	shape := make([]int, len(out))
	for i, l := range out {
		inA, inB := slices.Index(a.letters, l), slices.Index(b.letters, l)
		if inA >= 0 {
			shape[i] = a.shape[inA]
		} else {
			shape[i] = b.shape[inB]
		}
		switch {
		case inA >= 0 && inB >= 0:
			batch = append(batch, l)
		case inA >= 0:
			m = append(m, l)
		default:
			n = append(n, l)
		}
	}
	for _, l := range a.letters {
		if !slices.Contains(out, l) {
			k = append(k, l)
		}
	}
	if len(k) == 0 {
		// Without a sum this is a product of broadcast tensors.
		to := tensor.New(acc.elem, shape...)
		binaries["mul"].apply(c.pool, to, c.laidOut(a, out), c.laidOut(b, out))
		return convert(c.pool, to, elem)
	}
	to := label(tensor.New(elem, shape...), out)
	o := layout{
		aB: a.offsets(batch), aM: a.offsets(m), aK: a.offsets(k),
		bB: b.offsets(batch), bK: b.offsets(k), bN: b.offsets(n),
		cB: to.offsets(batch), cM: to.offsets(m), cN: to.offsets(n),
	}
	c.multiply(to.t, a.t, b.t, o, acc)
	return to.t
}

// onlyHere sums over the letters that neither the other operand nor the result has.
func (c *call) onlyHere(a, other labelled, out []rune, acc accumulator) labelled {
	var kept []rune
	for _, l := range a.letters {
		if slices.Contains(out, l) || slices.Contains(other.letters, l) {
			kept = append(kept, l)
		}
	}
	if len(kept) == len(a.letters) {
		return a
	}
	return label(c.sumOut(a, kept, acc.elem, acc), kept)
}

// sumOut permutes a to the letters of out and sums over the others.
func (c *call) sumOut(a labelled, out []rune, elem types.Elem, acc accumulator) *tensor.Tensor {
	rest := slices.DeleteFunc(slices.Clone(a.letters), func(l rune) bool { return slices.Contains(out, l) })
	x := c.laidOut(a, slices.Concat(out, rest))
	if len(rest) == 0 {
		return convert(c.pool, x, elem)
	}
	n := len(out)
	return reduceTensor(c.pool, "add", x, product(x.Shape[:n]), product(x.Shape[n:]), 1, acc.half, elem, slices.Clone(x.Shape[:n]))
}

// laidOut is a copy of a with its dimensions in the order of the letters,
// row-major; a letter that a lacks becomes a dimension of size 1.
func (c *call) laidOut(a labelled, letters []rune) *tensor.Tensor {
	shape, strides := make([]int, len(letters)), make([]int, len(letters))
	for i, l := range letters {
		shape[i] = 1
		if d := slices.Index(a.letters, l); d >= 0 {
			shape[i], strides[i] = a.shape[d], a.strides[d]
		}
	}
	x := tensor.New(a.t.Elem, shape...)
	move(c.pool, viewOf(x), view{a.t, 0, strides}, shape)
	return x
}

// layout is the offsets of the elements of a batch of products; see gemm.
type layout struct{ aB, aM, aK, bB, bK, bN, cB, cM, cN []int }

func multiplyOn[T float32 | float64](p *pool, to, a, b []T, o layout, round func([]T)) {
	g := gemm[T]{a: a, b: b, c: to, aB: o.aB, aM: o.aM, aK: o.aK, bB: o.bB, bK: o.bK, bN: o.bN, cB: o.cB, cM: o.cM, cN: o.cN, round: round}
	g.run(p)
}

func (c *call) multiply(to, a, b *tensor.Tensor, o layout, acc accumulator) {
	elem := to.Elem
	switch {
	case acc.half:
		c.multiplyHalf(to.F32, a.F32, b.F32, o, elem)
	case acc.elem == types.F32:
		var round func([]float32)
		if elem != types.F32 {
			round = func(x []float32) { tensor.RoundSlice(elem, x) }
		}
		multiplyOn(c.pool, to.F32, a.F32, b.F32, o, round)
	case acc.elem == types.F64:
		multiplyOn(c.pool, to.F64, a.F64, b.F64, o, nil)
	default:
		c.multiplyInt(to.Int, a.Int, b.Int, o, elem)
	}
}

// multiplyHalf rounds every product and every partial sum to f16, in the order of k.
func (c *call) multiplyHalf(to, a, b []float32, o layout, elem types.Elem) {
	c.rows(o, func(n, i int) {
		for j, at := range o.cN {
			var s float32
			for k, off := range o.aK {
				p := tensor.Round(types.F16, a[o.aB[n]+o.aM[i]+off]*b[o.bB[n]+o.bK[k]+o.bN[j]])
				s = tensor.Round(types.F16, s+p)
			}
			to[o.cB[n]+o.cM[i]+at] = tensor.Round(elem, s)
		}
	})
}

func (c *call) multiplyInt(to, a, b []int64, o layout, elem types.Elem) {
	c.rows(o, func(n, i int) {
		for j, at := range o.cN {
			var s int64
			for k, off := range o.aK {
				s += a[o.aB[n]+o.aM[i]+off] * b[o.bB[n]+o.bK[k]+o.bN[j]]
			}
			to[o.cB[n]+o.cM[i]+at] = tensor.Wrap(elem, s)
		}
	})
}

// rows calls f for every row of every product of the batch.
func (c *call) rows(o layout, f func(n, i int)) {
	m := len(o.cM)
	grain := 1 + elements/(1+len(o.cN)*len(o.aK))
	c.parallel(len(o.cB)*m, grain, func(lo, hi int) {
		for r := lo; r < hi && !c.stopped(); r++ {
			f(r/m, r%m)
		}
	})
}

// runMatmul names the dimensions and contracts; a broadcast batch dimension is
// read with stride 0.
func runMatmul(c *call) ([]*tensor.Tensor, error) {
	acc := c.accumulator()
	a, b := c.widened(c.in[0], acc), c.widened(c.in[1], acc)
	if a.Rank() < 2 || b.Rank() < 2 {
		return nil, c.errorf("DM704", "matmul of %s and %s", a.Type(), b.Type())
	}
	ab, bb := a.Shape[:a.Rank()-2], b.Shape[:b.Rank()-2]
	batch, ok := broadcastShape(ab, bb)
	if !ok {
		return nil, c.errorf("DM704", "batch dimensions %v and %v do not broadcast", ab, bb)
	}
	rows := func(t *tensor.Tensor, transposed bool) (r, col, rs, cs int) {
		n := t.Rank()
		r, col, rs, cs = t.Shape[n-2], t.Shape[n-1], t.Shape[n-1], 1
		if transposed {
			return col, r, cs, rs
		}
		return r, col, rs, cs
	}
	m, k, ms, ks := rows(a, op.Bool(c.op, "transpose_a"))
	k2, n, ks2, ns := rows(b, op.Bool(c.op, "transpose_b"))
	if k != k2 {
		return nil, c.errorf("DM704", "matmul contracts dimensions of sizes %d and %d", k, k2)
	}
	out := append(slices.Clone(batch), m, n)
	to := tensor.New(c.outElem(0), out...)
	scaled := func(t *tensor.Tensor, shape []int) []int {
		s := broadcastStrides(shape, batch)
		for i := range s {
			s[i] *= t.Shape[t.Rank()-1] * t.Shape[t.Rank()-2]
		}
		return offsets(batch, s)
	}
	own := tensor.Strides(out)
	c.multiply(to, a, b, layout{
		aB: scaled(a, ab), aM: offsets([]int{m}, []int{ms}), aK: offsets([]int{k}, []int{ks}),
		bB: scaled(b, bb), bK: offsets([]int{k}, []int{ks2}), bN: offsets([]int{n}, []int{ns}),
		cB: offsets(batch, own), cM: offsets([]int{m}, []int{n}), cN: offsets([]int{n}, []int{1}),
	}, acc)
	return one(to), nil
}

func product(dims []int) int {
	n := 1
	for _, d := range dims {
		n *= d
	}
	return n
}
