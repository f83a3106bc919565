package cuda

import (
	"fmt"

	"dmir/compile/kernel"
	"dmir/compile/pass"
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// Plan is how a kernel runs on a target: how its launches share the work, and the
// memory that they share. It follows from the kernel's form, the target and the
// options alone; its text is written from it.
type Plan struct {
	Form *kernel.Form
	scheme
}

// scheme is how the launches of a form share the work.
type scheme interface {
	// temps is the memory that the launches share, in the order in which they take it.
	temps() []*temp
	// launches are the launches in order.
	launches() ([]*launch, error)
}

// options are what a plan depends on beside the form and the target.
type options struct {
	tile string                  // of a contraction, as the text has it; "" or one that does not fit: the best
	over map[*ir.Value]*ir.Value // the results that are written over an input, and that input
}

// plan is the plan of f.
func (t Target) plan(f *kernel.Form, o options) (*Plan, error) {
	var s scheme
	var err error
	switch f.Class {
	case kernel.ClassPointwise, kernel.ClassLoop:
		s = &elementwise{f, o.over}
	case kernel.ClassRow:
		s = t.rows(f)
	case kernel.ClassColumns:
		s = t.columns(f)
	case kernel.ClassLibrary:
		s, err = t.library(f)
	case kernel.ClassContraction:
		s, err = t.contraction(f, o.tile)
	default:
		err = fmt.Errorf("no kernel of class %s", f.Class)
	}
	if err != nil {
		return nil, err
	}
	return &Plan{f, s}, nil
}

// launches are the launches that compute the plan's form, in order. The nest of
// the form is verified first: what fails is a defect of dmir.
func (p *Plan) launches() ([]*launch, error) {
	if err := p.Form.Verify(); err != nil {
		return nil, &unsoundError{problems: []string{err.Error()}}
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

// tile is the tile of a contraction, and the product that it is for as the
// measured choices name it; both are "" for other forms.
func (p *Plan) tile() (tile, product string) {
	if c, ok := p.scheme.(*contraction); ok {
		return c.c.String(), shapeOf(c.t).key(c.target.Arch)
	}
	return "", ""
}

// scratch is the bytes of the memory that the launches share.
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
	// updated: the first launch adds to what it has written.
	updated bool
	// own: the op needs it in every kernel, whatever other ops are in it.
	own bool
}

func (t *temp) bytes() int64 { return t.n * t.elem.Bytes() }

// PartialBytes gives for the machine of u how many bytes a kernel writes to memory
// of its own and reads from it since its ops are in one kernel: the partial
// results that its blocks leave to the next launch. A planner can ask it of every
// group of ops.
func (c codegen) PartialBytes(u *pass.Unit) (func(*kernel.Form) int64, error) {
	t, err := c.target(u)
	if err != nil {
		return nil, err
	}
	return t.partialBytes, nil
}

func (t Target) partialBytes(f *kernel.Form) int64 {
	if f.Class == kernel.ClassContraction && len(f.Outs) == len(f.Outputs) {
		return 0 // what the split of its sum takes is its own
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
