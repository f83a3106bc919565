package fuse

import (
	"fmt"

	"dmir/base/work"
	"dmir/compile/pass"
	"dmir/compile/target"
	"dmir/dialect/ir"
	"dmir/dialect/op"
)

// Priced is a kernel of a plan.
type Priced struct {
	Ns    float64 // its price
	Delay float64 // the part of it in which products wait for operands that the kernel computes
	Text  bool    // it is one of the text, which stays as it is
	// Split is the price of the kernels of its ops, where it has a product and others; 0 else.
	Split float64
}

// Prices runs the pass on u and gives the kernels that the body then has, in its order.
func Prices(u *pass.Unit, t target.Times) (out []Priced, err error) {
	f := &Figures{}
	if err := f.fuse(u, Options{Rules: Kernels(t)}); err != nil {
		return nil, err
	}
	for _, s := range f.kernels {
		first := f.graph.nodes[s.nodes[0]]
		x := Priced{Ns: float64(s.price.fs) / 1e6, Delay: s.delay, Text: first.unfusible && first.op.Name == op.Kernel}
		if !first.unfusible && len(s.nodes) > 1 {
			x.Split = f.graph.split(s)
		}
		out = append(out, x)
	}
	return out, nil
}

// split is the price of the kernels of the ops of s, in ns; 0 where s has no product.
func (g *graph) split(s *candidate) float64 {
	var sum price
	product := false
	for k := 0; k < len(s.nodes); k++ {
		nodes := s.nodes[k : k+1]
		if k+1 < len(s.nodes) && g.nodes[s.nodes[k+1]].op == g.nodes[s.nodes[k]].op { // a dropout's two nodes
			nodes = s.nodes[k : k+2]
			k++
		}
		var outs []int
		for _, n := range nodes {
			product = product || g.nodes[n].tensor > 0
			outs = append(outs, g.nodes[n].results...)
		}
		one := g.kernel(nodes, outs)
		if !g.valid(one) {
			return 0
		}
		sum = sum.plus(one.price)
	}
	if !product {
		return 0
	}
	return float64(sum.fs) / 1e6
}

// Shared plans u's body and gives the number of kernels that the rules were asked about, and of those that had their answer from an
// equal one, of this body or of one before; each answer is compared with that of the rules.
func Shared(u *pass.Unit, t target.Times) (asked, shared int, err error) {
	var counts work.Counts
	u.Ctx = work.With(u.Context(), &counts)
	rules := Kernels(t)
	legal := legalitiesOf(rules)
	g, s, err := best(u, rules, legal, DefaultEffort)
	if err != nil {
		return 0, 0, err
	}
	all, err := g.answers()
	if ops := g.assembled(s.kernels); err == nil && len(ops) > 0 {
		g.inParts(ops)
		if g, _, err = best(u, rules, legal, DefaultEffort); err != nil {
			return 0, 0, err
		}
		var more int
		more, err = g.answers()
		all += more
	}
	asked = counts.Take()["legal kernels"]
	return asked, all - asked, err
}

// answers is the number of kernels whose legality is known; the error is one that differs from what the rules find.
func (g *graph) answers() (n int, err error) {
	counts := g.counts
	g.counts = nil
	defer func() { g.counts = counts }()
	for _, s := range g.memo {
		if !s.checked || g.nodes[s.nodes[0]].unfusible || g.splitsDropout(s) || g.readsOverwritten(s) {
			continue
		}
		n++
		ops := g.surrounded(s)
		outs := make([]*ir.Value, len(s.outs))
		for i, v := range s.outs {
			outs[i] = g.values[v].v
		}
		var own legality
		own.how, own.known, own.ok = g.rules.Legal(ops, outs, g.over(s), target.Moved{Read: s.read, Written: s.written, Of: g.readsOf(ops)})
		if l := g.legality(s); l != own {
			return n, fmt.Errorf("nodes %v that store %v: the rules find %+v, an equal kernel had %+v", s.nodes, s.outs, own, l)
		}
	}
	return n, nil
}
