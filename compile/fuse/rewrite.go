package fuse

import (
	"cmp"
	"slices"

	"dmir/dialect/ir"
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
	r := &rewriter{g: g, now: map[*ir.Value]*ir.Value{}, name: newNames(), constants: map[*ir.Value]bool{}}
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
	g         *graph
	now       map[*ir.Value]*ir.Value // what stands for a value of the function from here on
	constants map[*ir.Value]bool      // those that the new body defines
	name      *names
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
	if o.Name == kernelOp && o.Attr(nameAttr) == nil {
		o.SetAttr(nameAttr, types.Str(r.name.of(o.Results, o.Results, []*ir.Op{o})))
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
	for _, v := range captured(o) {
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
		if n := g.nodes[i]; n.op.Name == "dm.dropout" {
			masks[n.op] = len(n.ins) == 0 && (i == 0 || !g.inside(k.nodes, i-1) || g.nodes[i-1].op != n.op) && n.results[0] != g.number[n.op.Results[0]]
		}
	}
	take := func(v *ir.Value) {
		if v.Op == nil || !inside[v.Op] {
			now[v] = r.at(v)
		}
	}
	for _, o := range members {
		if !masks[o] {
			for _, v := range o.Operands {
				take(v)
			}
		}
		for _, v := range captured(o) {
			take(v)
		}
	}
	main := members[len(members)-1]
	o := &ir.Op{Name: kernelOp, Span: main.Span, Head: main.Head}
	body := &ir.Block{}
	body.Region = &ir.Region{Op: o, Blocks: []*ir.Block{body}}
	o.Regions = []*ir.Region{body.Region}
	in := &ir.Builder{Block: body, At: main}
	for _, m := range members {
		if masks[m] {
			now[m.Operands[0]] = nothing(in, m)
		}
		ir.CloneOps(in, []*ir.Op{m}, now)
		in.Index = len(body.Ops)
	}
	yield := &ir.Op{Name: "dm.yield", Parent: body, Span: main.Span, Head: main.Head}
	var results []*ir.Value
	for i, v := range outs {
		x := g.values[v].v
		yield.Operands = append(yield.Operands, now[x])
		res := &ir.Value{Name: x.Name, Type: x.Type, Op: o, Index: i, Span: x.Span}
		o.Results = append(o.Results, res)
		results = append(results, x)
		r.now[x] = res
	}
	body.Ops = append(body.Ops, yield)
	o.SetAttr(nameAttr, types.Str(r.name.of(results, o.Results, members)))
	r.put(o)
}

// nothing is an operand for a dropout of which only the mask is wanted: it
// depends on the operand's shape alone.
func nothing(b *ir.Builder, o *ir.Op) *ir.Value {
	t := o.In(0)
	scalar := t.With()
	scalar.At = types.Placement{}
	zero := b.Op("dm.constant", nil, []types.Named{{Name: "value", Value: &types.Dense{Type: scalar, Splat: true, Floats: []float64{0}, Text: types.FloatText(0, t.Elem)}}}, scalar)
	if t.Rank() == 0 {
		return zero.Results[0]
	}
	return b.Op("dm.broadcast", zero.Results, nil, t).Results[0]
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
