package fuse

import (
	"dmir/compile/pass"
	"dmir/compile/target"
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
