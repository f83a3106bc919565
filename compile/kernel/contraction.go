package kernel

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// Contraction is a batched matrix product in normal form,
//
//	C[z, m, n] = Σ over k of A[z, m, k] · B[z, n, k]
//
// where each of z, m, n and k is one index flattened from the loops of its
// group. No operand is ever permuted: every tensor is addressed by the strides
// that its own loops have in it.
type Contraction struct {
	Z, M, N, K Group
	// A and B are which operands of the op; B is -1 where there is only one, and
	// its elements are 1.
	A, B int
	// ElemA and ElemB are what the operands hold, ElemC what the sum is rounded to.
	ElemA, ElemB, ElemC types.Elem
	// Half tells that every product and partial sum is rounded to f16.
	Half bool
}

// Group is the loops that are flattened to one index, outermost first.
type Group []Loop

// Loop is one letter of the contraction.
type Loop struct {
	Size int64
	// A, B and C are the elements from one index to the next in each tensor; 0
	// where the tensor does not depend on the letter.
	A, B, C int64
	Out     int // the dimension of the result, -1 where it is summed over
}

// The strides of a loop.
func StrideA(l Loop) int64 { return l.A }
func StrideB(l Loop) int64 { return l.B }
func StrideC(l Loop) int64 { return l.C }

// Size is the number of values of the flattened index.
func (g Group) Size() int64 {
	n := int64(1)
	for _, l := range g {
		n *= l.Size
	}
	return n
}

// Part is a part of an address: (i / Div % Mod) · Stride; a Mod of 0 takes no
// remainder.
type Part struct{ Div, Mod, Stride int64 }

// Parts are the address of a tensor as a function of the group's flattened
// index i: their sum. Loops that lie side by side in the tensor become one
// term; so a tensor that holds the whole group in order has the one term i · stride.
func (g Group) Parts(stride func(Loop) int64) []Part {
	var parts []Part
	inner := int64(1) // the product of the sizes further in
	top := g.Size()
	for i := len(g) - 1; i >= 0; {
		size, step := g[i].Size, stride(g[i])
		div := inner
		inner *= size
		for i--; i >= 0 && stride(g[i]) == step*size; i-- {
			size *= g[i].Size
			inner *= g[i].Size
		}
		if step == 0 {
			continue
		}
		t := Part{Div: div, Mod: size, Stride: step}
		if div*size == top {
			t.Mod = 0
		}
		parts = append(parts, t)
	}
	slices.Reverse(parts)
	return parts
}

// Run is how many neighbouring indices of the group, from every multiple of it
// on, lie side by side in the tensor; 1 where neighbours do not.
func (g Group) Run(stride func(Loop) int64) int64 {
	if len(g) == 0 || stride(g[len(g)-1]) != 1 {
		return 1
	}
	run := int64(1)
	for i := len(g) - 1; i >= 0 && stride(g[i]) == run; i-- {
		run *= g[i].Size
	}
	return run
}

// Vector is how many neighbours along the group can be moved at once, at most
// limit, a power of two: they lie side by side, and every such run starts at a
// multiple of its length, wherever the other groups' indices are.
func (g Group) Vector(stride func(Loop) int64, limit int64, others ...Group) int64 {
	v := limit
	run := g.Run(stride)
	aligned := func(n int64) {
		for v > 1 && n%v != 0 {
			v /= 2
		}
	}
	aligned(run)
	inner := int64(1)
	for i := len(g) - 1; i >= 0; i-- {
		if inner >= run {
			aligned(stride(g[i]))
		}
		inner *= g[i].Size
	}
	for _, o := range others {
		for _, l := range o {
			aligned(stride(l))
		}
	}
	return v
}

// FLOP is two for each product that is summed.
func (c *Contraction) FLOP() int64 {
	return 2 * c.Z.Size() * c.M.Size() * c.N.Size() * c.K.Size()
}

