package plan

import (
	"strings"

	"dmir/dialect/ir"
)

// A Kind is what an argument of a step is to it.
type Kind string

// The kinds of arguments.
const (
	Parameter Kind = "parameter" // of the model: gradients are taken of it, or it goes from step to step and samples meet it
	State     Kind = "state"     // goes from step to step and meets no sample: a moment, a master weight, a count of steps
	Samples   Kind = "samples"   // has the samples of a step
	Other     Kind = "other"     // a mask, a table, a rate
)

// An Argument is an argument of a step; of a tuple, one of its tensors.
type Argument struct {
	Name  string // without "%"
	Kind  Kind
	Batch int // the dimension along which samples lie; negative: none
}

// Arguments are those of fn, a function of m, as Search reads them.
func Arguments(m *ir.Module, fn *ir.Func, o Options) ([]Argument, error) {
	s, err := newStraight(m, fn, o.Bind, nil, false)
	if err != nil {
		return nil, err
	}
	g, err := newGraph(s, o.Machine, o.Batch)
	if err != nil {
		return nil, err
	}
	out := make([]Argument, len(s.fn.Args))
	for i, a := range s.fn.Args {
		out[i] = Argument{Name: strings.TrimPrefix(a.Name, "%"), Kind: Other, Batch: -1}
		v := g.valueOf(a)
		if v == nil {
			continue
		}
		switch {
		case s.wrt[v.v] && s.updated[v.v.Index], g.parameter(v):
			out[i].Kind = Parameter
		case v.next >= 0 || s.updated[v.v.Index]:
			out[i].Kind = State
		case v.micro:
			out[i].Kind, out[i].Batch = Samples, v.batch
		}
	}
	return out, nil
}

// valueOf is the value of a, an argument of the step, or that of the one that stands for it; nil where nothing uses it.
func (g *graph) valueOf(a *ir.Value) *value {
	if like := g.like[a]; like != nil {
		a = like
	}
	if x, ok := g.of[a]; ok {
		return g.values[x]
	}
	return nil
}

// parameter reports whether v is a parameter of a step that states its gradient itself, as one of JAX does: it goes from step to step, and samples
// meet it.
func (g *graph) parameter(v *value) bool {
	return len(g.wrt) == 0 && v.next >= 0 && len(v.shape) > 0 && g.usedBySamples(v)
}

// parameters is how many elements those of the model have.
func (g *graph) parameters() int64 {
	n := g.params
	for _, a := range g.fn.Args {
		if v := g.valueOf(a); v != nil && g.parameter(v) {
			size, _ := a.Tensor().Elements().Int()
			n += size
		}
	}
	return n
}
