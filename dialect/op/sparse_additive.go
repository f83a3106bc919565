package op

import (
	"slices"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
)

// Scores of an attention that text writes as dense sums, sampled where a sparse tensor stores: of a number of each query and one of each key
// (GAT), and weighted ones of the elements of a leaky sum of a row of queries and one of keys (GATv2; Brody et al., arXiv 2105.14491).

// outer takes the queries and keys of o, a dm.sample of a dense sum of a number for each query and one for each key, with a slope or not.
func (a *storedAttention) outer(o *ir.Op, d int) bool {
	eq, p := SampleEquation(o)
	if p != nil || len(o.Operands) != 2 || in(o, 1).Format != nil || eq.Inputs[0] != eq.Output {
		return false
	}
	v, uses := o.Operands[1], 1
	var parts []*ir.Op
	if x, slope, ops := leaky(v); x != nil && a.slope == 1 && a.scale == 1 && a.bias == nil {
		a.slope, parts = slope, ops
		v, uses = x, 2
	}
	sum := withUses(v, "dm.add", uses)
	if sum == nil {
		return false
	}
	dims := firstLetters(in(o, 0).Rank())
	if !a.terms(sum, dims, d+1) {
		return false
	}
	a.parts = append(append(a.parts, parts...), sum)
	a.pattern, a.dims, a.key, a.adds = o.Operands[0], dims, d+1, true
	return true
}

// firstLetters are n letters, from 1.
func firstLetters(n int) (letters []int) {
	for i := range n {
		letters = append(letters, i+1)
	}
	return letters
}

// terms takes the queries and keys of sum, whose dimensions have the letters of whole: what has the letter key are the keys.
func (a *storedAttention) terms(sum *ir.Op, whole []int, key int) bool {
	var of [2]*ir.Value
	var spread [2][]int
	var parts []*ir.Op
	for _, v := range sum.Operands {
		at, first := []int64(nil), len(whole)-asTensor(v.Type).Rank()
		if wide := alone(v, "dm.broadcast"); wide != nil && sameElem(wide) {
			parts, v, at = append(parts, wide), wide.Operands[0], Ints(wide, "dims")
			if at == nil {
				first = len(whole) - asTensor(v.Type).Rank()
			}
		}
		letters := spreadLetters(v, sum.Results[0], whole, func(i int) int {
			if at != nil {
				return first + int(at[i])
			}
			return first + i
		})
		k := 0
		if slices.Contains(letters, key) {
			k = 1
		}
		of[k], spread[k] = v, letters
	}
	if of[0] == nil || of[1] == nil {
		return false
	}
	a.parts = append(a.parts, parts...)
	a.q, a.k, a.ofQ, a.ofK, a.spread = of[0], of[1], notOwn(spread[0]), notOwn(spread[1]), spread
	return true
}

// spreadLetters are those of v, an operand that broadcasts to result, whose dimensions have the letters of whole; at says which one of
// result's each of v's is. A dimension of size 1 that broadcasts has a letter of its own.
func spreadLetters(v, result *ir.Value, whole []int, at func(i int) int) (letters []int) {
	to := asTensor(result.Type).Shape
	for i, n := range asTensor(v.Type).Shape {
		if isOne(n) && !isOne(to[at(i)]) {
			letters = append(letters, ownLetter+at(i))
			continue
		}
		letters = append(letters, whole[at(i)])
	}
	return letters
}

// notOwn are letters without those of dimensions that are broadcast.
func notOwn(letters []int) []int {
	return slices.DeleteFunc(slices.Clone(letters), func(letter int) bool { return letter >= ownLetter })
}