// String is the sizes and strides of every group: what decides a kernel.
func (c *Contraction) String() string {
	var b strings.Builder
	for _, g := range []struct {
		name  string
		group Group
	}{{"z", c.Z}, {"m", c.M}, {"n", c.N}, {"k", c.K}} {
		fmt.Fprintf(&b, "%s", g.name)
		for _, l := range g.group {
			fmt.Fprintf(&b, " %d(%d,%d,%d)", l.Size, l.A, l.B, l.C)
		}
		b.WriteString("; ")
	}
	fmt.Fprintf(&b, "%s·%s→%s", c.ElemA, c.ElemB, c.ElemC)
	return b.String()
}

// Strides are the elements from one index to the next of each dimension of t,
// whose order in memory is its placement's. It reports false where a dimension
// has no known size.
func Strides(t *types.Tensor) ([]int64, bool) {
	order := t.At.Order
	if order == nil {
		order = make([]int, t.Rank())
		for i := range order {
			order[i] = i
		}
	}
	if len(order) != t.Rank() {
		return nil, false
	}
	strides := make([]int64, t.Rank())
	step := int64(1)
	for i := len(order) - 1; i >= 0; i-- {
		n, ok := t.Shape[order[i]].Int()
		if !ok {
			return nil, false
		}
		strides[order[i]] = step
		step *= n
	}
	return strides, true
}

// NormalForm is the contraction that o, an einsum of at most two operands or a
// matmul, computes. to is the strides of the result's dimensions where it is
// stored; nil takes those of o's own result. The result's contiguous dimension
// becomes part of N where it is a row's or a column's, by exchanging the
// operands. Errors tell why o has no such form.
func NormalForm(o *ir.Op, to []int64) (*Contraction, error) {
	if len(o.Results) != 1 || o.Out(0) == nil {
		return nil, fmt.Errorf("%s has no tensor as its result", o.Name)
	}
	if to == nil {
		var ok bool
		if to, ok = Strides(o.Out(0)); !ok {
			return nil, fmt.Errorf("the result %s has no known size", o.Out(0))
		}
	}
	var letters []string
	var out string
	switch o.Name {
	case "dm.einsum":
		e, err := op.ParseEquation(op.Str(o, "equation"), len(o.Operands))
		if err != nil {
			return nil, err
		}
		if len(e.Inputs) > 2 {
			return nil, fmt.Errorf("%d operands are contracted in steps", len(e.Inputs))
		}
		letters, out = e.Inputs, e.Output
	case "dm.matmul":
		letters, out = matmulLetters(o)
	default:
		return nil, fmt.Errorf("%s is no contraction", o.Name)
	}
	c := &Contraction{A: 0, B: -1, ElemC: o.Out(0).Elem, Half: op.Str(o, "accumulate") == "f16"}
	var sides [2]map[rune]letter
	for i := range o.Operands {
		t := o.In(i)
		if t == nil || t.Rank() != len([]rune(letters[i])) {
			return nil, fmt.Errorf("operand %d is no tensor of %d dimensions", i, len([]rune(letters[i])))
		}
		m, err := lettersOf(t, letters[i], len([]rune(out)) > 0 && o.Name == "dm.matmul")
		if err != nil {
			return nil, err
		}
		sides[i] = m
	}
	c.ElemA, c.ElemB = o.In(0).Elem, o.In(0).Elem
	if len(o.Operands) == 2 {
		c.B, c.ElemB = 1, o.In(1).Elem
	}
	c.sort(sides, out, to)
	c.orient()
	return c, nil
}

// letter is what a letter is in one operand.
type letter struct{ size, stride int64 }

// lettersOf are the letters of an operand: repeated ones walk the diagonal.
// Where ones broadcast, a dimension of size 1 is read with stride 0.
func lettersOf(t *types.Tensor, letters string, ones bool) (map[rune]letter, error) {
	strides, ok := Strides(t)
	if !ok {
		return nil, fmt.Errorf("the operand %s has no known size", t)
	}
	m := map[rune]letter{}
	for i, r := range []rune(letters) {
		n, _ := t.Shape[i].Int()
		l := letter{size: n, stride: m[r].stride + strides[i]}
		if n == 1 && ones {
			l.stride = 0
		}
		m[r] = l
	}
	return m, nil
}

