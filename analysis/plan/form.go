package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/op"
)

// A form is the step with its sparse tensors whole, or some of them in pieces: ops on pieces are others than those on whole tensors,
// so that each form is a graph of its own.
type form struct {
	*graph
	of map[int]int64 // in how many pieces the search puts arguments of the text's function, by their place
}

func newForm(m *ir.Module, fn *ir.Func, o Options, of map[int]int64) (*form, error) {
	flat, err := newStraight(m, fn, o.Bind, of)
	if err != nil {
		return nil, err
	}
	g, err := newGraph(flat, o.Machine, o.Batch)
	if err != nil {
		return nil, err
	}
	g.work = o.Work
	g.near = o.Price != nil
	g.work.Add("nodes", len(g.nodes))
	return &form{g, of}, nil
}

// mostAlone bounds the sparse arguments that are also divided one by one, where all can be.
const mostAlone = 4

// divideRows adds the forms of the step in which sparse arguments whose sharding the text leaves open are divided by rows, or by entries as
// the text says: all that can be together, and each of them alone, in as many pieces as devices along axes may be.
func (s *search) divideRows() {
	var open []int
	for i, a := range s.text.Args {
		if t := a.Tensor(); t != nil && t.Format != nil && op.StatedSharding(a) == nil {
			open = append(open, i)
		}
	}
	if len(open) == 0 || s.o.Devices < 2 {
		return
	}
	for _, n := range s.inPieces() {
		with := func(args ...int) *form {
			of := map[int]int64{}
			for _, i := range args {
				of[i] = n
			}
			f, err := newForm(s.module, s.text, s.o, of)
			if err != nil || s.fix(f.graph) != nil {
				return nil // an op has no form in pieces
			}
			return f
		}
		var together []int
		var all *form
		var alone []*form
		for _, i := range open {
			f := with(i)
			if f == nil {
				continue
			}
			alone = append(alone, f)
			if together == nil {
				together, all = []int{i}, f
			} else if more := with(append(slices.Clone(together), i)...); more != nil {
				together, all = append(together, i), more
			}
		}
		if all != nil {
			s.forms = append(s.forms, all)
		}
		if len(alone) > 1 && len(alone) <= mostAlone {
			for _, f := range alone {
				if !slices.ContainsFunc(s.forms, func(g *form) bool { return maps.Equal(f.of, g.of) }) {
					s.forms = append(s.forms, f)
				}
			}
		}
	}
}

// inPieces are the numbers of devices along axes of a mesh.
func (s *search) inPieces() []int64 {
	if s.given.mesh == nil {
		return divisors(int64(s.o.Devices))[1:]
	}
	out := along(s.given.axes)
	return slices.DeleteFunc(out, func(n int64) bool { return n == 1 })
}

// along are the numbers of devices along each set of axes.
func along(axes []Axis) []int64 {
	out := []int64{1}
	for _, a := range axes {
		for _, n := range slices.Clone(out) {
			if n *= int64(a.Size); !slices.Contains(out, n) {
				out = append(out, n)
			}
		}
	}
	slices.Sort(out)
	return out
}

// possible reports whether axes of the setting have as many devices as there are pieces. Stages have no arguments in pieces.
func (f *form) possible(set setting) bool {
	for _, n := range f.of {
		if set.pipe > 1 || !slices.Contains(along(set.axes), n) {
			return false
		}
	}
	return true
}

// divided says which sparse arguments are in pieces.
func (w *writer) divided() []string {
	args := map[string][]string{}
	var order []string
	for i, a := range w.s.text.Args {
		if !w.byRows[i] {
			continue
		}
		by := lineName(a.Tensor().Format.Outermost(), a.Tensor().Rank())
		if op.DividedByEntries(w.s.text, i) {
			by = op.ByEntries
		}
		if args[by] == nil {
			order = append(order, by)
		}
		args[by] = append(args[by], a.Name)
	}
	for i, by := range order {
		order[i] = strings.Join(args[by], ", ") + " divided by " + by
	}
	return order
}

// lineName is what devices have of a sparse tensor that is divided along dimension d.
func lineName(d, rank int) string {
	switch {
	case d == rank-2:
		return "rows"
	case d == rank-1 && rank > 1:
		return "columns"
	}
	return fmt.Sprintf("dimension %d", d)
}
