package cuda

import (
	"fmt"
	"slices"

	"dmir/compile/assemble"
	"dmir/compile/kernel"
	"dmir/compile/tensor"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/gpu/artifact"
)

// attention is an attention or its gradient with what kernels of CUDA know besides.
type attention struct {
	kernel.Attention
	elem, sum types.Elem // element types of the operands, and of the computation
	tf32      bool       // operands of f32 may be rounded for the tensor cores
	views     []*kernel.View
}

// attentionOf reads the main op of f.
func attentionOf(f *kernel.Form) (*attention, error) {
	g, err := kernel.AttentionOf(f.Main)
	if err != nil {
		return nil, err
	}
	return newAttention(g, f.Views), nil
}

func newAttention(g kernel.Attention, views []*kernel.View) *attention {
	a := &attention{Attention: g, views: views, elem: g.Op.Operands[0].Elem(), sum: types.F32, tf32: op.TF32(g.Op)}
	if a.elem == types.F64 {
		a.sum = types.F64
	}
	return a
}

// geometry is the name of the prelude's struct of the geometry.
const geometry local = "_S"

// numbering is the name of the struct that describes of which rows of a whole the scores are.
const numbering local = "_R"

// describe writes the prelude's struct of the geometry.
func (a *attention) describe(u *unit) {
	var threshold uint64
	keep, rate := 1.0, a.Dropout
	if rate > 0 {
		threshold, keep = tensor.Threshold(rate), 1/(1-rate)
	}
	const head, matrix, repeat ident = "head", "matrix", "repeat"
	var row, col, size int64
	at := cpp("0")
	if m := a.MaskShape; m != nil {
		n := len(m)
		if size = m[n-2] * m[n-1]; m[n-1] > 1 {
			col = 1
		}
		if m[n-2] > 1 {
			row = m[n-1]
		}
		at = a.parts(head, a.Batch, m, func(d int) int64 { return innerElements(m[:n-2], d) * size })
	}
	u.enter(closed, "struct %s", geometry)
	u.line("static constexpr dm::i32 heads = %d, group = %d, queries = %d, keys = %d, depth = %d, value = %d", a.Heads, a.Group, a.Queries, a.Keys, a.Depth, a.Value)
	u.line("static constexpr bool causal = %t", op.Bool(a.Op, "causal"))
	u.line("static constexpr double scale = %s, keep = %s", hexFloat(a.Scale), hexFloat(keep))
	u.line("static constexpr dm::u64 seed = %dull, threshold = %dull", uint64(op.Int(a.Op, "seed")), threshold)
	u.line("static constexpr dm::i64 mask_row = %d, mask_col = %d", row, col)
	u.function(at, "DM_FN static dm::i64 mask_at(dm::i32 %s)", def(head))
	if a.MaskShape != nil {
		u.line("static constexpr dm::i32 mask_repeats = %d", a.Heads/a.maskHeads())
		u.function(a.maskHead(matrix, repeat), "DM_FN static dm::i32 mask_head(dm::i32 %s, dm::i32 %s)", def(matrix), def(repeat))
	}
	u.leave()
	if a.First != nil {
		u.enter(closed, "struct %s", numbering)
		u.function(a.parts(head, a.Batch, a.Batch, func(d int) int64 { return a.Rows[d] }), "DM_FN static dm::i64 row_at(dm::i32 %s)", def(head))
		u.leave()
	}
	for i, v := range a.views {
		if v == nil {
			continue
		}
		shape, _ := kernel.ShapeOf(slices.Concat(a.Op.Operands, a.Op.Results)[i])
		n := len(shape)
		at := a.parts(matrix, shape[:n-2], shape, func(d int) int64 { return v.Steps[d] })
		u.enter(closed, "struct %s", viewOf(i))
		u.line("static constexpr dm::i64 row = %d", v.Steps[n-2])
		u.function(cpp("%d + %s", v.Start, at), "DM_FN static dm::i64 at(dm::i32 %s)", def(matrix))
		u.leave()
	}
}

// viewOf is the name of the struct that describes how operand i lies, or the result
// that comes as many places behind the operands.
func viewOf(i int) local { return local(fmt.Sprintf("_V%d", i)) }

// operand is the argument for operand i.
func (a *attention) operand(n *names, i int) code {
	if a.views[i] != nil {
		return cpp("dm::View<%s, %s>{%s}", storage(a.elem), viewOf(i), n.of[a.views[i].Buf])
	}
	return cpp("%s", n.of[a.Op.Operands[i]])
}

