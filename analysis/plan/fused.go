package plan

import (
	"context"
	"slices"

	"dmir/analysis/cost"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/print"
	"dmir/dialect/types"
)

// mostCompiled bounds the ops of a step that is compiled to find what its kernels take.
const mostCompiled = 1000

// fuse gives nodes the times that they have in the kernels of the step as it is compiled for one device, with the layers that the
// graph has. Nodes keep the times of the model where the step cannot be compiled.
func (s *search) fuse(ctx context.Context, f *form) {
	if !s.near || len(f.fn.Body.Ops) > mostCompiled {
		return
	}
	text, err := s.undividedText(f.graph)
	if err != nil {
		return
	}
	x, err := s.o.Price(ctx, text)
	if err != nil || len(x.Shares) == 0 {
		return
	}
	f.work.Add("compiled", len(f.fn.Body.Ops))
	f.attribute(x.Shares)
}

// attribute shares the times of kernels among the nodes whose ops they hold. A contraction has its own time in a kernel that takes as
// long or longer, and what is computed beside it the rest: what crosses no memory, and needs no launch of its own, costs less there
// than by itself. What a kernel takes that holds the op of no node is shared among all.
func (g *graph) attribute(shares []cost.Share) {
	one := &grid{micro: 1}
	byOp := map[*ir.Op]*node{}
	alone := map[*node]float64{}
	for _, n := range g.nodes {
		if n.o == nil {
			continue
		}
		byOp[n.o] = n
		if all := g.strategies(n, one, g.rate()); len(all) == 1 {
			alone[n] = all[0].time
		}
	}
	kernels := make([][]*node, len(shares))
	of := map[*node]float64{} // kernels that hold a node
	for i, share := range shares {
		for _, k := range share.Ops {
			if k < len(g.fn.Body.Ops) {
				if n := byOp[g.fn.Body.Ops[k]]; n != nil && alone[n] > 0 {
					kernels[i] = append(kernels[i], n)
					of[n]++
				}
			}
		}
	}
	given := map[*node]float64{}
	total, found := 0.0, 0.0
	for i, share := range shares {
		t := share.Ns / 1e9
		total += t
		var sum [2]float64 // of what is computed beside contractions, and of these
		kind := func(n *node) int {
			if isContraction(n) {
				return 1
			}
			return 0
		}
		for _, n := range kernels[i] {
			sum[kind(n)] += alone[n] / of[n]
		}
		if len(kernels[i]) == 0 {
			continue
		}
		found += t
		left := [2]float64{max(0, t-sum[1]), min(t, sum[1])}
		if sum[0] == 0 {
			left[1] = t
		}
		for _, n := range kernels[i] {
			k := kind(n)
			given[n] += left[k] * alone[n] / of[n] / sum[k]
		}
	}
	if found == 0 {
		return
	}
	for n, t := range alone {
		if t > 0 {
			n.fused = given[n] / t * total / found
		}
	}
}

// undividedText is the step of g as the text of a file, without shardings, micro-batches and stages.
func (s *search) undividedText(g *graph) (string, error) {
	f := g.fn.Clone()
	op.ShardingsInTypes(f)
	plain := func(v *ir.Value) {
		if t := v.Tensor(); t != nil && t.At.Shard != nil {
			r := *t
			r.At.Shard = nil
			v.Type = &r
		}
	}
	for _, a := range f.Args {
		plain(a)
	}
	ir.WalkValues(f.Body.Ops, plain)
	ir.Walk(f.Body.Ops, func(o *ir.Op) bool {
		for _, name := range []string{forwardAttr, layerAttr, op.RecomputeAttr} {
			o.RemoveAttr(name)
		}
		return true
	})
	f.Op.Attrs = slices.DeleteFunc(f.Op.Attrs, func(a types.Named) bool {
		return !slices.Contains([]string{"sym_name", "function_type", "arg_attrs", "res_attrs"}, a.Name)
	})
	f.Op.SetAttr("sym_name", types.Str(s.text.Name))
	f.Retype()
	m := &ir.Module{Src: g.m.Src, Aliases: g.m.Aliases, Resources: g.m.Resources, Ops: []*ir.Op{f.Op}}
	return print.Source(m)
}
