package kernel

import (
	"dmir/dialect/ir"
	"dmir/dialect/op"
)

// Special is the op among ops that has a kernel of its own, nil where there is none.
func Special(ops []*ir.Op) *ir.Op {
	for _, o := range ops {
		if d := op.Of(o); d != nil && d.Kernel == op.Library {
			return o
		}
	}
	return nil
}

// special is the form of a group that holds o, whose kernel takes no other op.
func (f *Form) special(o *ir.Op) (*Form, error) {
	if len(f.Ops) > 1 {
		return nil, reason(o, "%s runs as a kernel of its own", o.Name)
	}
	g := *f
	g.Class, g.Main = ClassSpecial, o
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
