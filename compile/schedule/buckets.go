package schedule

import (
	"slices"

	"dmir/analysis/cost"
	"dmir/base/streams"
	"dmir/compile/pass"
	"dmir/dialect/ir"
	"dmir/dialect/op"
)

// Buckets is the pass "buckets": it makes one of collectives where that takes less time (op.Bucket, cost.Buckets). A value of
// one then lives until all are exchanged: where the function has a dm.max_peak that its order meets without them and not with
// them, each collective stays by itself.
func Buckets() pass.Pass {
	return pass.InRegions(pass.Pass{
		Name:    "buckets",
		Summary: "collectives whose latency is to be taken once as one, where the whole then takes less time",
		Run:     buckets,
	})
}

func buckets(u *pass.Unit) error {
	body := u.Body()
	if body.Block == nil || !slices.ContainsFunc(body.Ops, func(o *ir.Op) bool { return op.BucketKey(o) != "" }) {
		return nil
	}
	g, err := read(body, u.Module, u.Options.Bind)
	if err != nil {
		return err
	}
	found, p, err := g.buckets(u)
	if err != nil || len(found.Sets) == 0 {
		return err
	}
	budget, limited, err := maxPeak(body, u.Options.Bind)
	if err != nil {
		return err
	}
	before := slices.Clone(body.Ops)
	r := newRematerialized(p, found.Order, nil)
	apply(g, r)
	var made []*ir.Op
	for _, set := range found.Sets {
		var ops []*ir.Op
		for _, i := range set {
			ops = append(ops, g.steps[i].op)
		}
		made = append(made, together(ops))
	}
	if limited {
		with, err := read(body, u.Module, u.Options.Bind)
		if err != nil {
			return err
		}
		if g.lowestPeak(u) <= budget && with.lowestPeak(u) > budget {
			for _, o := range made {
				pass.Dissolve(o)
			}
			body.Ops = before
		}
	}
	return u.Context().Err()
}

// buckets finds those of g's steps, which are the tasks of p.
func (g *model) buckets(u *pass.Unit) (found streams.Bucketed, p *problem, err error) {
	costs := cost.Block(g.body.Block, u.Func, u.Module, u.Options.Bind)
	entries := make([]*cost.Entry, len(g.steps))
	for i, s := range g.steps {
		entries[i] = costs[s.op]
	}
	m := u.Model()
	b := cost.NewBucketing(entries, m)
	p = g.problem(false)
	steps := newRematerialized(p, p.textOrder(), nil).steps(g, durations(g, u, m))
	for i := range steps { // in ns, as the times of buckets
		steps[i].Duration *= 1e9
	}
	given, err := streams.Timeline(steps)
	if err == nil {
		given, err = streams.Hidden(steps, given, u.Work)
	}
	if err == nil {
		found, err = streams.Buckets(steps, b.Kinds, b.Together, given, u.Work)
	}
	if err != nil {
		err = pass.Errorf(g.body.Func.Op, "DM843", "%v", err)
	}
	return found, p, err
}

// lowestPeak is what an order of the steps holds that holds little.
func (g *model) lowestPeak(u *pass.Unit) int64 {
	p := g.problem(false)
	order, _ := p.lowest(u.Context(), p.textOrder())
	return p.peak(order)
}

// together puts ops, behind each other but for views, into a kernel at the place of the last; the views of what they give come
// behind it.
func together(set []*ir.Op) *ir.Op {
	block := set[0].Parent
	from, to := set[0].Position(), set[len(set)-1].Position()
	last := set[len(set)-1]
	k := &ir.Op{Name: op.Kernel, Parent: block, Span: last.Span, Head: last.Head, Loc: last.Loc}
	body := &ir.Block{}
	body.Region = &ir.Region{Op: k, Blocks: []*ir.Block{body}}
	k.Regions = []*ir.Region{body.Region}
	moved := make(map[*ir.Op]bool, len(set))
	for _, o := range set {
		moved[o] = true
	}
	var ahead, behind []*ir.Op
	for _, o := range block.Ops[from : to+1] {
		switch {
		case moved[o]:
		case slices.ContainsFunc(o.Operands, func(v *ir.Value) bool { return moved[v.Op] }):
			moved[o] = true
			behind = append(behind, o)
		default:
			ahead = append(ahead, o)
		}
	}
	block.Ops = slices.Concat(block.Ops[:from], ahead, []*ir.Op{k}, behind, block.Ops[to+1:])
	yield := &ir.Op{Name: op.Yield, Parent: body, Span: last.Span, Head: last.Head, Loc: last.Loc}
	for i, o := range set {
		out := o.Results[0]
		v := &ir.Value{Name: out.Name, Type: out.Type, Op: k, Index: i, Span: out.Span}
		k.Results = append(k.Results, v)
		ir.ReplaceUses(out, v)
		yield.Operands = append(yield.Operands, out)
		out.Uses = append(out.Uses, ir.Use{Op: yield, Index: i})
		out.Name = ""
		o.Parent = body
	}
	body.Ops = append(slices.Clone(set), yield)
	return k
}
