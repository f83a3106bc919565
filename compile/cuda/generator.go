package cuda

import (
	"fmt"

	"dmir/compile/kernel"
)

// generator writes the kernels of one program.
type generator struct {
	target Target
}

func newGenerator(t Target) *generator { return &generator{target: t} }

// kernels are the launches that compute f, in order. The first one is called
// name, others after it.
func (g *generator) kernels(f *kernel.Form, name string) ([]launch, error) {
	switch f.Class {
	case kernel.ClassPointwise, kernel.ClassLoop:
		return g.pointwise(f, name)
	case kernel.ClassRow:
		return g.row(f, name)
	case kernel.ClassColumns:
		return g.columns(f, name)
	case kernel.ClassSpecial:
		return g.special(f, name)
	case kernel.ClassContraction:
		return g.contraction(f, name)
	}
	return nil, fmt.Errorf("no kernel of class %s", f.Class)
}
