package cuda

import (
	"fmt"
	"math"
	"strings"

	"dmir/compile/kernel"
	"dmir/compile/tensor"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/gpu/artifact"
)

// attention is the geometry of a dm.attention or dm.attention_grad.
type attention struct {
	o             *ir.Op
	elem, sum     types.Elem // of the operands; of what is computed
	heads, group  int64      // over the whole batch; that share a key head
	queries, keys int64
	depth, value  int64
	scale         float64
	batch         []int64   // the dimensions of the heads
	mask          *ir.Value // nil: none
	maskShape     []int64   // as long as batch, queries and keys together
}

// attentionOf reads o, whose mask is operand number mask.
func attentionOf(o *ir.Op, mask int) (*attention, error) {
	var shapes [3][]int64
	for i := range shapes {
		s, ok := kernel.ShapeOf(o.Operands[i])
		if !ok || len(s) < 2 {
			return nil, fmt.Errorf("%s of a shape that is not known", o.Name)
		}
		shapes[i] = s
	}
	q, k, v := shapes[0], shapes[1], shapes[2]
	n := len(q)
	a := &attention{
		o: o, elem: kernel.ElemOf(o.Operands[0]), sum: types.F32, heads: 1, group: 1,
		queries: q[n-2], keys: k[n-2], depth: q[n-1], value: v[n-1], batch: q[:n-2],
	}
	if a.elem == types.F64 {
		a.sum = types.F64
	}
	a.scale = 1 / math.Sqrt(float64(a.depth))
	if op.Attr(o, "scale") != nil {
		a.scale = op.Float(o, "scale")
	}
	if math.IsInf(a.scale, 0) || math.IsNaN(a.scale) {
		return nil, fmt.Errorf("attention with the scale %g", a.scale)
	}
	keyHeads := int64(1)
	for d := range n - 2 {
		a.heads *= q[d]
		keyHeads *= k[d]
	}
	if keyHeads > 0 {
		a.group = a.heads / keyHeads
	}
	for _, n := range []int64{a.heads, a.queries, a.keys, a.depth, a.value} {
		if n < 1 || n > 1<<30 {
			return nil, fmt.Errorf("attention with a dimension of %d", n)
		}
	}
	if len(o.Operands) > mask {
		a.mask = o.Operands[mask]
		s, _ := kernel.ShapeOf(a.mask)
		for range n - len(s) {
			a.maskShape = append(a.maskShape, 1)
		}
		a.maskShape = append(a.maskShape, s...)
	}
	return a, nil
}

// dropout is the rate; 0 for none.
func (a *attention) dropout() float64 { return max(op.Float(a.o, "dropout"), 0) }

// describe is the prelude's struct of the geometry, called name.
func (a *attention) describe(name string) string {
	var threshold uint64
	keep, rate := 1.0, a.dropout()
	if rate > 0 {
		threshold, keep = tensor.Threshold(rate), 1/(1-rate)
	}
	var row, col, size int64
	at := "0"
	if m := a.maskShape; m != nil {
		n := len(m)
		if size = m[n-2] * m[n-1]; m[n-1] > 1 {
			col = 1
		}
		if m[n-2] > 1 {
			row = m[n-1]
		}
		at = a.parts("head", a.batch, m, func(d int) int64 { return within(m[:n-2], d) * size })
	}
	var b strings.Builder
	fmt.Fprintf(&b, "struct %s {\n", name)
	fmt.Fprintf(&b, "  static constexpr dm::i32 heads = %d, group = %d, queries = %d, keys = %d, depth = %d, value = %d;\n", a.heads, a.group, a.queries, a.keys, a.depth, a.value)
	fmt.Fprintf(&b, "  static constexpr bool causal = %t;\n", op.Bool(a.o, "causal"))
	fmt.Fprintf(&b, "  static constexpr double scale = %s, keep = %s;\n", double(a.scale), double(keep))
	fmt.Fprintf(&b, "  static constexpr dm::u64 seed = %dull, threshold = %dull;\n", uint64(op.Int(a.o, "seed")), threshold)
	fmt.Fprintf(&b, "  static constexpr dm::i64 mask_row = %d, mask_col = %d;\n", row, col)
	fmt.Fprintf(&b, "  DM_FN static dm::i64 mask_at(dm::i32 head) { return %s; }\n", at)
	if a.maskShape != nil {
		fmt.Fprintf(&b, "  static constexpr dm::i32 mask_repeats = %d;\n", a.heads/a.maskHeads())
		fmt.Fprintf(&b, "  DM_FN static dm::i32 mask_head(dm::i32 matrix, dm::i32 repeat) { return %s; }\n", a.maskHead())
	}
	b.WriteString("};\n")
	return b.String()
}

// double is a number in C++, in hexadecimal so that it is exact.
func double(v float64) string { return fmt.Sprintf("%x", v) }

// within is the number of elements of a row-major shape behind dimension d.
func within(shape []int64, d int) int64 {
	n := int64(1)
	for _, k := range shape[d+1:] {
		n *= k
	}
	return n
}

