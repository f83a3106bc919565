package fuse

import (
	"slices"

	"dmir/compile/pass"
	"dmir/compile/target"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// rewrite replaces the body's ops by kernels, in an order in which they can
// run.
func (g *graph) rewrite(ks []*candidate) {
	b := g.body
	old, inputs := b.Ops, b.Inputs()
	r := &rewriter{g: g, replacement: map[*ir.Value]*ir.Value{}, name: newNames(), seen: g.seen(ks)}
	b.Block.Ops = nil
	stored := map[int]bool{}
	for _, k := range ks {
		outs := slices.DeleteFunc(slices.Clone(k.outs), func(v int) bool { return stored[v] })
		for _, v := range outs {
			stored[v] = true
		}
		if n := g.nodes[k.nodes[0]]; n.unfusible {
			r.keep(n.op)
		} else {
			r.kernel(k, outs)
		}
	}
	if t := len(old) - 1; t >= 0 && old[t] == terminator(old) {
		r.keep(old[t])
	}
	rebuildUses(b, inputs)
}

func terminator(ops []*ir.Op) *ir.Op {
	if len(ops) == 0 {
		return nil
	}
	return ops[len(ops)-1]
}

type rewriter struct {
	g           *graph
	replacement map[*ir.Value]*ir.Value          // of a value, in the rewritten body
	seen        map[*ir.Value]map[*ir.Value]bool // the views of a value, including itself, that other kernels use
	name        *names
}

// at is the replacement of v outside kernels: views and constants are placed
// before their first use.
func (r *rewriter) at(v *ir.Value) *ir.Value {
	if w := r.replacement[v]; w != nil {
		return w
	}
	if !r.g.body.Defines(v) || !isView(v.Op) && !r.g.isConstant(v) {
		return v
	}
	for i, w := range v.Op.Operands {
		v.Op.Operands[i] = r.at(w)
	}
	r.put(v.Op)
	r.replacement[v] = v
	return v
}

func (r *rewriter) put(o *ir.Op) {
	o.Parent = r.g.body.Block
	o.Parent.Ops = append(o.Parent.Ops, o)
}

// keep appends an op that stays as it is.
func (r *rewriter) keep(o *ir.Op) {
	r.operands(o)
	r.put(o)
	if o.Name == op.Kernel && o.Attr(pass.NameAttr) == nil {
		o.SetAttr(pass.NameAttr, types.Str(r.name.of(o.Results, o)))
	}
	for _, v := range o.Results {
		r.replacement[v] = v
	}
}

// operands replaces the operands of o and the values that its regions capture.
func (r *rewriter) operands(o *ir.Op) {
	own := map[*ir.Value]bool{}
	for i, v := range o.Operands {
		o.Operands[i] = r.at(v)
	}
	for _, v := range ir.CapturedValues(o.Regions...) {
		own[v] = true
	}
	for _, reg := range o.Regions {
		for _, b := range reg.Blocks {
			ir.Walk(b.Ops, func(p *ir.Op) bool {
				for i, v := range p.Operands {
					if own[v] {
						p.Operands[i] = r.at(v)
					}
				}
				return true
			})
		}
	}
}

// kernel appends the dm.kernel that computes k and yields outs.
func (r *rewriter) kernel(k *candidate, outs []int) {
	g := r.g
	members := g.members(k)
	inside := map[*ir.Op]bool{}
	for _, o := range members {
		inside[o] = true
	}
	replacement := map[*ir.Value]*ir.Value{}
	masks := map[*ir.Op]bool{} // dropouts of which only the mask is used
	for _, i := range k.nodes {
		if n := g.nodes[i]; drawn(n.op, 1) {
			masks[n.op] = len(n.ins) == 0 && (i == 0 || !g.inside(k.nodes, i-1) || g.nodes[i-1].op != n.op) && n.results[0] != g.number[n.op.Results[0]]
		}
	}
	take := func(v *ir.Value) {
		if v.Op == nil || !inside[v.Op] || masks[v.Op] && v.Index == 0 {
			replacement[v] = r.at(v)
		}
	}
	for _, o := range members {
		if !masks[o] {
			for _, v := range o.Operands {
				take(v)
			}
		}
		for _, v := range ir.CapturedValues(o.Regions...) {
			take(v)
		}
	}
	yields, members := r.yields(outs, members)
	main := mainOf(members)
	o := &ir.Op{Name: op.Kernel, Span: main.Span, Head: main.Head, Loc: main.Loc}
	body := &ir.Block{}
	body.Region = &ir.Region{Op: o, Blocks: []*ir.Block{body}}
	o.Regions = []*ir.Region{body.Region}
	in := &ir.Builder{Block: body, At: main}
	for _, m := range members {
		if masks[m] {
			own := map[*ir.Value]*ir.Value{m.Operands[0]: op.Zeros(in, m.Operands[0].Type)}
			ir.CloneOps(in, []*ir.Op{m}, own)
			replacement[m.Results[1]] = own[m.Results[1]]
			continue
		}
		ir.CloneOps(in, []*ir.Op{m}, replacement)
	}
	yield := &ir.Op{Name: op.Yield, Parent: body, Span: main.Span, Head: main.Head, Loc: main.Loc}
	var results []*ir.Value
	for i, x := range yields {
		yield.Operands = append(yield.Operands, replacement[x])
		res := &ir.Value{Name: x.Name, Type: x.Type, Op: o, Index: i, Span: x.Span}
		o.Results = append(o.Results, res)
		results = append(results, x)
		r.replacement[x] = res
	}
	body.Ops = append(body.Ops, yield)
	o.SetAttr(pass.NameAttr, types.Str(r.name.of(results, main)))
	r.put(o)
}

// yields are the values that a kernel of members yields for outs, each in the
// shape of its uses if there is only one and the kernel can store it, and the
// members including the views for that.
func (r *rewriter) yields(outs []int, members []*ir.Op) ([]*ir.Value, []*ir.Op) {
	plain, shaped := make([]*ir.Value, len(outs)), make([]*ir.Value, len(outs))
	with := slices.Clone(members)
	for i, out := range outs {
		v := r.g.values[out].v
		plain[i], shaped[i] = v, v
		if len(r.seen[v]) != 1 {
			continue
		}
		for w := range r.seen[v] {
			shaped[i] = w
		}
		for w := shaped[i]; w != v; w = w.Op.Operands[0] {
			if !slices.Contains(with, w.Op) {
				with = append(with, w.Op)
			}
		}
	}
	if slices.Equal(shaped, plain) {
		return plain, members
	}
	slices.SortFunc(with, func(a, b *ir.Op) int { return r.g.position[a] - r.g.position[b] })
	if _, _, ok := r.g.rules.Legal(with, shaped, nil, target.Moved{Of: r.g.readsOf(with)}); !ok {
		return plain, members
	}
	return shaped, with
}

// seen are the views of each value that are used outside the kernels that
// compute it.
func (g *graph) seen(ks []*candidate) map[*ir.Value]map[*ir.Value]bool {
	seen := map[*ir.Value]map[*ir.Value]bool{}
	use := func(root, view *ir.Value) {
		if seen[root] == nil {
			seen[root] = map[*ir.Value]bool{}
		}
		seen[root][view] = true
	}
	for _, k := range ks {
		in := map[*ir.Value]map[*ir.Value]bool{}
		g.operandsOf(k, func(v *ir.Value) {
			r := g.source(v)
			if n, ok := g.number[r]; ok && !g.inside(k.nodes, g.values[n].def) {
				if in[r] == nil {
					in[r] = map[*ir.Value]bool{}
				}
				in[r][v] = true
			}
		})
		for r, views := range in {
			if len(views) > 1 && !g.nodes[k.nodes[0]].unfusible && !g.bare(k) { // the views are inside the kernel
				use(r, r)
				continue
			}
			for v := range views {
				use(r, v)
			}
		}
	}
	if t := g.body.Terminator(); t != nil {
		for _, v := range t.Operands {
			use(g.source(v), v)
		}
	}
	return seen
}

// mainOf is the op for which a kernel of ops is named: a contraction, else the
// last reduction, else the last op.
func mainOf(ops []*ir.Op) *ir.Op {
	rank := func(o *ir.Op) int {
		switch {
		case unfusible(o) || contracts(o) || op.Of(o).Is(op.Windowed):
			return 3
		case reduces(o):
			return 2
		case !isView(o):
			return 1
		}
		return 0
	}
	main := ops[0]
	for _, o := range ops {
		if rank(o) >= rank(main) {
			main = o
		}
	}
	return main
}

// rebuildUses recomputes the uses in b, whose inputs had other users there.
func rebuildUses(b pass.Body, inputs []*ir.Value) {
	for _, v := range inputs {
		v.Uses = slices.DeleteFunc(v.Uses, func(u ir.Use) bool { return b.Ancestor(u.Op) != nil })
	}
	ir.Walk(b.Ops, func(o *ir.Op) bool {
		for _, v := range o.Results {
			v.Uses = nil
		}
		for _, reg := range o.Regions {
			for _, b := range reg.Blocks {
				for _, v := range b.Args {
					v.Uses = nil
				}
			}
		}
		return true
	})
	ir.Walk(b.Ops, func(o *ir.Op) bool {
		for i, v := range o.Operands {
			v.Uses = append(v.Uses, ir.Use{Op: o, Index: i})
		}
		return true
	})
}
