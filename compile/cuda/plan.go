package cuda

import (
	"fmt"

	"dmir/compile/kernel"
	"dmir/compile/pass"
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// Plan is how a kernel runs on a target: its launches and the memory that they
// share. It is a function of the kernel's form, the target and the options; the
// text is written from it.
type Plan struct {
	Form *kernel.Form
	scheme
}

// scheme is the partition of a form into launches.
type scheme interface {
	// temps is the memory that the launches share, in order of allocation.
	temps() []*temp
	// launches are the launches in order.
	launches() ([]*launch, error)
}

// options are the inputs of a plan besides the form and the target.
type options struct {
	tile string                  // of a contraction, from the text; "" or an unsupported one: the best
	over map[*ir.Value]*ir.Value // the results that overwrite an input, with that input
}

// plan is the plan of f.
func (t Target) plan(f *kernel.Form, o options) (*Plan, error) {
	var s scheme
	var err error
	switch f.Class {
	case kernel.ClassPointwise, kernel.ClassLoop:
		s, err = t.elementwise(f, o.over)
	case kernel.ClassRow:
		s = t.rows(f)
	case kernel.ClassColumns:
		s = t.columns(f)
	case kernel.ClassLibrary:
		s, err = t.library(f)
	case kernel.ClassContraction:
		s, err = t.contraction(f, o)
	default:
		err = fmt.Errorf("no kernel of class %s", f.Class)
	}
	if err != nil {
		return nil, err
	}
	return &Plan{f, s}, nil
}

// launches are the launches that compute the plan's form, in order. The nest of
// the form is verified first; an error is a defect of dmir.
func (p *Plan) launches() ([]*launch, error) {
	if err := p.Form.Verify(); err != nil {
		return nil, &invalidError{problems: []string{err.Error()}}
	}
	ls, err := p.scheme.launches()
	if err != nil {
		return nil, err
	}
	if differs := dataDependence(p.Form, len(ls)); differs != "" {
		for _, l := range ls {
			l.differs = differs
		}
	}
	return ls, nil
}

// tile is the tile of a contraction, and the name of its product in the
// measured choices; both are "" for other forms.
func (p *Plan) tile() (tile, product string) {
	if c, ok := p.scheme.(*contraction); ok {
		return c.c.String(), shapeOf(c.t).key(c.target.Arch)
	}
	return "", ""
}

// scratch is the size of the shared memory of the launches, in bytes.
func (p *Plan) scratch() int64 {
	var n int64
	for _, t := range p.temps() {
		n += aligned(t.bytes())
	}
	return n
}

// temp is memory that the launches of a plan share.
type temp struct {
	elem types.Elem
	n    int64
	// updated: the first launch accumulates into it.
	updated bool
	// own: the op needs it in every kernel, alone or fused.
	own bool
}

func (t *temp) bytes() int64 { return t.n * t.elem.Bytes() }

// PartialBytes returns, for the machine of u, the function that gives the bytes
// of partial results that a kernel writes for its next launch and reads back
// because its ops are fused. The fusion planner calls it for every candidate.
func (c codegen) PartialBytes(u *pass.Unit) (func(*kernel.Form) int64, error) {
	t, err := c.target(u)
	if err != nil {
		return nil, err
	}
	return t.partialBytes, nil
}

func (t Target) partialBytes(f *kernel.Form) int64 {
	if f.Class == kernel.ClassContraction && !f.Reduces() {
		return 0 // the partial sums of a split are needed unfused as well
	}
	p, err := t.plan(f, options{})
	if err != nil {
		return 0
	}
	var bytes int64
	for _, x := range p.temps() {
		switch {
		case x.own:
		case x.updated:
			bytes += 3 * x.bytes()
		default:
			bytes += 2 * x.bytes()
		}
	}
	return bytes
}
