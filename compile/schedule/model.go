package schedule

import (
	"math"
	"slices"

	"dmir/analysis/cost"
	"dmir/analysis/memory"
	"dmir/compile/pass"
	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// model is a body as a graph of steps and the values that need memory.
type model struct {
	body   pass.Body
	sizes  memory.Sizes
	steps  []*step
	roots  []*root // inputs, then in the order of the text
	rootOf map[*ir.Value]*root
	consts []*ir.Op
	views  []*ir.Op // that move nothing, in the order of the text
	point  *step    // the last send or receive
	// inPlace allows element-wise kernels to write over their operands.
	inPlace bool
}

// step is an op that runs.
type step struct {
	op      *ir.Op
	index   int
	reads   []*root // each once, in the order of first use
	makes   []*root
	scratch int64 // bytes, rounded up to Align
	need    int64 // bytes, as they are
	// onto is, for each of makes, the value that the op updates in place, nil for
	// others; its other readers run before.
	onto []*root
	// behind is, of a send or a receive, the one before it: in another order a device might wait for what its partner
	// sends only once it has received.
	behind *step
}

// root is a value with storage, which its views share.
type root struct {
	value    *ir.Value
	index    int
	kind     kind
	bytes    int64 // 0 if it needs none
	size     int64 // rounded up to Align
	external bool  // outside the device's memory or, in a region, outside of the region's memory
	maker    *step // nil of inputs and constants
	reads    []*step
	out      bool // the function returns it, or the region yields it, or a view of it
	// aliased is the input whose memory it overwrites; nil where it has memory
	// of its own, or overwrites another result.
	aliased *root
}

type kind uint8

const (
	temp  kind = iota
	input      // an argument, or a value that a region captures
	constant
)

// persistent reports whether r never shares its memory.
func (r *root) persistent() bool { return r.kind != temp }

// kept reports whether r's memory is never freed.
func (r *root) kept() bool { return r.out || r.persistent() }

// read builds the model of body, with sizes of symbols from bind over those of
// the function.
func read(body pass.Body, m *ir.Module, bind map[string]int64) (*model, error) {
	fn := body.Func
	if body.Block == nil {
		return nil, pass.Errorf(fn.Op, "DM803", "@%s is only declared", fn.Name)
	}
	if !body.OneBlock() {
		return nil, pass.Errorf(fn.Op, "DM804", "@%s branches between blocks", fn.Name)
	}
	g := &model{
		body: body, sizes: cost.NewFlow(fn, m, bind).Sizes(),
		rootOf:  map[*ir.Value]*root{},
		inPlace: fn.Op.Bool(InPlaceAttr),
	}
	for _, v := range body.Inputs() {
		if err := g.add(v, input, nil); err != nil {
			return nil, err
		}
	}
	for i, o := range body.Ops {
		switch last := i == len(body.Ops)-1; {
		case last && op.Ends(o):
			for _, v := range o.Operands {
				if r := g.rootOf[v]; r != nil {
					r.out = true
				}
			}
		case op.Of(o) == nil:
			return nil, pass.Errorf(o, "DM804", "%s cannot be part of a static schedule", o.Name)
		case o.Name == op.Constant && len(o.Results) == 1:
			g.consts = append(g.consts, o)
			if err := g.add(o.Results[0], constant, nil); err != nil {
				return nil, err
			}
		case isView(g.sizes, o):
			g.views = append(g.views, o)
			g.rootOf[o.Results[0]] = g.rootOf[o.Operands[0]]
		default:
			if err := g.step(o); err != nil {
				return nil, err
			}
		}
	}
	return g, nil
}

func isView(sizes memory.Sizes, o *ir.Op) bool {
	return len(o.Results) == 1 && len(o.Operands) > 0 && sizes.View(o)
}

func (g *model) step(o *ir.Op) error {
	n := o.Int(ScratchAttr, 0)
	if pass.Controls(o) {
		n, _ = RegionBytes(o)
	}
	if n < 0 || n > maxBytes {
		return pass.Errorf(o, "DM842", "%s of %s is %d bytes", ScratchAttr, label(o), n)
	}
	s := &step{op: o, index: len(g.steps), scratch: roundUp(n), need: n}
	g.steps = append(g.steps, s)
	if o.Name == op.Send || o.Name == op.Recv {
		s.behind, g.point = g.point, s
	}
	for _, v := range ir.UsedValues(o) {
		r := g.rootOf[v]
		if r == nil || slices.Contains(s.reads, r) {
			continue
		}
		s.reads = append(s.reads, r)
		r.reads = append(r.reads, s)
	}
	for i, v := range o.Results {
		if err := g.add(v, temp, s); err != nil {
			return err
		}
		r, over := s.makes[i], g.onto(o, i)
		s.onto = append(s.onto, over)
		if over == nil {
			continue
		}
		if over.kind == input {
			r.aliased = over
		} else {
			r.aliased = over.aliased
		}
		if r.aliased != nil {
			r.bytes, r.size, r.external = 0, 0, r.aliased.external
		}
	}
	return nil
}

// onto is the value that o updates in place in result i, nil where there is
// none.
func (g *model) onto(o *ir.Op, i int) *root {
	if g.sizes.Over == nil {
		return nil
	}
	v := g.sizes.Over(o, i)
	if v == nil {
		return nil
	}
	return g.rootOf[v]
}

// maxBytes bounds the size of one value so that sums of sizes do not overflow;
// it exceeds any device's memory.
const maxBytes = math.MaxInt64 >> 24

func (g *model) add(v *ir.Value, k kind, maker *step) error {
	r := &root{value: v, index: len(g.roots), kind: k, maker: maker}
	t := v.Tensor()
	r.external = t != nil && t.At.Space != types.HBM && t.At.Space != ""
	d := g.sizes.Value(v)
	switch x := v.Type.(type) {
	case *types.Tensor:
	case types.Scalar: // analysis counts only tensors; a scalar between steps needs memory
		d = dim.Const(x.Elem.Bytes())
	default:
		e := pass.Errorf(v.Op, "DM804", "%s has type %s, which devices do not support", called(v), v.Type)
		e.Help = "give it a tensor type, or take it out of @" + g.body.Func.Name
		if v.Op == nil {
			e.Span = v.Span
		}
		return e
	}
	n, ok := d.Int()
	if !ok {
		if syms := d.Symbols(); len(syms) > 0 {
			return pass.Errorf(v.Op, "DM801", "the size of %s depends on %s", called(v), syms[0])
		}
		return pass.Errorf(v.Op, "DM805", "the size of %s in bytes does not fit in 64 bits", called(v))
	}
	if n > maxBytes {
		return pass.Errorf(v.Op, "DM805", "%s is larger than the memory of any device", called(v))
	}
	r.bytes = max(n, 0)
	if k == input && g.body.IsRegion() { // its memory belongs to the enclosing body
		r.bytes, r.external = 0, true
	}
	r.size = roundUp(r.bytes)
	g.roots = append(g.roots, r)
	g.rootOf[v] = r
	if maker != nil {
		maker.makes = append(maker.makes, r)
	}
	return nil
}

func roundUp(n int64) int64 { return (n + Align - 1) / Align * Align }

// over lists the values that result i of s may overwrite, if s is their last
// reader: the operand of an update in place and, where the function allows it,
// an operand of an element-wise kernel whose elements are read by the threads
// that write them.
func (g *model) over(s *step, i int) []*root {
	o := s.op
	if x := s.onto[i]; x != nil {
		if s.makes[i].aliased != nil {
			return nil
		}
		return []*root{x}
	}
	var from []*ir.Value
	switch {
	case g.inPlace && op.IsBucket(o):
		if member := o.Body(0).Ops[i]; member.Name == op.AllReduce {
			from = member.Operands
		}
	case g.inPlace && o.Name == op.Kernel:
		from = op.PointwiseOperands(o, o.Results[i])
	case g.inPlace && o.Name == op.AllReduce:
		from = o.Operands
	}
	var out []*root
	for _, v := range from {
		r := g.rootOf[v]
		if r == nil || r.kept() || r.bytes != s.makes[i].bytes || slices.Contains(out, r) || g.seen(o, r) > 1 {
			continue
		}
		out = append(out, r)
	}
	return out
}

// before are the steps that run before s although it does not depend on their results: those that read values that
// it overwrites, and the one that it is behind.
func (g *model) before(s *step) (steps []int) {
	if s.behind != nil {
		steps = append(steps, s.behind.index)
	}
	for _, x := range s.onto {
		if x == nil {
			continue
		}
		for _, r := range x.reads {
			if r != s && !slices.Contains(steps, r.index) {
				steps = append(steps, r.index)
			}
		}
	}
	return steps
}

// seen is the number of ways in which the kernel k reads r: once for each
// captured value, r or a view of it, with its own index.
func (g *model) seen(k *ir.Op, r *root) int {
	n := 0
	for _, v := range ir.UsedValues(k) {
		if g.rootOf[v] == r {
			n++
		}
	}
	return n
}