// result is the argument for result i, nothing where it is not stored.
func (a *attention) result(n *names, i int) code {
	if at := len(a.Op.Operands) + i; i < len(a.Op.Results) && a.views[at] != nil {
		return cpp("dm::Placed<%s, %s>{%s}", storage(a.elem), viewOf(at), n.of[a.views[at].Buf])
	}
	return n.result(a.Op, i)
}

// hexFloat is a number in C++, in hexadecimal so that it is exact.
func hexFloat(v float64) string { return fmt.Sprintf("%x", v) }

// innerElements is the product of the sizes of a row-major shape after
// dimension d.
func innerElements(shape []int64, d int) int64 {
	n := int64(1)
	for _, k := range shape[d+1:] {
		n *= k
	}
	return n
}

// parts sums the indices that a row-major number decomposes into, each times a
// stride; dimensions in which a mask has size 1 have none.
func (a *attention) parts(number ident, shape, mask []int64, step func(d int) int64) code {
	var sum code
	for d, n := range shape {
		if n == 1 || mask[d] == 1 {
			continue
		}
		x := cpp("%s", number)
		if in := innerElements(shape, d); in > 1 {
			x = cpp("%s / %d", x, in)
		}
		if d > 0 {
			x = cpp("%s %% %d", x, n)
		}
		x = cpp("dm::i64(%s) * %d", x, step(d))
		if sum.format != "" {
			x = cpp("%s + %s", sum, x)
		}
		sum = x
	}
	if sum.format == "" {
		return cpp("0")
	}
	return sum
}

// maskHeads is the number of matrices of the mask.
func (a *attention) maskHeads() int64 {
	n := int64(1)
	for d := range a.Batch {
		n *= a.MaskShape[d]
	}
	return n
}

// maskHead is the head that is number `repeat` of those that share `matrix`.
func (a *attention) maskHead(matrix, repeat ident) code {
	var kept, rest []int64
	keep, drop := make([]int64, len(a.Batch)), make([]int64, len(a.Batch))
	for d, n := range a.Batch {
		k, r := n, int64(1)
		if a.MaskShape[d] == 1 {
			k, r = 1, n
		}
		kept, rest = append(kept, k), append(rest, r)
		keep[d], drop[d] = k, r
	}
	step := func(d int) int64 { return innerElements(a.Batch, d) }
	return cpp("dm::i32(%s + %s)", a.parts(matrix, kept, keep, step), a.parts(repeat, rest, drop, step))
}

// attentionPlan is the partition of an attention into blocks.
type attentionPlan struct {
	*attention
	target  Target
	f       *kernel.Form
	tile    attentionTile
	splits  int64            // number of blocks that the keys are split over
	scratch []*assemble.Temp // partial results of the first launch: means and weights of the splits
}

// tileAttr is the tile as the cost model reads it: queries, keys and depth of a step;
// "" on vector units.
func (p *attentionPlan) tileAttr() string {
	if p.tile.path == Fma {
		return ""
	}
	return Config{Path: p.tile.path, BM: p.tile.own, BN: p.tile.other, BK: int(p.Depth), Splits: int(p.splits)}.String()
}

func (p *attentionPlan) temps() []*assemble.Temp { return p.scratch }

// attention is the plan of an attention: a block for each tile of queries of
// each head. Where that leaves multiprocessors idle, the keys are split over
// several blocks, and a second kernel combines their results.
func (t Target) attention(f *kernel.Form) (*attentionPlan, error) {
	a, err := attentionOf(f)
	if err != nil {
		return nil, err
	}
	tile, err := t.attentionTile(a, forwardAttention)
	p := &attentionPlan{attention: a, target: t, f: f, tile: tile}
	if err != nil {
		return nil, err
	}
	if p.splits = t.attentionSplits(a, tile); p.splits > 1 {
		rows := p.splits * a.Heads * a.Queries
		p.scratch = []*assemble.Temp{{Elem: a.sum, N: rows * a.Value, Own: true}, {Elem: a.sum, N: rows, Own: true}}
	}
	return p, nil
}

func (p *attentionPlan) launches() ([]*launch, error) {
	o, a := p.f.Main, p.attention
	ns := namesOf(p.f.Inputs, p.f.Outputs, arena)
	y, lse := ns.result(o, 0), ns.result(o, 1)
	if p.splits == 1 {
		return []*launch{p.forward(ns, y, lse)}, nil
	}
	join, lanes := a.stage("_join", a.sum)
	means, weights := cpp("%s", ns.addTemp("means", p.scratch[0], artifact.Out)), cpp("%s", ns.addTemp("weights", p.scratch[1], artifact.Out))
	l := p.forward(ns, means, weights)
	ns.written()
	ns.calls(join, a, cpp("dm::attention_join<%s, %d, %s, %s>(%s)", geometry, p.splits, lanes, storage(a.elem), []code{means, weights, y, lse}))
	return []*launch{l, join}, nil
}