// parts sums the indices into which a row-major number falls, each times a step;
// dimensions in which a mask has size 1 count nothing.
func (a *attention) parts(number string, shape, mask []int64, step func(d int) int64) string {
	var terms []string
	for d, n := range shape {
		if n == 1 || mask[d] == 1 {
			continue
		}
		x := number
		if in := within(shape, d); in > 1 {
			x = fmt.Sprintf("%s / %d", x, in)
		}
		if d > 0 {
			x = fmt.Sprintf("%s %% %d", x, n)
		}
		terms = append(terms, fmt.Sprintf("dm::i64(%s) * %d", x, step(d)))
	}
	if terms == nil {
		return "0"
	}
	return strings.Join(terms, " + ")
}

// maskHeads is the number of matrices of the mask.
func (a *attention) maskHeads() int64 {
	n := int64(1)
	for d := range a.batch {
		n *= a.maskShape[d]
	}
	return n
}

// maskHead is the head that is number `repeat` of those that share `matrix`.
func (a *attention) maskHead() string {
	var kept, rest []int64
	keep, drop := make([]int64, len(a.batch)), make([]int64, len(a.batch))
	for d, n := range a.batch {
		k, r := n, int64(1)
		if a.maskShape[d] == 1 {
			k, r = 1, n
		}
		kept, rest = append(kept, k), append(rest, r)
		keep[d], drop[d] = k, r
	}
	step := func(d int) int64 { return within(a.batch, d) }
	return "dm::i32(" + a.parts("matrix", kept, keep, step) + " + " + a.parts("repeat", rest, drop, step) + ")"
}

// attentionLaunch is a launch of one kernel, which takes those of the parameters
// that its body names.
func (g *generator) attentionLaunch(a *attention, kind attentionKind, name string, ns *names, body func(t attentionTile) string) (launch, error) {
	t, err := g.attentionTile(a, kind)
	if err != nil {
		return launch{}, err
	}
	l := launch{
		name: name, class: "attention", threads: t.threads(), shared: int(a.shared(kind, t)), grid: [3]int{int(a.blocks(kind, t)), 1, 1},
		blocks: a.resident(kind, t, g.target.Machine),
		before: a.describe("@_S"), include: "attention.cuh attention_" + t.path() + ".cuh", body: "  DM_ARENA(arena);\n  " + body(t),
	}
	for _, p := range ns.params {
		if mentions(l.body, p.name) {
			l.params = append(l.params, p)
		}
	}
	return l, nil
}

func attentionNames(f *kernel.Form) *names {
	ns := newNames()
	ns.taken["arena"] = true
	for _, v := range f.Inputs {
		ns.add(v, artifact.In)
	}
	for _, v := range f.Outputs {
		ns.add(v, artifact.Out)
	}
	return ns
}

// nameOf is the parameter for result i of o, or the prelude's Nothing.
func (n *names) nameOf(o *ir.Op, i int) string {
	if i < len(o.Results) {
		if s, ok := n.of[o.Results[i]]; ok {
			return s
		}
	}
	return "dm::Nothing{}"
}

// maskName is the parameter for the mask.
func (a *attention) maskName(ns *names) string {
	if a.mask == nil {
		return "dm::Nothing{}"
	}
	return ns.of[a.mask]
}

// attention is one kernel: a block for each tile of queries of each head. Where
// that leaves multiprocessors without work, blocks share the keys, and a second
// kernel puts their results together.
func (g *generator) attention(f *kernel.Form, name string) ([]launch, error) {
	o := f.Main
	a, err := attentionOf(o, 3)
	if err != nil {
		return nil, err
	}
	ns := attentionNames(f)
	splits := int64(1)
	y, lse := ns.nameOf(o, 0), ns.nameOf(o, 1)
	l, err := g.attentionLaunch(a, forwardAttention, name, ns, func(t attentionTile) string {
		to, weights := y, lse
		if splits = g.attentionSplits(a, t); splits > 1 {
			rows := splits * a.heads * a.queries
			to = ns.addTemp("means", &temp{elem: a.sum, n: rows * a.value}, artifact.Out)
			weights = ns.addTemp("weights", &temp{elem: a.sum, n: rows}, artifact.Out)
		}
		types := fmt.Sprintf("%s, @_S, %d", t, splits)
		if !t.tensor() {
			types += ", " + register(a.sum)
		}
		return fmt.Sprintf("dm::attention_%s<%s>(arena, %s, %s, %s, %s, %s, %s);\n", t.path(), types,
			ns.of[o.Operands[0]], ns.of[o.Operands[1]], ns.of[o.Operands[2]], a.maskName(ns), to, weights)
	})
	if err != nil {
		return nil, err
	}
	if splits == 1 {
		return []launch{l}, nil
	}
	l.grid[0] *= int(splits)
	l.differs = fmt.Sprintf("%d partial results of each query pass through memory", splits)
	n := len(ns.params)
	means, weights := &ns.params[n-2], &ns.params[n-1]
	means.mode, weights.mode = artifact.In, artifact.In
	join := launch{
		name: name + "_join", class: "attention", threads: 256, grid: [3]int{int(ceil(a.heads*a.queries, 8)), 1, 1},
		before: a.describe("@_S"), include: "attention.cuh", differs: l.differs,
		body: fmt.Sprintf("  dm::attention_join<@_S, %d, %s>(%s, %s, %s, %s);\n", splits, storage(a.elem), means.name, weights.name, y, lse),
	}
	for _, p := range ns.params {
		if mentions(join.body, p.name) {
			join.params = append(join.params, p)
		}
	}
	return []launch{l, join}, nil
}
