package partition

import (
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/shard"
	"dmir/dialect/types"
)

// structure divides loops, branches and kernels; false of other ops. Each value that an op
// carries from region to region has one layout.
func (p *partitioner) structure(o *ir.Op) bool {
	switch o.Name {
	case op.While, op.Scan:
		p.loop(o)
	case op.If:
		p.branch(o)
	case op.Kernel:
		// Collectives stand between kernels, so its ops stand alone; the compiler groups them again.
		out := p.inside(o.Body(0), nil, nil)
		for i, r := range o.Results {
			p.add(r, out.layouts[i], out.pieces[i])
		}
	default:
		return false
	}
	return true
}

// settled is the layout of v that regions agree on.
func (p *partitioner) settled(v *ir.Value) shard.Layout {
	l, _ := p.values.Of(v)
	l.Partial, l.Reduce = nil, types.Add
	return l
}

// handed is what a block hands on.
type handed struct {
	pieces  []*ir.Value
	layouts []shard.Layout
}

// inside divides the ops of a block where the builder stands. What it hands on for which sum holds may be a sum of which the
// devices have parts.
func (p *partitioner) inside(b *ir.Block, layouts []shard.Layout, sum func(i int) bool) handed {
	out := handed{}
	for i := 0; i < len(b.Ops)-1 && p.problem == nil; i++ {
		if err := p.ctx.Err(); err != nil {
			p.fail("%s", err)
			break
		}
		if p.expand(b.Ops[i]) {
			i-- // what it became stands here
			continue
		}
		p.op(b.Ops[i])
	}
	last := b.Terminator()
	p.at = last
	for i, v := range last.Operands {
		l := p.settled(v)
		if i < len(layouts) {
			l = layouts[i]
		}
		if sum != nil && sum(i) {
			l = p.unreduced(v, l)
		}
		out.layouts = append(out.layouts, l)
		out.pieces = append(out.pieces, p.get(v, l))
	}
	return out
}

// unreduced is the layout in which the devices have v as parts of a sum along axes that l has not, where nothing else reads it;
// else l.
func (p *partitioner) unreduced(v *ir.Value, l shard.Layout) shard.Layout {
	for _, have := range p.have[v] {
		if at := have.layout; len(v.Uses) == 1 && len(at.Partial) > 0 && at.Reduce == types.Add && !slices.ContainsFunc(at.Partial, l.Uses) {
			return at.Clone()
		}
	}
	return l
}

// region is a region with the ops of b divided. Its arguments have the layouts given, and it
// yields values in those of out, which it changes where sum lets it; see inside.
func (p *partitioner) region(b *ir.Block, args, out []shard.Layout, sum func(i int) bool) *ir.Region {
	block := &ir.Block{Label: b.Label}
	block.Region = &ir.Region{Blocks: []*ir.Block{block}}
	p.scope(block, func() {
		for i, a := range b.Args {
			arg := block.AddArg(a.Name, p.local(a.Tensor(), args[i]))
			arg.Span = a.Span
			p.add(a, args[i], arg)
		}
		handed := p.inside(b, out, sum)
		copy(out, handed.layouts)
		p.b.At = b.Terminator()
		p.b.Builder.Op(op.Yield, handed.pieces, nil)
	})
	return block.Region
}

// loop divides a dm.while or a dm.scan.
func (p *partitioner) loop(o *ir.Op) {
	carried := op.Carries(o)
	layouts := make([]shard.Layout, len(o.Results)) // of the results
	yields := make([]shard.Layout, len(o.Results))
	for i, r := range o.Results {
		layouts[i] = p.settled(r)
		if i < carried {
			if l, ok := p.accumulated(o, i); ok {
				layouts[i] = l
			}
		}
		yields[i] = layouts[i]
		if i >= carried {
			layouts[i].Dims[0] = nil // every device runs all iterations
			yields[i] = shard.Layout{Dims: layouts[i].Dims[1:]}
		}
	}
	operands := make([]*ir.Value, len(o.Operands))
	args := make([]shard.Layout, len(o.Operands))
	for i, v := range o.Operands {
		l := p.settled(v)
		if i < carried {
			l = layouts[i]
		} else {
			l.Dims[0] = nil
		}
		if args[i] = l; len(l.Partial) > 0 {
			operands[i] = p.b.Splat(p.local(v.Tensor(), l), 0)
		} else {
			operands[i] = p.get(v, l)
		}
		if i >= carried {
			args[i] = shard.Layout{Dims: l.Dims[1:]}
		}
	}
	var regions []*ir.Region
	for i, r := range o.Regions {
		out := yields
		if o.Name == op.While && i == 0 {
			out = []shard.Layout{shard.Whole(0)}
		}
		// What is stacked is reduced once, behind the loop.
		regions = append(regions, p.region(r.Blocks[0], args, out, func(i int) bool { return o.Name == op.Scan && i >= carried }))
	}
	for i := carried; i < len(layouts); i++ {
		layouts[i] = yields[i].Clone()
		layouts[i].Dims = append([][]int{nil}, layouts[i].Dims...)
	}
	p.close(o, operands, regions, layouts)
}

// branch divides a dm.if, whose predicate every device has.
func (p *partitioner) branch(o *ir.Op) {
	layouts := make([]shard.Layout, len(o.Results))
	for i, r := range o.Results {
		layouts[i] = p.settled(r)
	}
	operands := []*ir.Value{p.get(o.Operands[0], shard.Whole(0))}
	var regions []*ir.Region
	for _, r := range o.Regions {
		regions = append(regions, p.region(r.Blocks[0], nil, layouts, nil))
	}
	p.close(o, operands, regions, layouts)
}

// close writes o on pieces, with regions that are divided: behind them, so that what they need
// from outside stands before it.
func (p *partitioner) close(o *ir.Op, operands []*ir.Value, regions []*ir.Region, layouts []shard.Layout) {
	p.b.At = o
	results := make([]types.Type, len(layouts))
	for i, l := range layouts {
		results[i] = p.local(o.Results[i].Tensor(), l)
	}
	piece := p.b.Builder.Op(o.Name, operands, slices.Clone(o.Attrs), results...)
	piece.Regions = regions
	for _, r := range regions {
		r.Op = piece
	}
	for i, r := range o.Results {
		piece.Results[i].Name = r.Name
		p.add(r, layouts[i], piece.Results[i])
	}
}
