package kernel

import (
	"dmir/dialect/ir"
	"dmir/dialect/op"
)

// LibraryOp returns the op among ops that a library kernel computes, nil where
// there is none.
func LibraryOp(ops []*ir.Op) *ir.Op {
	for _, o := range ops {
		if d := op.Of(o); d != nil && d.Kernel == op.Library {
			return o
		}
	}
	return nil
}

// library is the form of a group with o, whose kernel holds no other op.
func (f *Form) library(o *ir.Op) (*Form, error) {
	if len(f.Ops) > 1 {
		return nil, reason(o, "%s runs as a kernel of its own", o.Name)
	}
	g := *f
	g.Class, g.Main = ClassLibrary, o
	seen := map[*ir.Value]bool{}
	for _, v := range o.Operands {
		if !seen[v] {
			seen[v] = true
			g.Inputs = append(g.Inputs, v)
		}
	}
	for _, v := range f.Outputs {
		g.Outs = append(g.Outs, Out{Value: v})
	}
	return &g, nil
}
