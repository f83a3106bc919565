package llvm

import (
	"fmt"

	"dmir/analysis/machine"
	"dmir/compile/assemble"
	"dmir/compile/kernel"
)

// generator is the back end of package assemble: the kernels for one architecture
// and one machine.
type generator struct {
	arch    string // "x86-64-v4", …; "" for the default
	machine *machine.Machine
}

func (g generator) Name() string              { return Name }
func (g generator) Machine() *machine.Machine { return g.machine }

// scheme is the partition of a form into launches.
type scheme interface {
	// temps is the memory that the launches share, in order of allocation.
	temps() []*assemble.Temp
	// launches are the launches in order.
	launches() ([]*launch, error)
}

// plan is how a kernel runs.
type plan struct {
	scheme
	arch string
}

// Plan is the plan of f.
func (g generator) Plan(f *kernel.Form, o assemble.Options) (assemble.Plan, error) {
	var s scheme
	var err error
	switch f.Class {
	case kernel.ClassPointwise, kernel.ClassLoop:
		s, err = newElements(f, o.Over)
	case kernel.ClassRow, kernel.ClassColumns:
		s, err = newRows(f)
	case kernel.ClassLibrary:
		s, err = g.library(f)
	case kernel.ClassContraction:
		s, err = g.contraction(f, o)
	default:
		err = fmt.Errorf("no kernel of class %s", f.Class)
	}
	if err != nil {
		return nil, err
	}
	return plan{s, g.arch}, nil
}

func (p plan) Temps() []*assemble.Temp { return p.temps() }

func (p plan) Launches() ([]*assemble.Launch, error) {
	ls, err := p.launches()
	var out []*assemble.Launch
	for _, l := range ls {
		l.Arch = p.arch
		out = append(out, &l.Launch)
	}
	return out, err
}

func (p plan) Texts() ([]assemble.Text, error) {
	ls, err := p.launches()
	if err != nil {
		return nil, err
	}
	var out []assemble.Text
	for _, l := range ls {
		t, err := newText(l, p.arch)
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}

// Tile is nothing: blocks follow from the shape.
func (plan) Tile() (tile, product string) { return "", "" }

// Pace is that of any kernel.
func (plan) Pace() assemble.Pace { return assemble.Pace{} }

// single is a scheme of one launch.
type single struct{ *launch }

func (single) temps() []*assemble.Temp        { return nil }
func (s single) launches() ([]*launch, error) { return []*launch{s.launch}, nil }

// task is the number of elements of a task, as far as they divide so: few enough that
// all threads have work where a fork and a join pay.
const task = 4 << 10

func ceil(a, b int64) int64 { return (a + b - 1) / b }
