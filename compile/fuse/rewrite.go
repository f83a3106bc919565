package fuse

import (
	"cmp"
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// order is an order in which ks can run, as near as possible to that of the
// text; ok is false where there is none, and then the kernels of a cycle come
// back. A value that several kernels store is stored by the first alone.
func (g *graph) order(ks []*shape) (sorted []*shape, ok bool) {
	place := func(k *shape) int { return k.nodes[len(k.nodes)-1] }
	slices.SortStableFunc(ks, func(a, b *shape) int { return cmp.Compare(place(a), place(b)) })
	stores := map[int]*shape{}
	for _, k := range ks {
		for _, v := range k.outs {
			if stores[v] == nil {
				stores[v] = k
			}
		}
	}
	waits := map[*shape]map[*shape]bool{}
	var last *shape
	for _, k := range ks {
		waits[k] = map[*shape]bool{}
		for _, v := range k.ins {
			if s := stores[v]; s != nil && s != k {
				waits[k][s] = true
			}
		}
		if n := g.nodes[k.nodes[0]]; n.single && n.effects {
			if last != nil {
				waits[k][last] = true
			}
			last = k
		}
	}
	readers := map[int][]*shape{}
	for _, k := range ks {
		for _, v := range k.ins {
			readers[v] = append(readers[v], k)
		}
	}
	for _, k := range ks {
		for _, v := range g.overwritten(k) {
			for _, r := range readers[v] {
				if r != k {
					waits[k][r] = true
				}
			}
		}
	}
	left := slices.Clone(ks)
	ran := map[*shape]bool{}
	for len(left) > 0 {
		i := slices.IndexFunc(left, func(k *shape) bool {
			for w := range waits[k] {
				if !ran[w] {
					return false
				}
			}
			return true
		})
		if i < 0 {
			return left, false
		}
		ran[left[i]] = true
		sorted = append(sorted, left[i])
		left = slices.Delete(left, i, i+1)
	}
	return sorted, true
}

// rewrite puts kernels, in an order in which they can run, in the place of the
// function's ops.
func (g *graph) rewrite(ks []*shape) {
	b := g.fn.Body
	old := b.Ops
	r := &rewriter{g: g, now: map[*ir.Value]*ir.Value{}, name: newNames(), seen: g.seen(ks)}
	b.Ops = nil
	stored := map[int]bool{}
	for _, k := range ks {
		outs := slices.DeleteFunc(slices.Clone(k.outs), func(v int) bool { return stored[v] })
		for _, v := range outs {
			stored[v] = true
		}
		if n := g.nodes[k.nodes[0]]; n.single {
			r.keep(n.op)
		} else {
			r.kernel(k, outs)
		}
	}
	if t := len(old) - 1; t >= 0 && old[t] == terminator(old) {
		r.keep(old[t])
	}
	relink(g.fn)
}

func terminator(ops []*ir.Op) *ir.Op {
	if len(ops) == 0 {
		return nil
	}
	return ops[len(ops)-1]
}

type rewriter struct {
	g    *graph
	now  map[*ir.Value]*ir.Value          // what stands for a value of the function from here on
	seen map[*ir.Value]map[*ir.Value]bool // the views of a value, itself among them, that others than its kernel use
	name *names
}

// at is what stands for v outside kernels: views and constants are made where
// they are first needed.
func (r *rewriter) at(v *ir.Value) *ir.Value {
	if w := r.now[v]; w != nil {
		return w
	}
	if v.Op == nil || v.Op.Parent != r.g.fn.Body || !isView(v.Op) && !isConstant(v) {
		return v
	}
	for i, w := range v.Op.Operands {
		v.Op.Operands[i] = r.at(w)
	}
	r.put(v.Op)
	r.now[v] = v
	return v
}

func (r *rewriter) put(o *ir.Op) {
	o.Parent = r.g.fn.Body
	o.Parent.Ops = append(o.Parent.Ops, o)
}

// keep puts an op that stands as it is.
func (r *rewriter) keep(o *ir.Op) {
	r.operands(o)
	r.put(o)
	if o.Name == op.Kernel && o.Attr(nameAttr) == nil {
		o.SetAttr(nameAttr, types.Str(r.name.of(o.Results, o)))
	}
	for _, v := range o.Results {
		r.now[v] = v
	}
}

// operands replaces what o and its regions take from outside.
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

// kernel puts the dm.kernel that computes k and gives outs.
func (r *rewriter) kernel(k *shape, outs []int) {
	g := r.g
	members := g.members(k)
	inside := map[*ir.Op]bool{}
	for _, o := range members {
		inside[o] = true
	}
	now := map[*ir.Value]*ir.Value{}
	masks := map[*ir.Op]bool{} // dropouts of which only the mask is wanted
	for _, i := range k.nodes {
		if n := g.nodes[i]; drawn(n.op, 1) {
			masks[n.op] = len(n.ins) == 0 && (i == 0 || !g.inside(k.nodes, i-1) || g.nodes[i-1].op != n.op) && n.results[0] != g.number[n.op.Results[0]]
		}
	}
	take := func(v *ir.Value) {
		if v.Op == nil || !inside[v.Op] || masks[v.Op] && v.Index == 0 {
			now[v] = r.at(v)
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
	o := &ir.Op{Name: op.Kernel, Span: main.Span, Head: main.Head}
	body := &ir.Block{}
	body.Region = &ir.Region{Op: o, Blocks: []*ir.Block{body}}
	o.Regions = []*ir.Region{body.Region}
	in := &ir.Builder{Block: body, At: main}
	for _, m := range members {
		if masks[m] {
			own := map[*ir.Value]*ir.Value{m.Operands[0]: op.Zeros(in, m.Operands[0].Type)}
			ir.CloneOps(in, []*ir.Op{m}, own)
			now[m.Results[1]] = own[m.Results[1]]
			continue
		}
		ir.CloneOps(in, []*ir.Op{m}, now)
	}
	yield := &ir.Op{Name: op.Yield, Parent: body, Span: main.Span, Head: main.Head}
	var results []*ir.Value
	for i, x := range yields {
		yield.Operands = append(yield.Operands, now[x])
		res := &ir.Value{Name: x.Name, Type: x.Type, Op: o, Index: i, Span: x.Span}
		o.Results = append(o.Results, res)
		results = append(results, x)
		r.now[x] = res
	}
	body.Ops = append(body.Ops, yield)
	o.SetAttr(nameAttr, types.Str(r.name.of(results, main)))
	r.put(o)
}

// yields are the values that a kernel of members gives for outs: each in the
// shape in which it is used, where that is one and the kernel can; and the
// members then.
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
	if _, ok := r.g.rules.Legal(with, shaped, nil); !ok {
		return plain, members
	}
	return shaped, with
}

// seen are the views of each value that is used outside the kernels that compute
// it.
func (g *graph) seen(ks []*shape) map[*ir.Value]map[*ir.Value]bool {
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
			r := source(v)
			if n, ok := g.number[r]; ok && !g.inside(k.nodes, g.values[n].def) {
				if in[r] == nil {
					in[r] = map[*ir.Value]bool{}
				}
				in[r][v] = true
			}
		})
		for r, views := range in {
			if len(views) > 1 && !g.nodes[k.nodes[0]].single { // it makes them of the value itself
				use(r, r)
				continue
			}
			for v := range views {
				use(r, v)
			}
		}
	}
	if t := g.fn.Body.Terminator(); t != nil {
		for _, v := range t.Operands {
			use(source(v), v)
		}
	}
	return seen
}

// mainOf is the op that a kernel of ops is for: a contraction, else the last
// fold, else the last op.
func mainOf(ops []*ir.Op) *ir.Op {
	rank := func(o *ir.Op) int {
		switch {
		case unfusible(o) || contracts(o) || op.Of(o).Is(op.Windowed):
			return 3
		case folds(o):
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

// relink records the uses in fn's body anew.
func relink(fn *ir.Func) {
	for _, v := range fn.Args {
		v.Uses = nil
	}
	ir.Walk(fn.Body.Ops, func(o *ir.Op) bool {
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
	ir.Walk(fn.Body.Ops, func(o *ir.Op) bool {
		for i, v := range o.Operands {
			v.Uses = append(v.Uses, ir.Use{Op: o, Index: i})
		}
		return true
	})
}
