package kernel

import (
	"cmp"
	"math"
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// Tiled is a contraction as batched matrix products,
//
//	C[z, m, n] = Σ over k of A[z, m, k] · B[z, n, k]
//
// where each of z, m, n and k is one index that the letters of its group are
// flattened to. Nothing is permuted: operands and results are expressions at
// those indices, whose loads and stores address memory by strides. Letters
// whose dimensions lie side by side in a tensor merge in its address.
type Tiled struct {
	Batch      int64 // values of z
	Rows, Cols int64 // of m and n
	Depth      int64 // of k
	Products   int   // 1, or 2 that share A and whose sums the results combine
	// Elems are the element types of the operands as they are multiplied, TF32 where they may be rounded to it; Elem that of the
	// sums, as the op's result has it.
	Elems [2]types.Elem
	Elem  types.Elem
	Half  bool // every product and partial sum is rounded to f16
	// Reduces reports whether there are reduced results.
	Reduces bool

	form   *Form
	c      *Contraction
	groups map[string][]letterUse
	left   int // which operand of the op is A
	packed bool
}

// Flat are the variables of an expression of a Tiled; nil where there is one
// value. A variable along which there are V neighbours is V·(its value) + Lane.
type Flat struct {
	Z, M, N, K *Atom
	Lane       *Atom // nil where V is 1
	V          int64
}

// letterUse is how a letter is used, before letters are grouped.
type letterUse struct {
	letter byte
	size   int64
	uses   [2]bool  // whether the operands depend on it
	step   [2]int64 // stride in the largest load of each operand; 0 where it is not constant
	out    int64    // stride in the first result
}

// Tiled converts f, a contraction, to the form of tiled matrix products.
func (f *Form) Tiled() (*Tiled, error) {
	c, err := ContractionOf(f.Main)
	if err != nil {
		return nil, reason(f.Main, "%s", err)
	}
	return f.tiled(c)
}

// tiled is f, whose products are those of c.
func (f *Form) tiled(c *Contraction) (*Tiled, error) {
	if len(f.Mains) > 2 {
		return nil, reason(f.Mains[2], "three contractions in one kernel")
	}
	if len(f.Outs) == 0 {
		return nil, reason(f.Main, "the kernel only reduces the contraction's elements")
	}
	shared := 0 // the operand common to all products
	for _, o := range f.Mains {
		if o.Operands[0] != f.Main.Operands[0] {
			shared = 1
		}
	}
	letters := f.letters(c)
	group := map[string][]letterUse{}
	for _, l := range letters {
		if l.size == 1 {
			continue
		}
		name := "m"
		switch {
		case l.letter == c.Groups, l.letter == convPhase:
			name = "z"
		case l.out < 0:
			name = "k"
		case l.uses[0] && l.uses[1]:
			name = "z"
		case l.uses[1]:
			name = "n"
		}
		group[name] = append(group[name], l)
	}
	// The result's fastest dimension becomes one of n, so that stores of a tile
	// are contiguous; with two products n is always the dimension of the operand
	// that differs.
	// Groups divide the rows.
	left := 0
	if c.Groups == 0 && fastest(group["m"]) < fastest(group["n"]) {
		left = 1
	}
	if len(f.Mains) > 1 {
		if shared != 0 && c.Groups != 0 {
			return nil, reason(f.Mains[1], "two grouped products of different rows")
		}
		if left != shared && len(group["m"]) > 0 && len(group["n"]) > 0 {
			return nil, reason(f.Main, "the results of two contractions would be stored across their rows")
		}
		left = shared
	}
	if left == 1 {
		group["m"], group["n"] = group["n"], group["m"]
	}
	byOut := func(x, y letterUse) int { return cmp.Compare(y.out, x.out) }
	for _, name := range []string{"z", "m", "n"} {
		slices.SortStableFunc(group[name], byOut)
	}
	if c.phases == nil { // those have their taps in order, each with all channels
		sortSums(group["k"], left)
	}
	t := &Tiled{
		Products: len(f.Mains), Elem: f.Main.Results[0].Elem(), Half: c.Half,
		Elems: [2]types.Elem{f.Main.Operands[left].Elem(), f.Main.Operands[1-left].Elem()},
		form:  f, c: c, groups: group, left: left, Reduces: f.Reduces(),
	}
	if op.TF32(f.Main) {
		t.Elems = [2]types.Elem{types.TF32, types.TF32}
	}
	for name, size := range map[string]*int64{"z": &t.Batch, "m": &t.Rows, "n": &t.Cols, "k": &t.Depth} {
		*size = Product(t.sizes(name))
	}
	return t, nil
}

// sortSums sorts what is summed over, so that neighbours follow each other in the operand that is A, if it has some, or else in the other one.
func sortSums(sums []letterUse, left int) {
	distance := func(n int64) int64 { return max(n, -n) } // a window that is reversed has negative strides
	along := func(i int) func(x, y letterUse) int {
		return func(x, y letterUse) int {
			return cmp.Or(cmp.Compare(distance(y.step[i]), distance(x.step[i])), cmp.Compare(distance(y.step[1-i]), distance(x.step[1-i])))
		}
	}
	slices.SortStableFunc(sums, along(left))
	if n := len(sums); n > 0 && sums[n-1].step[left] != 1 {
		slices.SortStableFunc(sums, along(1-left))
		// The taps of a window have no constant stride in the image, whose channels may be last in the other's order.
		if fast := func(l letterUse) bool { return l.step[1-left] == 1 }; !fast(sums[n-1]) && slices.ContainsFunc(sums, fast) {
			slices.SortStableFunc(sums, along(left))
		}
	}
}

// Main is the op whose products these are.
func (t *Tiled) Main() *ir.Op { return t.c.Op }

// Turned reports whether A is the op's second operand.
func (t *Tiled) Turned() bool { return t.left == 1 }

// Elements is how many elements A and B have: of an operand that a window moves over, or that others repeat, fewer than the
// matrices of the product.
func (t *Tiled) Elements() (a, b int64) {
	of := func(i int, n int64) int64 { return min(t.Batch*n*t.Depth, Product(shapeOf(t.c.Op.Operands[i]))) }
	return of(t.left, t.Rows), int64(t.Products) * of(1-t.left, t.Cols)
}

// letters are the letters of c and how the operands, of one product at least, and the
// first result depend on them.
func (f *Form) letters(c *Contraction) []letterUse {
	e := newEvaluator(newSpace(), f.Ops)
	of, atoms := map[byte]Index{}, map[byte]*Atom{}
	var out []letterUse
	for _, l := range c.letters() {
		if n := c.Sizes[l]; n > 1 {
			atoms[l] = e.Loop("l", n)
			of[l] = IndexOf(atoms[l])
		}
		out = append(out, letterUse{letter: l, size: c.Sizes[l], out: -1})
	}
	for i := range 2 {
		var main *Expr
		for _, o := range f.Mains {
			each := *c // of the same form except for one operand
			each.Op = o
			x := each.operand(e, i, of)
			first := main == nil
			if first {
				main = LargestLoad(x)
			}
			for j := range out {
				a := atoms[out[j].letter]
				if a == nil {
					continue
				}
				out[j].uses[i] = out[j].uses[i] || x.DependsOn(a) || main == nil && c.indexes(i, out[j].letter)
				if first && main != nil {
					out[j].step[i] = main.At.coefficient(a)
				}
			}
		}
	}
	first := f.Outs[0]
	for i := range out {
		if out[i].letter == convPhase {
			out[i].out = math.MaxInt64 // phases follow each other
		}
	}
	for i, d := range c.outDims() {
		out[i].out = 0
		if a := first.Loops[d.dim]; a != nil {
			out[i].out = first.At.coefficient(a) * d.times
		}
	}
	return out
}

// LargestLoad is the load that x is, or else that in x of the largest tensor, nil where there is none.
func LargestLoad(x *Expr) *Expr {
	if x.Op == Load { // and not of an index of it
		return x
	}
	var most *Expr
	Walk(x, func(y *Expr) {
		if y.Op == Load && (most == nil || Product(shapeOf(y.Buf)) > Product(shapeOf(most.Buf))) {
			most = y
		}
	})
	return most
}

// coefficient is the stride of x in a, 0 where it is not constant.
func (x Index) coefficient(a *Atom) int64 {
	for _, t := range x.Terms {
		if t.Atom == a {
			return t.Coef
		}
	}
	return 0
}

// fastest is the least stride of the result in a group.
func fastest(g []letterUse) int64 {
	least := int64(1) << 62
	for _, l := range g {
		if l.out > 0 {
			least = min(least, l.out)
		}
	}
	return least
}

func (t *Tiled) sizes(group string) []int64 {
	sizes := make([]int64, len(t.groups[group]))
	for i, l := range t.groups[group] {
		sizes[i] = l.size
	}
	return sizes
}

// Packed is t for a loop that multiplies the elements which a structured operand stores: that operand's k counts these.
func (t *Tiled) Packed() *Tiled {
	p := *t
	p.packed = true
	return &p
}

// stored is the contraction for the elements of operand i that the loop multiplies.
func (t *Tiled) stored(i int) Contraction {
	c := *t.c
	c.packed = t.packed && c.structured(i)
	return c
}

// Structured reports whether an operand has two of each four elements along k: A, or B where turned.
func (t *Tiled) Structured() bool { return t.c.structured(0) }

// Metadata is the word at z, the row of the structured operand and k, which counts words.
func (t *Tiled) Metadata() (*Expr, Flat) {
	e, of, flat := t.flatten("", 1, true)
	v := t.c.Op.Operands[2]
	shape := shapeOf(v)
	idx := make([]Index, len(shape))
	last := len(shape) - 1
	for d, n := range shape[:last] {
		if n > 1 {
			idx[d] = of[t.c.In[0][d]]
		}
	}
	if flat.K = nil; shape[last] > 1 {
		flat.K = e.Loop("w", shape[last])
		idx[last] = IndexOf(flat.K)
	}
	return e.at(v, idx), flat
}

// flatten linearizes the letters of every group to one index, with vectors of v
// in the group along. packed: k counts the elements of an operand that has half of them.
func (t *Tiled) flatten(along string, v int64, packed bool) (e *evaluator, of map[byte]Index, flat Flat) {
	e = newEvaluator(newSpace(), t.form.Ops)
	of = map[byte]Index{}
	flat.V = v
	for _, g := range []struct {
		name string
		atom **Atom
	}{{"z", &flat.Z}, {"m", &flat.M}, {"n", &flat.N}, {"k", &flat.K}} {
		sizes := t.sizes(g.name)
		if packed && g.name == "k" {
			sizes[0] /= 2 // the only one
		}
		n := Product(sizes)
		if n == 1 {
			continue
		}
		var x Index
		if g.name == along && v > 1 {
			flat.Lane = e.Loop("lane", v)
			*g.atom, x = e.wide(g.name, n, v, flat.Lane)
		} else {
			*g.atom = e.Loop(g.name, n)
			x = IndexOf(*g.atom)
		}
		for i, x := range e.Unlinear(x, sizes) {
			of[t.groups[g.name][i].letter] = x
		}
	}
	return e, of, flat
}

// A is the shared operand at z, m and k; vectors of v are along "m" or "k".
func (t *Tiled) A(along string, v int64) (*Expr, Flat) {
	c := t.stored(t.left)
	e, of, flat := t.flatten(along, v, c.packed)
	return c.operand(e, t.left, of), flat
}

// B is the other operand of each product at z, n and k; vectors of v are along
// "n" or "k".
func (t *Tiled) B(along string, v int64) ([]*Expr, Flat) {
	c := t.stored(1 - t.left)
	e, of, flat := t.flatten(along, v, c.packed)
	var out []*Expr
	for _, o := range t.form.Mains {
		c.Op = o // of the same form except for this operand
		out = append(out, c.operand(e, 1-t.left, of))
	}
	return out, flat
}

// results is an evaluator at z, m and n in which Acc is the accumulated sum,
// and the index of the product's elements in the values computed from them.
func (t *Tiled) results(v int64) (*evaluator, map[*ir.Value]place, map[byte]Index, Flat) {
	e, of, flat := t.flatten("n", v, false)
	f, idx := t.form, t.c.out(e, of)
	e.acc = func(o *ir.Op, at []Index) *Expr {
		which := slices.Index(f.Mains, o)
		if which < 0 || !slices.EqualFunc(at, idx, Index.Equal) {
			return nil
		}
		return t.inGroups(e, of, e.expr(Expr{Op: Acc, Elem: o.Results[0].Elem(), Int: int64(which), At: alone(flat.Lane)}))
	}
	places := map[*ir.Value]place{}
	for _, o := range f.Mains {
		places[o.Results[0]] = place{idx: idx}
	}
	for _, o := range f.Ops {
		e.follow(o, places)
	}
	return e, places, of, flat
}

// Results are the results at z, m and n, with vectors of v along n, and the
// reduced results; Acc, at the lane's number, is the accumulated sum.
func (t *Tiled) Results(v int64) (outs []Out, reductions []ReducedResult, flat Flat, err error) {
	e, places, of, flat := t.results(v)
	f := *t.form
	f.eval = e
	uneven := t.uneven(e, of)
	for _, v := range f.Outputs {
		o, reduced := reductionOf(v, places)
		if !reduced {
			stored, err := f.stores(v, places)
			if err != nil {
				return nil, nil, flat, err
			}
			for i := range stored {
				stored[i].If = append(stored[i].If, uneven...)
			}
			outs = append(outs, stored...)
			continue
		}
		x := o.Operands[0]
		r := ReducedResult{Value: v, Kind: ReduceKind(o), X: e.at(x, places[x].idx)}
		r.X = e.existing(uneven, r.X, r.Kind)
		if err := t.kept(&r, o); err != nil {
			return nil, nil, flat, err
		}
		reductions = append(reductions, r)
	}
	if e.why != nil {
		return nil, nil, flat, e.why
	}
	return outs, reductions, flat, nil
}

// DependsOn reports whether x depends on a.
func (x *Expr) DependsOn(a *Atom) bool { return slices.Contains(x.free, a) }

// Along describes x as a function of a: from every multiple of run on, x grows
// by step for each increment of a within run values. A run of 1 states nothing.
func (x Index) Along(a *Atom) (step, run int64) {
	run = a.Max + 1
	for _, t := range x.Terms {
		s, r := t.Atom.along(a)
		step += t.Coef * s
		run = GCD(run, r)
	}
	return step, run
}

// along is Along for one atom.
func (b *Atom) along(a *Atom) (step, run int64) {
	whole := a.Max + 1
	if b == a {
		return 1, whole
	}
	switch b.Kind {
	case Var:
		return 0, whole
	case Datum:
		if b.E.DependsOn(a) {
			return 0, 1
		}
		return 0, whole
	case Within:
		return b.X.Along(a)
	}
	s, r := b.X.Along(a)
	if s == 0 {
		return 0, r
	}
	if b.Kind == Table {
		return 0, 1
	}
	// Within a run X grows from a multiple of s·run plus the rest of X: it does
	// not cross a multiple of N if that rest is a multiple of the run's span.
	for _, t := range b.X.Terms {
		if t.Atom != a && t.Coef%b.N != 0 {
			return 0, 1
		}
	}
	if b.X.C != 0 || s < 0 || b.N%s != 0 {
		return 0, 1
	}
	r = GCD(r, b.N/s)
	if b.Kind == Div {
		return 0, r
	}
	return s, r
}

// Multiple reports whether x is a multiple of v wherever a is.
func (x Index) Multiple(v int64, a *Atom) bool {
	if x.C%v != 0 {
		return false
	}
	for _, t := range x.Terms {
		switch {
		case t.Coef%v == 0, t.Atom == a:
		case t.Atom.Kind == Mod && t.Atom.N%v == 0 && t.Atom.X.Multiple(v, a):
		case t.Atom.Kind == Within && t.Atom.X.Multiple(v, a):
		case t.Atom.Kind == Table && !slices.ContainsFunc(t.Atom.Values, func(n int64) bool { return t.Coef*n%v != 0 }):
		default:
			return false
		}
	}
	return true
}

// Vector is the largest vector width along a, at most limit and a power of two,
// of an access at x: contiguous and aligned to its width.
func (x Index) Vector(a *Atom, limit int64) int64 {
	if a == nil {
		return 1
	}
	step, run := x.Along(a)
	if step != 1 {
		return 1
	}
	v := limit
	for v > 1 && (run%v != 0 || !x.Multiple(v, a)) {
		v /= 2
	}
	return v
}