// weighted takes the queries, keys and weights of o, a dm.sample of such a sum.
func (a *storedAttention) weighted(o *ir.Op, d int) bool {
	eq, p := SampleEquation(o)
	if p != nil {
		return false
	}
	var x, w term // the leaky sum and the weights
	var dims []int
	var parts []*ir.Op
	switch {
	case len(o.Operands) == 3:
		dims = lettersOf(eq.Output)
		x, w = term{o.Operands[1], lettersOf(eq.Inputs[0])}, term{o.Operands[2], lettersOf(eq.Inputs[1])}
	case len(o.Operands) == 2 && eq.Inputs[0] == eq.Output:
		if x, w, dims, parts = weightedSum(o.Operands[1]); x.v == nil {
			return false
		}
	default:
		return false
	}
	for _, v := range o.Operands[1:] {
		if asTensor(v.Type).Format != nil {
			return false
		}
	}
	sum, leak, ops := leaky(x.v)
	if sum == nil {
		x, w = w, x
		sum, leak, ops = leaky(x.v)
	}
	if sum == nil {
		return false
	}
	add := withUses(sum, "dm.add", 2)
	if add == nil || slices.ContainsFunc(dims, func(letter int) bool { return !slices.Contains(x.letters, letter) }) || twice(x.letters) || twice(w.letters) {
		return false
	}
	for i, n := range asTensor(sum.Type).Shape { // it broadcasts to the pattern
		if at := slices.Index(dims, x.letters[i]); at >= 0 && !sameDim(n, in(o, 0).Shape[at]) {
			return false
		}
	}
	if !a.terms(add, x.letters, dims[d]) {
		return false
	}
	a.parts = append(append(append(a.parts, parts...), ops...), add)
	a.pattern, a.dims, a.key, a.adds = o.Operands[0], dims, dims[d], true
	a.w, a.ofW, a.leak = w.v, w.letters, leak
	return true
}

// weightedSum is v as the sum of products of x and w, and the letters of v's dimensions: a contraction, or a sum of products. x is none
// where v is neither.
func weightedSum(v *ir.Value) (x, w term, dims []int, parts []*ir.Op) {
	if o := v.Op; o != nil && (withUses(v, "dm.einsum", 1) != nil || withUses(v, "dm.matmul", 1) != nil) && len(o.Operands) == 2 {
		eq, err := EquationOf(o)
		if err != nil || eq.Diagonal() {
			return x, w, nil, nil
		}
		return term{o.Operands[0], lettersOf(eq.Inputs[0])}, term{o.Operands[1], lettersOf(eq.Inputs[1])}, lettersOf(eq.Output), []*ir.Op{o}
	}
	o := alone(v, "dm.reduce")
	if o == nil || Str(o, "kind") != "add" || Bool(o, "keep_dims") || !sameElem(o) {
		return x, w, nil, nil
	}
	mul := alone(o.Operands[0], "dm.mul")
	if mul == nil {
		return x, w, nil, nil
	}
	all := firstLetters(out(mul, 0).Rank())
	over, ok := reducedDims(o)
	if !ok {
		return x, w, nil, nil
	}
	for i, letter := range all {
		if !slices.Contains(over, i) {
			dims = append(dims, letter)
		}
	}
	of := func(i int) term {
		v := mul.Operands[i]
		first := len(all) - asTensor(v.Type).Rank()
		return term{v, spreadLetters(v, mul.Results[0], all, func(d int) int { return first + d })}
	}
	return of(0), of(1), dims, []*ir.Op{o, mul}
}

// arrangeWeights reports whether the op takes weights with these letters: all heads or none, levels of rows from the outermost one on,
// and the depth.
func (a *storedAttention) arrangeWeights() bool {
	own, c := notOwn(a.ofW), a.contractedSparse
	for _, x := range a.rows {
		if !slices.Contains(own, x) {
			break
		}
		if c.block(x) > 0 {
			return false
		}
		a.wRows = append(a.wRows, x)
	}
	want := slices.Concat(a.wRows, a.depth)
	if slices.ContainsFunc(a.heads, func(x int) bool { return slices.Contains(own, x) }) {
		want = append(want, a.heads...)
	}
	slices.Sort(own)
	slices.Sort(want)
	return slices.Equal(own, want)
}

// weights are the operand of the op.
func (a *storedAttention) weights(l *lowering) *ir.Value {
	w := l.plain(term{a.of(a.w)[0], a.ofW})
	heads := those(a.heads, w.letters, true)
	x := a.matrices(w.v, w.letters, heads, a.wRows, a.depth)
	shape := asTensor(x.Type).Shape
	return l.Reshape(x, dim.Prod(shape[:1]...), shape[1], shape[2])
}
