package schedule

import (
	"context"

	"dmir/analysis/cost"
	"dmir/analysis/units"
	"dmir/compile/pass"
	"dmir/dialect/types"
)

// Plan is the pass "plan": it assigns every argument, constant and result an
// offset in one allocation, for the order, the streams and the waits of the
// text. Values that are never live at the same time share memory.
func Plan() pass.Pass {
	return pass.Pass{
		Name:    "plan",
		Summary: "give every value its offset in one allocation",
		Run:     plan,
	}
}

func plan(u *pass.Unit) error {
	fn, body := u.Func, u.Body()
	if body.Block == nil {
		return pass.Errorf(fn.Op, "DM803", "@%s is only declared", fn.Name)
	}
	if !body.IsRegion() {
		hoist(fn)
	}
	if err := pass.Regions(u, plan); err != nil {
		return err
	}
	strip(body, OffsetsAttr, ScratchOffsetAttr, WorkspaceAttr, ArgOffsetsAttr)
	g, err := read(body, u.Module, u.Options.Bind)
	if err != nil {
		return err
	}
	t := g.streams()
	if len(t.problems) > 0 {
		return asError(t.problems)
	}
	if t.dependencies(); len(t.problems) > 0 {
		return asError(t.problems)
	}
	offset := map[*root]int64{}
	scratch := map[*step]int64{}
	var top int64
	for _, r := range g.roots {
		if r.persistent() && r.size > 0 {
			offset[r] = top
			top += r.size
		}
	}
	bs := g.blocks(t.clock)
	l := placementOf(u.Context(), t.clock, bs)
	l.base = top
	at, peak := assignOffsets(u.Context(), l)
	for i, b := range bs {
		for _, r := range b.roots {
			offset[r] = top + at[i]
		}
		if b.step != nil {
			scratch[b.step] = top + at[i]
		}
	}
	top += peak
	if err := u.Context().Err(); err != nil {
		return err
	}
	g.write(offset, scratch, top)
	budget, limited, err := maxPeak(body, u.Options.Bind)
	if err != nil {
		return err
	}
	if limited && top > budget {
		return pass.Errorf(fn.Op, "DM841", "the plan of @%s takes %s, %s more than %s allows: what is live at once, each value rounded up to %d bytes, cannot be packed closer",
			fn.Name, units.Bytes(top), units.Bytes(top-budget), cost.MaxPeak, Align)
	}
	return nil
}

// assignOffsets places each component of l by itself; all begin at 0.
func assignOffsets(ctx context.Context, l *placement) (at []int64, peak int64) {
	at = make([]int64, len(l.size))
	for _, members := range l.parts() {
		p := l.part(members)
		peak = max(peak, p.place(ctx))
		for k, i := range members {
			at[i] = p.offset[k]
		}
	}
	return at, peak
}

// asError is the first problem as the error of a pass.
func asError(ps Problems) error {
	return &pass.Error{Span: ps[0].Span, Code: ps[0].Code, Msg: ps[0].Message, Help: ps[0].Help}
}

// write records a plan in the text.
func (g *model) write(offset map[*root]int64, scratch map[*step]int64, workspace int64) {
	where := func(r *root) int64 {
		if r.external {
			return -1
		}
		if r.aliased != nil {
			return offset[r.aliased]
		}
		return offset[r]
	}
	list := func(rs []*root) types.Attr {
		ns := make([]int64, len(rs))
		for i, r := range rs {
			ns[i] = where(r)
		}
		return integers(ns)
	}
	head(g.body).SetAttr(WorkspaceAttr, types.Int{V: workspace})
	if !g.body.IsRegion() {
		var args []*root
		for _, v := range g.body.Args {
			args = append(args, g.rootOf[v])
		}
		g.body.Func.Op.SetAttr(ArgOffsetsAttr, list(args))
	}
	for _, o := range g.consts {
		o.SetAttr(OffsetsAttr, list([]*root{g.rootOf[o.Results[0]]}))
	}
	for _, s := range g.steps {
		if len(s.makes) > 0 {
			s.op.SetAttr(OffsetsAttr, list(s.makes))
		}
		if s.scratch > 0 {
			s.op.SetAttr(ScratchOffsetAttr, types.Int{V: scratch[s]})
		}
	}
}
