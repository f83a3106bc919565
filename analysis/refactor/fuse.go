package refactor

import (
	"fmt"
	"strings"

	"dmir/analysis/cost"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/origin"
	"dmir/dialect/types"
	"dmir/syntax/ast"
)

const (
	// maxListed is the most ops, from the first to the last, that are checked to
	// decide whether an action is offered while the cursor moves.
	maxListed = 256
	// maxPartners is how many values an op at the cursor is offered to be fused with.
	maxPartners = 4
)

// offerFuse offers one kernel of the selected ops, or of the op at the cursor
// and each of those that feed it or use it.
func offerFuse(s *selection) []Action {
	if s.fn == nil || s.block == nil || around(s.block.Region.Op, op.Kernel) != nil {
		return nil
	}
	if !s.cursor {
		if o := s.one(); o != nil && (o.Name == op.Kernel || fusible(o) != nil) {
			return nil
		}
		return []Action{s.offerKernel("fuse", fuseTitle(s.ops), s.ops)}
	}
	o := s.one()
	if o == nil || !s.onHead(o) || fusible(o) != nil {
		return nil
	}
	var out []Action
	for _, p := range s.partners(o) {
		if fusible(p) != nil {
			continue
		}
		a := s.offerKernel("fuse:"+describe(p), "Fuse with "+describe(p)+" into a kernel", inOrder(p, o))
		if a.Disabled == "" {
			out = append(out, a)
		}
	}
	return out
}

func fuseTitle(ops []*ir.Op) string {
	for _, o := range ops {
		if o.Name == op.Kernel {
			return "Fuse into one kernel"
		}
	}
	return "Fuse into a kernel"
}

// partners are the ops of o's block that give what o uses, and those that use
// what it gives: the first few, and close to it, as lists may be long.
func (s *selection) partners(o *ir.Op) []*ir.Op {
	var out []*ir.Op
	seen, i := map[*ir.Op]bool{o: true}, index(o)
	add := func(p *ir.Op) {
		if p.Parent != s.block || seen[p] || len(out) == maxPartners || base(first(p)) == "" {
			return
		}
		seen[p] = true
		if n := index(p) - i; -maxListed < n && n < maxListed {
			out = append(out, p)
		}
	}
	operands(o, func(v *ir.Value) {
		if v.Op != nil {
			add(v.Op)
		}
	})
	for _, v := range o.Results {
		for _, u := range v.Uses[:min(len(v.Uses), maxPartners)] {
			add(enclosing(u.Op, s.block))
		}
	}
	return out
}

// first is o's first result; one without a name where it has none.
func first(o *ir.Op) *ir.Value {
	if len(o.Results) == 0 {
		return &ir.Value{}
	}
	return o.Results[0]
}

// inOrder is two ops of a block as they stand in the text.
func inOrder(a, b *ir.Op) []*ir.Op {
	if a.Span.Start > b.Span.Start {
		a, b = b, a
	}
	return []*ir.Op{a, b}
}

func (s *selection) offerKernel(id, title string, ops []*ir.Op) Action {
	a := Action{ID: id, Kind: Rewrite, Title: title}
	if index(ops[len(ops)-1])-index(ops[0]) >= maxListed {
		return a
	}
	g, err := s.kernelGroup(ops)
	if err != nil {
		a.Disabled = err.Error()
		return a
	}
	return g.saving().on(a)
}

// kernelGroup is the group of ops as one kernel, or why it cannot be.
func (s *selection) kernelGroup(ops []*ir.Op) (*group, error) {
	if isolated(s.block.Region.Op) && s.block.Region.Op.Name != op.Func {
		return nil, refuse("a scalar region cannot contain kernels")
	}
	for _, o := range ops {
		if err := fusible(o); err != nil {
			return nil, err
		}
	}
	g, err := s.gather(s.block, ops)
	if err != nil {
		return nil, err
	}
	if len(g.exports) == 0 {
		return nil, refuse("no value computed in the selection is used outside it")
	}
	for _, v := range g.exports {
		if err := s.typed(v); err != nil {
			return nil, err
		}
	}
	if err := s.p.OneKernel(s.fn, g.ops, g.exports); err != nil {
		return nil, refuse("the compiler cannot make one kernel of them: %v", err)
	}
	return g, nil
}