// forward is the launch of an attention, whose results are y and lse.
func (p *attentionPlan) forward(ns *names, y, lse code) *launch {
	types := cpp("%s, %s, %d", p.tile, geometry, p.splits)
	if p.tile.path == Fma {
		types = cpp("%s, %s", types, register(p.sum))
	}
	operands, maps := p.operandsOf(ns, p.tile, 1, 0, 1, 2)
	args := ns.withDrawn(p.attention, append(operands, ns.mask(p.attention), y, lse))
	l := p.launch(forwardAttention, p.tile, "", ns, cpp("dm::attention_%s<%s>(%s, %s)", p.tile.path, types, arena, args))
	l.Grid[0] *= int(p.splits)
	p.copies(l, maps)
	if p.tile.path == Wgmma && !op.Bool(p.Op, "causal") {
		// Blocks compute one tile after another, whose loads overlap with results. Under a causal mask tiles differ in length, and
		// the next one starts where a multiprocessor is free.
		l.Grid[0] = min(l.Grid[0], p.target.Machine.SMs)
	}
	return l
}

// stage is a launch before or after the tiles, in which a part of a warp has a row of values
// of type e: by how many lanes, of how many elements each.
func (a *attention) stage(suffix string, e types.Elem) (l *launch, lanes code) {
	each := kernel.GCD(a.Value, max(1, 16/e.Bytes()))
	n := int64(1)
	for n < 32 && n < a.Value/each {
		n *= 2
	}
	rows := 8 * 32 / n // of a block
	return &launch{
		Launch:  assemble.Launch{Suffix: suffix, Class: "attention", Block: artifact.Block{Threads: 256}, Grid: [3]int{int(ceil(a.Heads*a.Queries, rows)), 1, 1}},
		include: "attention.cuh",
	}, cpp("%d, %d", n, each)
}

// arena is the dynamic shared memory of a kernel.
const arena ident = "arena"

// launch is a launch of one kernel, which is a call.
func (p *attentionPlan) launch(kind attentionKind, t attentionTile, suffix string, ns *names, call code) *launch {
	a := p.attention
	l := &launch{
		Launch: assemble.Launch{
			Suffix: suffix, Class: "attention", Block: artifact.Block{Threads: t.threads(), Shared: int(a.shared(kind, t))}, Grid: [3]int{int(a.blocks(kind, t)), 1, 1},
		},
		late:   kind == forwardAttention && t.path == Wgmma,
		blocks: a.resident(kind, t, p.target.Machine), include: t.include(),
	}
	ns.calls(l, a, call)
	return l
}

// calls makes l a launch of a kernel whose body is a call, with those
// parameters that the call names.
func (n *names) calls(l *launch, a *attention, call code) {
	used := uses([]*stmt{{head: call}})
	l.Params = n.only(func(p assemble.Param) bool { return used[p.Name] })
	l.write = func(t *text) error {
		a.describe(t.before)
		if used[string(arena)] {
			t.body.line("DM_ARENA(%s)", def(arena))
		}
		t.body.line("%s", call)
		return nil
	}
}

// nothing is the prelude's value of an absent operand or result.
const nothing = "dm::Nothing{}"

// result is the parameter for result i of o, or nothing.
func (n *names) result(o *ir.Op, i int) code {
	if i < len(o.Results) {
		if s, ok := n.of[o.Results[i]]; ok {
			return cpp("%s", s)
		}
	}
	return cpp(nothing)
}

// mask is the parameter for the mask, or nothing.
func (n *names) mask(a *attention) code {
	if a.Mask == nil {
		return cpp(nothing)
	}
	return cpp("%s", n.of[a.Mask])
}

// withDrawn adds what the dropout draws numbers by, if there is more than its seed: its step, and of a part of a whole the number of
// its first row of scores.
func (n *names) withDrawn(a *attention, args []code) []code {
	step := cpp(nothing)
	if a.Step != nil {
		step = cpp("%s", n.of[a.Step])
	}
	switch {
	case a.First != nil:
		return append(args, cpp("dm::part_of_whole<%s>(%s, %s)", numbering, n.of[a.First], step))
	case a.Step == nil:
		return args
	}
	return append(args, step)
}
