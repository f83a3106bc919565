package cuda

import (
	"fmt"

	"dmir/analysis/machine"
	"dmir/compile/assemble"
	"dmir/compile/kernel"
	"dmir/compile/pass"
	"dmir/compile/target"
)

// Plan is how a kernel runs on a target, as package assemble takes it. It is a
// function of the kernel's form, the target and the options; the text is
// written from it.
type Plan struct {
	scheme scheme
	pace   assemble.Pace
	made   []*launch // the launches of the scheme, once they were asked for
	// dependents says that its kernels wait by themselves for those before them, and may start before these have ended.
	dependents bool
}

// scheme is the partition of a form into launches.
type scheme interface {
	// temps is the memory that the launches share, in order of allocation.
	temps() []*assemble.Temp
	// launches are the launches in order.
	launches() ([]*launch, error)
}

// plan is the plan of f.
func (t Target) plan(f *kernel.Form, o assemble.Options) (*Plan, error) {
	var s scheme
	var pace assemble.Pace
	var err error
	switch f.Class {
	case kernel.ClassPointwise, kernel.ClassLoop:
		s, err = t.elementwise(f, o.Over)
	case kernel.ClassRow:
		r := t.rows(f)
		s, pace = r, r.pace(t.Machine)
	case kernel.ClassColumns:
		c := t.columns(f)
		s, pace = c, c.pace(t.Machine)
	case kernel.ClassLibrary:
		s, err = t.library(f)
		if o, ok := s.(*sorting); ok {
			pace = assemble.Pace{Launches: int(o.plan.Launches())}
		}
	case kernel.ClassContraction:
		c, err := t.contraction(f, o)
		if err != nil {
			return nil, err
		}
		s, pace = c, c.pace()
		if w := t.windowSum(f, c, o); w != nil {
			s, pace = w, assemble.Pace{}
		}
	default:
		err = fmt.Errorf("no kernel of class %s", f.Class)
	}
	if err != nil {
		return nil, err
	}
	return &Plan{scheme: s, pace: pace, dependents: dependent(t.Arch)}, nil
}

// Temps is the memory that the launches share.
func (p *Plan) Temps() []*assemble.Temp { return p.scheme.temps() }

// Launches are the launches that compute the plan's form, in order.
func (p *Plan) Launches() ([]*assemble.Launch, error) {
	ls, err := p.launches()
	out := make([]*assemble.Launch, len(ls))
	for i, l := range ls {
		out[i] = &l.Launch
	}
	return out, err
}

// launches are made once: their texts are those of the same launches.
func (p *Plan) launches() ([]*launch, error) {
	if p.made != nil {
		return p.made, nil
	}
	var err error
	p.made, err = p.scheme.launches()
	for _, l := range p.made {
		l.Block.Waits = p.dependents
	}
	return p.made, err
}

// Texts are the verified texts of the launches.
func (p *Plan) Texts() ([]assemble.Text, error) {
	ls, err := p.launches()
	if err != nil {
		return nil, err
	}
	written, err := texts(ls)
	if err != nil {
		return nil, err
	}
	out := make([]assemble.Text, len(written))
	for i, t := range written {
		out[i] = t
	}
	return out, nil
}

// Tile is the tile of a contraction, and the name of its product in the
// measured choices; that of an attention on tensor cores and of a sum over windows have no name. Both are "" for
// other forms.
func (p *Plan) Tile() (tile, product string) {
	switch s := p.scheme.(type) {
	case *contraction:
		return s.c.String(), shapeOf(s.t).key(s.target.Arch)
	case *windowSum:
		return s.String(), ""
	case *attentionPlan:
		return s.tileAttr(), ""
	case *attentionGradient:
		return s.tileAttr(), ""
	}
	return "", ""
}

// Pace is how fast the launches run.
func (p *Plan) Pace() assemble.Pace { return p.pace }

// timesOf is what times depend on, without measured choices.
type timesOf struct {
	arch    string
	machine *machine.Machine
	rank    int
}

// Times is what the fusion planner asks of kernels for the machine of u.
func (c codegen) Times(u *pass.Unit) (target.Times, error) {
	t, err := c.target(u)
	times := assemble.Times(assembler{t})
	times.Least = leastTimes(t, u.Model())
	if c.options.TilesFile == "" {
		times.Of = timesOf{c.options.Arch, u.Machine, c.options.TileRank}
	}
	return times, err
}