// fusible explains why o cannot be a part of a kernel, nil where it can.
func fusible(o *ir.Op) error {
	def := op.Of(o)
	switch {
	case op.Ends(o) || len(o.Succs) > 0:
		return refuse("%s is the terminator of the block", o.Name)
	case o.Name == op.Grad:
		return refuse("dm.grad expands to a whole graph, which is more than one kernel")
	case o.Name == op.Call:
		return refuse("a kernel cannot contain a call; inline it first")
	case o.Name == op.If || op.LoopBody(o) != nil:
		return refuse("%s is control flow, which a kernel cannot contain", o.Name)
	case o.Name == op.Kernel:
		return opened(o)
	case def == nil:
		return refuse("dmir does not know what %s does", o.Name)
	case def.Family == op.Distribution:
		return refuse("%s runs on several devices, and a kernel on one", o.Name)
	case !def.Is(op.Pure):
		return refuse("%s has side effects", o.Name)
	case op.IsSparse(o):
		return refuse("%s has sparse tensors, and the compiler fuses the dense ops that it is written out as", o.Name)
	}
	for _, vs := range [][]*ir.Value{o.Operands, o.Results} {
		for _, v := range vs {
			if t := v.Tensor(); t != nil && t.At.In() != types.HBM {
				return refuse("%s is in %s, but a kernel reads and writes device memory", spelled(v), t.At.In())
			}
		}
	}
	return nil
}

// opened explains why the inside of kernel k cannot be taken out, nil where it can.
func opened(k *ir.Op) error {
	t := k.Body(0).Terminator()
	if origin.Tree(k) == nil || len(origin.Tree(k).Regions) != 1 || origin.Tree(k).Regions[0].Close < 0 || len(k.Regions) != 1 || len(k.Regions[0].Blocks) != 1 ||
		t == nil || t.Name != op.Yield || len(t.Operands) != len(k.Results) {
		return refuse("%s is not a complete kernel", describe(k))
	}
	return nil
}

func (g *group) saving() promise {
	s := g.s
	var removed []*cost.Entry
	for _, o := range g.ops {
		removed = append(removed, s.entry(o))
	}
	return s.promised(g.block, removed, []*cost.Entry{cost.Group(s.fn, s.m, s.p.Bind, g.ops, g.exports)})
}

func applyFuse(s *selection, with string) (*Change, error) {
	if s.fn == nil || s.block == nil || around(s.block.Region.Op, op.Kernel) != nil {
		return nil, refuse("a kernel must be in a function, not in another kernel")
	}
	ops := s.ops
	if with != "" {
		ops = nil
		for _, p := range s.partners(s.ops[0]) {
			if describe(p) == with {
				ops = inOrder(p, s.ops[0])
			}
		}
		if ops == nil {
			return nil, refuse("%s is neither a producer nor a user of the op at the cursor", with)
		}
	}
	g, err := s.kernelGroup(ops)
	if err != nil {
		return nil, err
	}
	attrs, loc, err := g.kernelParts()
	if err != nil {
		return nil, err
	}
	inner, outside := renaming{}, renaming{}
	heads := g.heads(outside)
	g.nameInside(inner)
	list, arrow := g.typeList()
	yielded := make([]string, len(g.exports))
	for i, v := range g.exports {
		yielded[i] = inner.of(v)
	}
	return &Change{Edits: g.rewrite(inner, outside, true, func(body string) string {
		return fmt.Sprintf("%s = dm.kernel%s -> %s {\n%s\ndm.yield %s : %s\n}%s", heads, attrs, arrow, body, strings.Join(yielded, ", "), list, loc)
	})}, nil
}

// nameInside names what the kernel will hold: each value keeps its name, unless
// that is seen from outside or given twice. The kernel's own results are not
// seen inside it, so that a value and the result that it becomes share a name.
func (g *group) nameInside(inner renaming) {
	n := newNames()
	n.addVisible(g.block)
	for _, o := range g.ops {
		for _, v := range o.Results {
			delete(n.taken, base(v))
		}
	}
	for _, o := range g.ops {
		if o.Name != op.Kernel {
			inner.results(o, n.fresh)
			continue
		}
		body := o.Body(0)
		inner.inside(body.Ops, n.fresh)
		for i, v := range body.Terminator().Operands {
			inner[o.Results[i]] = inner.of(v)
		}
	}
}

// kernelParts are the attributes and the location that the kernels among the
// members had, as they stand in the text.
func (g *group) kernelParts() (attrs, loc string, err error) {
	kernels := 0
	for _, o := range g.ops {
		if o.Name != op.Kernel {
			continue
		}
		kernels++
		t := origin.Tree(o)
		if !t.Loc.Empty() {
			loc = " " + t.Text(g.s.src, t.Loc)
		}
		text := t.Text(g.s.src, t.Attrs)
		if t.Form == ast.Generic && !t.Props.Empty() {
			text = strings.TrimSuffix(strings.TrimPrefix(t.Text(g.s.src, t.Props), "<"), ">")
		}
		if text == "" {
			continue
		}
		if attrs != "" && attrs != " "+text {
			return "", "", refuse("two of the kernels have attributes, which cannot be merged")
		}
		attrs = " " + text
	}
	if kernels > 1 {
		loc = ""
	}
	return attrs, loc, nil
}
