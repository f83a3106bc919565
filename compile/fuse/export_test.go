package fuse

import (
	"dmir/compile/kernel"
	"dmir/compile/pass"
)

// A Priced is a kernel of a plan with its price.
type Priced struct {
	Ns    float64
	Bytes int64
	// Delay is the part of Ns in which products wait for operands that the kernel computes, which package cost does not have.
	Delay float64
}

// Prices runs the pass on u and gives the prices of what the body then has, in its order.
func Prices(u *pass.Unit, t kernel.Times) (out []Priced, f *Figures, err error) {
	f = &Figures{}
	err = f.fuse(u, Options{Rules: Kernels(t)})
	for _, s := range f.kernels {
		out = append(out, Priced{float64(s.price.fs) / 1e6, s.price.bytes, s.delay})
	}
	return out, f, err
}