// matmulLetters names the dimensions of a matmul as an einsum would. A batch
// dimension that broadcasts keeps its letter; see lettersOf.
func matmulLetters(o *ir.Op) (in []string, out string) {
	const batch, m, n, k = 'a', 'M', 'N', 'K'
	rank := o.Out(0).Rank()
	name := func(i, rank int, row, col rune, transposed bool) string {
		own := o.In(i).Rank()
		var s []rune
		for d := range own - 2 {
			s = append(s, rune(batch+(rank-own)+d))
		}
		if transposed {
			row, col = col, row
		}
		return string(append(s, row, col))
	}
	in = []string{
		name(0, rank, m, k, op.Bool(o, "transpose_a")),
		name(1, rank, k, n, op.Bool(o, "transpose_b")),
	}
	for d := range rank - 2 {
		out += string(rune(batch + d))
	}
	return in, out + string(m) + string(n)
}

// sort puts every letter into its group.
func (c *Contraction) sort(sides [2]map[rune]letter, out string, to []int64) {
	add := func(r rune, dim int) {
		a, inA := sides[0][r]
		b, inB := sides[1][r]
		l := Loop{Size: max(a.size, b.size), A: a.stride, B: b.stride, Out: dim}
		if l.Size == 1 {
			return
		}
		// A letter that an operand reads with stride 0 is a broadcast: the
		// product does not depend on it there.
		inA, inB = inA && a.stride != 0, inB && b.stride != 0
		switch {
		case dim < 0:
			c.K = append(c.K, l)
		default:
			l.C = to[dim]
			switch {
			case inA && inB:
				c.Z = append(c.Z, l)
			case inB:
				c.N = append(c.N, l)
			default:
				c.M = append(c.M, l)
			}
		}
	}
	seen := map[rune]bool{}
	for i, r := range []rune(out) {
		add(r, i)
		seen[r] = true
	}
	var rest []rune
	for _, side := range sides {
		for r := range side {
			if !seen[r] {
				seen[r] = true
				rest = append(rest, r)
			}
		}
	}
	slices.Sort(rest)
	for _, r := range rest {
		add(r, -1)
	}
}

// orient makes the result's fastest dimension part of N and orders the loops
// of each group: by the result where it has them, else by the operand that is
// contiguous along k.
func (c *Contraction) orient() {
	byC := func(x, y Loop) int { return cmp.Compare(y.C, x.C) }
	for _, g := range []Group{c.Z, c.M, c.N} {
		slices.SortStableFunc(g, byC)
	}
	if fastest(c.M) < fastest(c.N) && c.B >= 0 {
		c.A, c.B = c.B, c.A
		c.ElemA, c.ElemB = c.ElemB, c.ElemA
		c.M, c.N = c.N, c.M
		for _, g := range []Group{c.Z, c.M, c.N, c.K} {
			for i := range g {
				g[i].A, g[i].B = g[i].B, g[i].A
			}
		}
	}
	byA := func(x, y Loop) int { return cmp.Or(cmp.Compare(y.A, x.A), cmp.Compare(y.B, x.B)) }
	byB := func(x, y Loop) int { return cmp.Or(cmp.Compare(y.B, x.B), cmp.Compare(y.A, x.A)) }
	slices.SortStableFunc(c.K, byA)
	other := slices.Clone(c.K)
	slices.SortStableFunc(other, byB)
	parts := func(g Group) int { return len(g.Parts(StrideA)) + len(g.Parts(StrideB)) }
	if c.K.Run(StrideA) == 1 && other.Run(StrideB) > 1 || c.K.Run(StrideA) > 1 == (other.Run(StrideB) > 1) && parts(other) < parts(c.K) {
		c.K = other
	}
}

// fastest is the least stride that the result has in a group.
func fastest(g Group) int64 {
	least := int64(1) << 62
	for _, l := range g {
		least = min(least, l.C)
	}
	return least
}
