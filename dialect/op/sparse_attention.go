package op

import (
	"math"
	"slices"
	"strings"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// storedAttention is an attention to what a sparse tensor stores. Its values are dense, with a letter for each dimension; letters
// that the sparse tensor has are those of its dimensions.
type storedAttention struct {
	pattern, bias    *ir.Value // sparse; its values are added to the scores, nil: none
	dims             []int     // the letters of pattern
	key              int       // the letter that the softmax is over
	q, k, v          *ir.Value
	ofQ, ofK, ofV    []int
	spread           [2][]int // of q and k, where they have dimensions of size 1 that broadcast: the letters of all dimensions
	output           []int
	scale, slope     float64
	adds             bool      // scores are sums of a number of the query and one of the key, not products
	w                *ir.Value // weights of the elements of a sum of rows of q and k; nil: none
	ofW, wRows       []int     // letters of w, and those that rows has
	leak             float64   // factor of the elements of that sum that are below 0
	heads            []int     // letters of heads that pattern lacks
	grouped          bool      // the last of heads is a multiple of that of k and v
	depth, value     []int     // letters of a row of q and k, and of v
	rows, ownBlock   []int     // letters of the levels above the keys, and of the places in their blocks
	keyRows          []int     // those of rows that k and v have
	withinKey        []int
	shared           bool // k and v have no heads
	of               func(v *ir.Value) []*ir.Value
	parts            []*ir.Op // that it takes the place of, besides the last one
	elem             types.Elem
	result, sums     *types.Tensor // of the op, sums may be nil
	contractedSparse *contractedSparse
}

// LowerStoredAttention writes o, a contraction with the softmax of sampled products, as an
// attention that keeps no score: what it and the ops before it compute, from the parts of
// values that of gives. ok is false where it is none, or where scores or probabilities have
// other uses.
func LowerStoredAttention(b *ir.Builder, o *ir.Op, of func(v *ir.Value) []*ir.Value) (results [][]*ir.Value, ok bool) {
	if !IsSparse(o) || pieced(o) != nil || len(o.Operands) != 2 || len(o.Results) != 1 || o.Bad || !Valid(o) {
		return nil, false
	}
	a := &storedAttention{scale: 1, slope: 1, of: of, result: out(o, 0)}
	if !a.second(o) {
		return nil, false
	}
	l := &lowering{Builder: NewBuilder(b, nil), o: o, results: make([][]*ir.Value, 1)}
	if !a.arrange(l) {
		return nil, false
	}
	l.run(a.lower)
	if l.problem != nil || l.Err() != nil {
		l.Undo()
		return nil, false
	}
	return l.results, true
}

// second goes back from o, the contraction with the values.
func (a *storedAttention) second(o *ir.Op) bool {
	eq, err := EquationOf(o)
	if err != nil || eq.Diagonal() {
		return false
	}
	p := 0
	if in(o, 0).Format == nil {
		p = 1
	}
	if in(o, p).Format == nil || in(o, 1-p).Format != nil {
		return false
	}
	softmax := alone(o.Operands[p], "dm.softmax")
	if softmax == nil {
		return false
	}
	a.parts = append(a.parts, softmax)
	d, ok := Dim(softmax, "dim", in(softmax, 0).Rank())
	if !ok || !a.scores(softmax.Operands[0], d) {
		return false
	}
	names := map[byte]int{}
	for i := range eq.Inputs[p] {
		names[eq.Inputs[p][i]] = a.dims[i]
	}
	const fresh = 1 << 10 // beyond all characters
	rename := func(s string) (out []int) {
		for i := range s {
			if names[s[i]] == 0 {
				names[s[i]] = fresh + int(s[i])
			}
			out = append(out, names[s[i]])
		}
		return out
	}
	a.v, a.ofV, a.output = o.Operands[1-p], rename(eq.Inputs[1-p]), rename(eq.Output)
	t := asTensor(a.pattern.Type)
	for i, c := range a.ofV {
		if n := slices.Index(a.dims, c); n >= 0 && !sameDim(in(o, 1-p).Shape[i], t.Shape[n]) {
			return false // it broadcasts
		}
	}
	return true
}

// alone is the op called name that gives v, if v has one use; nil for any other.
func alone(v *ir.Value, name string) *ir.Op { return withUses(v, name, 1) }

// withUses is alone of a value with so many uses.
func withUses(v *ir.Value, name string, uses int) *ir.Op {
	if v.Op == nil || v.Op.Name != name || len(v.Uses) != uses || v.Op.Bad || !Valid(v.Op) {
		return nil
	}
	return v.Op
}

// scores goes back from the scores, of which dimension d is normalized, to the sampled product or sum.
func (a *storedAttention) scores(v *ir.Value, d int) bool {
	uses := 1
	if x, slope, parts := leaky(v); x != nil {
		a.parts, a.slope = append(a.parts, parts...), slope
		v, uses = x, 2
	}
	for ; ; uses = 1 {
		if o := withUses(v, "dm.sample", uses); o != nil {
			a.parts = append(a.parts, o)
			return a.weighted(o, d) || a.sampled(o, d) || a.outer(o, d)
		}
		if x, by, ok := scaled(v); ok && len(v.Uses) == uses {
			a.parts = append(a.parts, v.Op)
			v, a.scale = x, a.scale*by
			continue
		}
		o := withUses(v, "dm.add", uses)
		if o == nil || !mergesNothing(o) {
			return false
		}
		a.parts = append(a.parts, o)
		if a.summed(o, d) {
			return true
		}
		if a.bias != nil || a.scale != 1 {
			return false
		}
		for i, w := range o.Operands {
			a.bias = o.Operands[1-i]
			if sum := alone(w, "dm.add"); sum != nil && mergesNothing(sum) && a.summed(sum, d) {
				a.parts = append(a.parts, sum)
				return true
			}
		}
		i := slices.IndexFunc(o.Operands, func(v *ir.Value) bool { return reaches(v, "dm.sample") })
		if i < 0 {
			return false
		}
		v, a.bias = o.Operands[i], o.Operands[1-i]
	}
}

// mergesNothing reports whether both operands of o store the same elements.
func mergesNothing(o *ir.Op) bool {
	return in(o, 0).Format != nil && in(o, 1).Format != nil && SamePattern(o.Operands[0], o.Operands[1])
}

// leaky is the x of which v is the larger one of x and x times slope, a number up to 1, and the ops that compute it; nil where v is
// none, or v and x have other uses.
func leaky(v *ir.Value) (x *ir.Value, slope float64, parts []*ir.Op) {
	o := alone(v, "dm.max")
	if o == nil {
		return nil, 0, nil
	}
	for i, y := range o.Operands {
		x, by, ok := scaled(y)
		if ok && by <= 1 && x == o.Operands[1-i] && len(x.Uses) == 2 && len(y.Uses) == 1 {
			return x, by, []*ir.Op{o, y.Op}
		}
	}
	return nil, 0, nil
}

// summed takes the queries and keys of o, the sum of a number for each query and one for each key at stored elements.
func (a *storedAttention) summed(o *ir.Op, d int) bool {
	var of [2]*ir.Op // the samples of queries and keys
	var letters [2][]int
	for _, v := range o.Operands {
		s := alone(v, "dm.sample")
		if s == nil || len(s.Operands) != 2 || in(s, 1).Format != nil {
			return false
		}
		eq, p := SampleEquation(s)
		if p != nil || len(eq.Inputs[0]) != len(eq.Output)-1 {
			return false
		}
		var dims []int // of the pattern, counted from 1
		for i := range eq.Inputs[0] {
			dims = append(dims, strings.IndexByte(eq.Output, eq.Inputs[0][i])+1)
		}
		if slices.Contains(dims, 0) { // a letter that is summed over
			return false
		}
		k := 0
		if slices.Contains(dims, d+1) {
			k = 1
		}
		of[k], letters[k] = s, dims
	}
	if of[0] == nil || of[1] == nil {
		return false
	}
	a.parts = append(a.parts, of[:]...)
	a.pattern, a.q, a.k = of[0].Operands[0], of[0].Operands[1], of[1].Operands[1]
	a.ofQ, a.ofK = letters[0], letters[1]
	for i := range asTensor(a.pattern.Type).Rank() {
		a.dims = append(a.dims, i+1)
	}
	a.key, a.adds = d+1, true
	return true
}

// sameElem reports whether the operand of o has the element type of its result.
func sameElem(o *ir.Op) bool { return in(o, 0).Elem == out(o, 0).Elem }

// reaches reports whether v is the result of the op called name, scaled or not, and of nothing else's use.
func reaches(v *ir.Value, name string) bool {
	for {
		x, _, ok := scaled(v)
		if !ok || len(v.Uses) != 1 {
			return alone(v, name) != nil
		}
		v = x
	}
}

// scaled is the x of which v is a multiple by a number.
func scaled(v *ir.Value) (x *ir.Value, by float64, ok bool) {
	o := v.Op
	if o == nil || o.Name != "dm.mul" && o.Name != "dm.div" || o.Bad || !Valid(o) {
		return nil, 0, false
	}
	for i := range o.Operands {
		n, known := splat(o.Operands[1-i])
		if x = o.Operands[i]; !known || !sameShape(in(o, i).Shape, out(o, 0).Shape) || o.Name == "dm.div" && i == 1 {
			continue
		}
		if o.Name == "dm.div" {
			n = 1 / n
		}
		return x, n, true
	}
	return nil, 0, false
}

// splat is the number that a constant has everywhere.
func splat(v *ir.Value) (float64, bool) {
	if v.Op == nil || v.Op.Name != Constant {
		return 0, false
	}
	d, ok := Attr(v.Op, "value").(*types.Dense)
	if !ok || d.File() != nil || !d.Splat && d.Len() != 1 {
		return 0, false
	}
	return d.Float(0), true
}

// sampled takes the queries and keys of o, a dm.sample.
func (a *storedAttention) sampled(o *ir.Op, d int) bool {
	eq, p := SampleEquation(o)
	if p != nil || len(o.Operands) != 3 {
		return false
	}
	a.pattern, a.dims = o.Operands[0], lettersOf(eq.Output)
	a.key = a.dims[d]
	a.q, a.k, a.ofQ, a.ofK = o.Operands[1], o.Operands[2], lettersOf(eq.Inputs[0]), lettersOf(eq.Inputs[1])
	if slices.Contains(a.ofQ, a.key) {
		a.q, a.k, a.ofQ, a.ofK = a.k, a.q, a.ofK, a.ofQ
	}
	for _, v := range []**ir.Value{&a.q, &a.k} {
		for {
			x, by, ok := scaled(*v)
			if !ok {
				break
			}
			if len((*v).Uses) == 1 {
				a.parts = append(a.parts, (*v).Op)
			}
			*v, a.scale = x, a.scale*by
		}
	}
	return true
}

// arrange finds the parts that dimensions have, and reports whether there is an op for these.
func (a *storedAttention) arrange(l *lowering) bool {
	t := asTensor(a.pattern.Type)
	a.elem = asTensor(a.q.Type).Elem
	for _, v := range []*ir.Value{a.k, a.v, a.bias, a.w} {
		if v != nil && asTensor(v.Type).Elem != a.elem {
			return false
		}
	}
	if a.result.Elem != a.elem || !slices.Contains(floats, a.elem) {
		return false
	}
	c := &contractedSparse{entries: l.entriesOf(t, a.of(a.pattern)), dims: a.dims, output: a.output}
	a.contractedSparse = c
	if c.core < 0 || c.levels()[c.core].Kind != types.CompressedLevel || c.letter(c.core) != a.key {
		return false
	}
	var within []int // heads that the pattern has below the keys
	for i, level := range c.levels() {
		x := c.letter(i)
		switch {
		case i == c.core:
		case i < c.core && (level.Kind != types.DenseLevel || level.Mod > 0):
			return false
		case i < c.core:
			a.rows = append(a.rows, x)
		case x == inside(a.key):
			a.withinKey = append(a.withinKey, x)
		case level.Mod > 0:
			a.ownBlock = append(a.ownBlock, x)
		default:
			within = append(within, x)
		}
	}
	a.heads = append(a.heads, within...)
	if a.grouped && len(within) > 0 || len(a.withinKey) > 1 {
		return false
	}
	for _, x := range a.ofQ {
		if !slices.Contains(a.dims, x) && !slices.Contains(a.heads, x) {
			a.depth = append(a.depth, x)
		}
	}
	for _, x := range a.ofV {
		if !slices.Contains(a.dims, x) && !slices.Contains(a.heads, x) {
			a.value = append(a.value, x)
		}
	}
	for _, x := range a.rows {
		if slices.Contains(a.ofK, x) {
			if c.block(x) > 0 {
				return false
			}
			a.keyRows = append(a.keyRows, x)
		}
	}
	a.shared = !slices.ContainsFunc(a.heads, func(x int) bool { return slices.Contains(a.ofK, x) })
	kv := append(slices.Clone(a.keyRows), a.key)
	if !a.shared {
		kv = append(kv, a.heads...)
	}
	if a.w != nil && !a.arrangeWeights() {
		return false
	}
	same := func(have []int, want ...[]int) bool {
		all := slices.Concat(want...)
		have = slices.Clone(have)
		slices.Sort(all)
		slices.Sort(have)
		return slices.Equal(have, all)
	}
	return same(a.ofQ, a.heads, a.rows, a.depth) && same(a.ofK, kv, a.depth) && same(a.ofV, kv, a.value) && same(a.output, a.heads, a.rows, a.value)
}

// lower writes the attention: heads, then rows as the levels order them.
func (a *storedAttention) lower(l *lowering) {
	c := a.contractedSparse
	c.lowering = l
	queries := slices.Concat(a.rows, a.ownBlock)
	keys := append(append(slices.Clone(a.keyRows), a.key), a.withinKey...)
	kept := a.heads
	if a.shared {
		kept = nil
	}
	levels := make([]int, 0, len(a.keyRows)+1)
	for i := range c.core {
		if slices.Contains(a.keyRows, c.letter(i)) {
			levels = append(levels, i)
		}
	}
	q, k := a.of(a.q)[0], a.of(a.k)[0]
	if a.spread[0] != nil {
		q, k = l.plain(term{q, a.spread[0]}).v, l.plain(term{k, a.spread[1]}).v
	}
	operands := []*ir.Value{
		a.matrices(q, a.ofQ, a.heads, queries, a.depth), a.matrices(k, a.ofK, kept, keys, a.depth), a.matrices(a.of(a.v)[0], a.ofV, kept, keys, a.value),
		c.positions(c.core), c.linear(append(levels, c.core), c.core),
	}
	block := func(letters []int) (n int) {
		n = 1
		for _, x := range letters {
			n *= int(c.block(-x))
		}
		return n
	}
	r, b := block(a.ownBlock), block(a.withinKey)
	if a.bias != nil {
		e := l.entriesOf(asTensor(a.bias.Type), a.of(a.bias))
		x := term{e.values(), c.ofValues()}
		heads := those(a.heads, c.ofValues(), true)
		x = c.arranged(x, slices.Concat(heads, []int{entry}, a.ownBlock, a.withinKey))
		shape := []dim.Dim{dim.Const(1), c.count(c.core), dim.Const(int64(r)), dim.Const(int64(b))}
		for i := range heads {
			shape[0] = shape[0].Mul(asTensor(x.v.Type).Shape[i])
		}
		operands = append(operands, l.Reshape(x.v, shape...))
	}
	if a.w != nil {
		operands = append(operands, a.weights(l))
	}
	var attrs []types.Named
	if r*b > 1 {
		attrs = append(attrs, types.Named{Name: "block", Value: IntList(r, b)})
	}
	if a.scale != 1 {
		attrs = append(attrs, types.Named{Name: "scale", Value: types.Float{V: a.scale}})
	}
	if a.adds {
		attrs = append(attrs, types.Named{Name: "scores", Value: types.Keyword("sum")})
	}
	if a.slope != 1 {
		attrs = append(attrs, types.Named{Name: "slope", Value: types.Float{V: a.slope}})
	}
	if a.w != nil {
		attrs = append(attrs, types.Named{Name: leakAttr, Value: types.Float{V: a.leak}})
	}
	tokens := asTensor(operands[0].Type).Shape
	ts := []types.Type{&types.Tensor{Shape: []dim.Dim{tokens[0], tokens[1], asTensor(operands[2].Type).Shape[2]}, Elem: a.elem}}
	if a.sums != nil {
		ts = append(ts, &types.Tensor{Shape: tokens[:2], Elem: a.sums.Elem})
	}
	o := l.Value("segment_attention", operands, attrs, ts...).Op
	o.Loc = FusedLoc(l.o.Loc, a.parts)
	ys := o.Results
	l.results[0] = []*ir.Value{a.back(ys[0], a.value, a.output)}
	if a.sums != nil {
		l.results[1] = []*ir.Value{a.back(ys[1], nil, those(a.output, a.value, false))}
	}
}

// those are the letters of xs that ys has, or has not.
func those(xs, ys []int, has bool) []int {
	return slices.DeleteFunc(slices.Clone(xs), func(x int) bool { return slices.Contains(ys, x) != has })
}

// matrices is v with the letters as matrices: heads, rows and elements of a row.
func (a *storedAttention) matrices(v *ir.Value, letters, heads, rows, last []int) *ir.Value {
	c := a.contractedSparse
	x := c.arranged(c.blocked(term{v, letters}), slices.Concat(heads, rows, last))
	shape, n := asTensor(x.v.Type).Shape, len(heads)
	return c.Reshape(x.v, dim.Prod(shape[:n]...), dim.Prod(shape[n:n+len(rows)]...), dim.Prod(shape[n+len(rows):]...))
}

// back is y, rows of queries that end in the letters of last, with the letters of output.
func (a *storedAttention) back(y *ir.Value, last, output []int) *ir.Value {
	c := a.contractedSparse
	size := func(v *ir.Value, letters []int, x int) dim.Dim {
		return asTensor(v.Type).Shape[slices.Index(letters, x)]
	}
	var shape []dim.Dim
	of := a.ofQ
	if a.spread[0] != nil {
		of = a.spread[0]
	}
	for _, x := range a.heads {
		shape = append(shape, size(a.q, of, x))
	}
	for i := range c.core {
		shape = append(shape, c.size(i))
	}
	for _, x := range a.ownBlock {
		shape = append(shape, dim.Const(c.block(-x)))
	}
	for _, x := range last {
		shape = append(shape, size(a.v, a.ofV, x))
	}
	c.output = output
	return c.unblocked(term{c.Reshape(y, shape...), slices.Concat(a.heads, a.rows, a.ownBlock, last)})
}

// attended is how dm.attention takes a sparse mask.
var attended = &Sparse{
	Doc: "A sparse mask, of the last dimensions of the scores: queries see the keys that it stores, and its values are added to their scores. Its compressed level walks the keys. Without `causal` and `dropout`, which the mask can state.",
	lower: func(l *lowering) {
		o := l.o
		a := &storedAttention{
			q: o.Operands[0], k: o.Operands[1], v: o.Operands[2], scale: Float(o, "scale"), slope: 1, result: l.out[0],
			of: func(v *ir.Value) []*ir.Value { return l.in[slices.Index(o.Operands, v)] },
		}
		if len(l.out) > 1 {
			a.sums = l.out[1]
		}
		mask := OperandNumber(o, "mask")
		if i := slices.IndexFunc(o.Operands, func(v *ir.Value) bool { return asTensor(v.Type).Format != nil }); i != mask {
			l.refuse(problem("DM134", i, "%s is sparse, and of an attention the mask alone can be", valueName(o.Operands[i])).help("make it dense: dm.convert_format"))
		}
		for _, name := range []string{"causal", "dropout"} {
			if Bool(o, name) || Float(o, name) > 0 {
				l.refuse(attrProblem("DM134", name, "%s beside a sparse mask", name).help("state in the mask which keys a query sees"))
			}
		}
		q, m := in(o, 0), in(o, mask)
		n := q.Rank()
		if Attr(o, "scale") == nil {
			depth, known := q.Shape[n-1].Int()
			if !known || depth == 0 {
				l.refuse(problem("DM134", 0, "the depth %s is no number, of which the scale is made", dimText(q.Shape[n-1])).help("state the scale, or give the size"))
			}
			a.scale = 1 / math.Sqrt(float64(depth))
		}
		a.pattern, a.bias = o.Operands[mask], o.Operands[mask]
		// Letters: of the batch and the heads, then queries, keys, depth and value depth.
		for d := range n - 1 {
			a.ofQ, a.output = append(a.ofQ, d+1), append(a.output, d+1)
		}
		a.key = n
		a.ofK = append(slices.Clone(a.ofQ[:n-2]), a.key)
		a.ofV, a.ofQ = append(slices.Clone(a.ofK), n+2), append(a.ofQ, n+1)
		a.ofK, a.output = append(a.ofK, n+1), append(a.output, n+2)
		a.dims = append(slices.Clone(a.output[:n-1]), a.key)[n-m.Rank():]
		a.heads = slices.Clone(a.output[:n-m.Rank()])
		sizes := append(slices.Clone(q.Shape[:n-1]), in(o, 1).Shape[n-2])[n-m.Rank():]
		for d := range sizes {
			if !sameDim(sizes[d], m.Shape[d]) {
				l.refuse(problem("DM134", mask, "the mask has %s where the scores have %s", dimText(m.Shape[d]), dimText(sizes[d])).help("a sparse mask lacks leading dimensions, or has their size"))
			}
		}
		a.grouped = n > 2 && !sameDim(q.Shape[n-3], in(o, 1).Shape[n-3])
		if a.grouped && slices.Contains(a.dims, n-2) || !a.arrange(l) || len(a.heads) > n-m.Rank() && n > m.Rank() {
			l.refuse(problem("DM134", mask, "there is no code for an attention with a mask of this format").
				help("store it by rows of queries, with the keys compressed: #dm.csr or #dm.bsr; heads that share keys have one mask"))
		}
		a.lower(l)
	},
}
