package cuda

import (
	"fmt"

	"dmir/compile/kernel"
	"dmir/dialect/ir"
)

// generator writes the kernels of one program.
type generator struct {
	target Target
	want   string // the tile of the next contraction, as its text has it; "" or one that does not fit: what is best
	picked pick   // the tile that the last contraction took
	// over gives the results of the next kernel that are written over one of its
	// inputs that input.
	over map[*ir.Value]*ir.Value
	// unsound is what the text of the kernel that is being written asked for where
	// it cannot be computed.
	unsound []string
}

// pick is a tile and the product that it is for, as the measured choices name it.
type pick struct {
	product string
	tile    Config
}

// tileOf is the tile that the text asks for, or the one of the rank that is
// being measured, or the one that was measured to be fastest, or the one that
// the model puts first.
func (g *generator) tileOf(t *kernel.Tiled, candidates []Config) Config {
	for _, c := range candidates {
		if c.String() == g.want {
			return c
		}
	}
	if n := g.target.Rank; n > 0 {
		return candidates[min(n, len(candidates))-1]
	}
	if c, ok := g.target.Tiles.Find(t, g.target); ok {
		return c
	}
	return candidates[0]
}

// multiprocessors is how many the target has; a machine whose data does not say
// counts as an H100.
func (g *generator) multiprocessors() int64 {
	if n := g.target.Machine.SMs; n > 0 {
		return int64(n)
	}
	return 132
}

func newGenerator(t Target) *generator { return &generator{target: t} }

// kernels are the launches that compute f, in order. The first one is called
// name, others after it. The nest of f is verified before text is made, and the
// text after it: what fails is a defect of the generator, and never runs.
func (g *generator) kernels(f *kernel.Form, name string) ([]launch, error) {
	if err := f.Verify(); err != nil {
		return nil, &unsoundError{problems: []string{err.Error()}}
	}
	g.unsound = nil
	ls, err := g.launches(f, name)
	if err != nil {
		return nil, err
	}
	for _, l := range ls {
		if f.Class != kernel.ClassContraction && f.Class != kernel.ClassSpecial {
			g.unsound = append(g.unsound, undefined(&l)...)
		}
	}
	if len(g.unsound) > 0 {
		return nil, &unsoundError{g.unsound, ls}
	}
	if differs := byData(f, len(ls)); differs != "" {
		for i := range ls {
			ls[i].differs = differs
		}
	}
	return ls, nil
}

func (g *generator) launches(f *kernel.Form, name string) ([]launch, error) {
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
