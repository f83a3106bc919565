package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"dmir/analysis/pipelining"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/stacks"
	"dmir/syntax/source"
)

// A form is the step with its sparse tensors whole, or some of them in pieces: ops on pieces are others than those on whole tensors,
// so that each form is a graph of its own. So is the step with its loop over layers written out, which stages cut.
type form struct {
	*graph
	of map[int]int64 // in how many pieces the search puts arguments of the text's function, by their place
}

func newForm(m *ir.Module, fn *ir.Func, o Options, of map[int]int64, unrolled bool) (*form, error) {
	flat, err := newStraight(m, fn, o.Bind, of, unrolled)
	if flat == nil {
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
			f, err := newForm(s.module, s.text, s.o, of, false)
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

// possible reports whether axes of the setting have as many devices as there are pieces. Stages have no arguments in pieces, and equally
// many layers of a loop, but for the last one.
func (f *form) possible(set setting) bool {
	if f.looped() && (set.pipe == 1 || !op.Stageable(f.layers.count, set.pipe)) {
		return false
	}
	for _, n := range f.of {
		if set.pipe > 1 || !slices.Contains(along(set.axes), n) {
			return false
		}
	}
	return true
}

// looped reports whether the layers are the iterations of a loop.
func (s *straight) looped() bool { return s.loop != source.Span{} }

// unroll adds the form of the step in which its loop over layers is written out, where there is one and stages are asked for or
// searched.
func (s *search) unroll() error {
	fix := &s.o.Fix
	if s.layers != nil || s.o.Devices < 2 || fix.Pipe == 1 || s.given.mesh != nil && s.given.pipe == 1 {
		return nil
	}
	f, err := newForm(s.module, s.text, s.o, nil, true)
	if f == nil || f.layers == nil {
		if fix.Pipe > 1 || s.given.pipe > 1 {
			return err
		}
		return nil
	}
	refuse := func(help, format string, args ...any) error {
		return &Error{Code: CodeStated, At: s.textOps[f.loop], Msg: fmt.Sprintf(format, args...), Help: help}
	}
	pipe := max(fix.Pipe, s.given.pipe)
	switch {
	case pipe < 2: // other plans have none of what follows
	case !op.Stageable(f.layers.count, pipe):
		return refuse(fmt.Sprintf("ask for fewer stages, or a number that divides %d: the last one alone may have fewer layers", f.layers.count), "a loop of %d layers does not divide into %d stages", f.layers.count, pipe)
	case fix.Chunks > 1 || fix.Schedule == string(pipelining.Interleaved) || fix.Schedule == string(pipelining.ZBV):
		return refuse("leave the schedule out, or write the layers as equal calls", "the layers of @%s are a loop, of which each device has one stage", s.text.Name)
	case fix.Recompute == None:
		return refuse("ask for selective or full", "the layers of @%s are a loop, whose derivative computes again what takes no contraction", s.text.Name)
	}
	if err := s.fix(f.graph); err != nil {
		return err
	}
	s.forms = append(s.forms, f)
	return nil
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

// pieces is how many arguments from number i on are one of the text, which has an element for each layer of a loop.
func (s *straight) pieces(i int) int {
	return max(1, stacks.Pieces(s.fn.Op, "arg_attrs", i, s.fn.Args[i].Type))
}
