package autodiff

import (
	"slices"

	"dmir/dialect/budget"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/syntax/diag"
)

// reverse is one walk over a block and back.
type reverse struct {
	expansion
	active  map[*ir.Value]bool        // depends on what is differentiated by
	cot     map[*ir.Value][]*ir.Value // what flowed to each value so far
	channel map[*ir.Op]*ir.Op         // from a dm.send of an active value to the dm.recv of what it sends
	// segments is how many calls whose values are computed again have been inlined.
	segments *int64
}

// inside is the walk over a block in a region.
func (r *reverse) inside() *reverse {
	return &reverse{expansion: r.expansion, active: map[*ir.Value]bool{}, cot: map[*ir.Value][]*ir.Value{}, segments: r.segments}
}

// forward marks what depends on the active values of b and puts in place of
// ops that are only names for others (calls, kernels, composites without a rule)
// what they stand for, as far as the gradient goes through them. It gives outs
// back as they then are.
func (r *reverse) forward(b *ir.Block, outs []*ir.Value) ([]*ir.Value, error) {
	for i := 0; i < len(b.Ops); i++ {
		o := b.Ops[i]
		if !r.touches(o) {
			continue
		}
		if !intact(o) {
			e := fail(r.m, o, "DM811", "%s contains an error", diag.Name(o.Name))
			e.Open = true
			return nil, e
		}
		vs, opened, err := r.open(o, i)
		if err != nil {
			return nil, err
		}
		if opened {
			for k, v := range o.Results {
				ir.ReplaceUses(v, vs[k])
				if vs[k].Op != nil && vs[k].Name == "" {
					vs[k].Name = v.Name
				}
				if a := o.Attr(op.GradientShardingAttr); a != nil && vs[k].Op != nil && len(vs[k].Op.Results) == 1 {
					vs[k].Op.SetAttr(op.GradientShardingAttr, a)
				}
				for j := range outs {
					if outs[j] == v {
						outs[j] = vs[k]
					}
				}
			}
			ir.EraseAll(o)
			i--
			continue
		}
		for _, v := range o.Results {
			r.active[v] = isFloat(v)
		}
		if o.Name == op.Send {
			if err := r.pair(o, b.Ops[i+1:]); err != nil {
				return nil, err
			}
		}
	}
	return outs, nil
}

// pair finds among the ops behind send the one that receives what it sends.
func (r *reverse) pair(send *ir.Op, behind []*ir.Op) error {
	i := slices.IndexFunc(behind, func(o *ir.Op) bool { return op.Receives(o, send) })
	if i < 0 {
		e := fail(r.m, send, "DM811", "%s has no derivative here: no dm.recv behind it in its block has its channel", send.Name)
		e.Help = "write the dm.recv behind the dm.send, or stop the gradient with dm.stop_gradient"
		return e
	}
	if r.channel == nil {
		r.channel = map[*ir.Op]*ir.Op{}
	}
	recv := behind[i]
	r.channel[send] = recv
	r.active[recv.Results[0]] = isFloat(recv.Results[0])
	return nil
}

// intact reports whether nothing is known to be wrong with o and its regions are
// blocks that end in dm.yield.
func intact(o *ir.Op) bool {
	if o.Bad || op.Of(o) != nil && !op.Valid(o) {
		return false
	}
	for n := range o.Regions {
		if t := o.Body(n).Terminator(); op.Of(o) != nil && (t == nil || t.Name != op.Yield) {
			return false
		}
	}
	switch o.Name {
	case op.Kernel, op.Map:
		return len(o.Regions) == 1 && len(o.Body(0).Terminator().Operands) == len(o.Results)
	case op.If:
		return len(o.Results) == 0 || len(o.Regions) == 2
	case op.Scan:
		_, known := op.Trips(o)
		return known && len(o.Regions) == 1 && len(o.Body(0).Args) == len(o.Operands) && len(o.Body(0).Terminator().Operands) == len(o.Results) && op.Carries(o) <= len(o.Results)
	case op.While:
		return len(o.Regions) == 2 && len(o.Body(1).Args) == len(o.Operands) && len(o.Body(0).Args) == len(o.Operands) && len(o.Body(1).Terminator().Operands) == len(o.Results)
	}
	return true
}

// touches reports whether o, or an op inside it, uses an active value.
func (r *reverse) touches(o *ir.Op) bool {
	found := false
	ir.Walk([]*ir.Op{o}, func(o *ir.Op) bool {
		found = found || slices.ContainsFunc(o.Operands, func(v *ir.Value) bool { return r.active[v] })
		return !found
	})
	return found
}

// open puts in front of o, number i of its block, what it stands for and gives
// the values for its results; opened is false where o stays as it is.
func (r *reverse) open(o *ir.Op, i int) (vs []*ir.Value, opened bool, err error) {
	b := &ir.Builder{Block: o.Parent, Index: i, At: o}
	switch o.Name {
	case op.Call, op.Grad:
		if o.Attr(op.RecomputeAttr) != nil {
			*r.segments++
		}
		vs, err = r.inline(b, o, *r.segments)
		return vs, err == nil, err
	case op.Kernel:
		inside := slices.Clone(o.Body(0).Ops)
		vs = ir.InlineBlock(o.Body(0), o, nil)
		for _, p := range inside {
			p.CopyMarks(o)
		}
		return vs, true, nil
	case op.While:
		vs = asScan(b, o)
		return vs, vs != nil, nil
	}
	d := op.Of(o)
	if d == nil || !d.WrittenOut(o) || !op.Valid(o) {
		return nil, false, nil
	}
	vs = d.Expand(b, o)
	return vs, vs != nil, nil
}

// backward goes from op number n of b to its front and appends the ops that
// carry the cotangents back.
func (r *reverse) backward(b *ir.Block, n int) error {
	for _, o := range slices.Backward(slices.Clone(b.Ops[:n])) {
		dy := make([]*ir.Value, len(o.Results))
		some := false
		for i, v := range o.Results {
			dy[i] = r.sum(&ir.Builder{Block: b, Index: len(b.Ops), At: o}, v)
			if s := op.StatedGradient(v); s != nil && dy[i] != nil {
				dy[i] = stated(&ir.Builder{Block: b, Index: len(b.Ops), At: o}, dy[i], s)
				r.cot[v] = []*ir.Value{dy[i]}
			}
			if some = some || dy[i] != nil; dy[i] != nil && dy[i].Name == "" && dy[i].Op != nil {
				dy[i].Name = CotangentName(v)
			}
		}
		if recv := r.channel[o]; recv != nil {
			some = len(r.cot[recv.Results[0]]) > 0 // and so the way back has its dm.send
		}
		if !some {
			continue
		}
		before := len(b.Ops)
		if err := r.through(&ir.Builder{Block: b, Index: before, At: o}, o, dy); err != nil {
			return err
		}
		if !r.budget.Spend(len(b.Ops) - before) {
			return fail(r.m, o, budget.Code, "%s", budget.Message(r.m, r.callers[0]))
		}
	}
	return nil
}

// stated is the cotangent v divided as the text states it: one that is divided otherwise where it is made, or passes through, is
// brought into that layout.
func stated(b *ir.Builder, v *ir.Value, s *types.Sharding) *ir.Value {
	switch have := op.StatedSharding(v); {
	case have.Equal(s):
		return v
	case have != nil || v.Op == nil:
		t := *v.Tensor()
		t.At.Shard = nil
		v = b.Op(op.Reshard, []*ir.Value{v}, nil, &t).Results[0]
	}
	op.StateSharding(v, s)
	return v
}

// through carries the cotangents of o's results to its operands.
func (r *reverse) through(b *ir.Builder, o *ir.Op, dy []*ir.Value) error {
	switch o.Name {
	case op.Map:
		return r.scalars(b, o, dy)
	case op.If:
		return r.branches(b, o, dy)
	case op.Scan:
		return r.scanned(b, o, dy)
	}
	want := make([]bool, len(o.Operands))
	for i, v := range o.Operands {
		want[i] = r.active[v]
	}
	dx, ok, p := op.Derive(b, o, dy, want)
	switch {
	case p != nil:
		e := fail(r.m, o, "DM811", "%s has no derivative here: %s", o.Name, p.Msg)
		if p.Help != "" {
			e.Help = p.Help
		}
		e.Open = p.Code == op.SizesCode
		return e
	case o.Name == op.While:
		e := fail(r.m, o, "DM811", "dm.while has no derivative here: the values of each iteration are kept for it, and their number is unknown")
		e.Help = "count the iterations with an integer from a constant to a constant, bound them with max_trips = …, or write a dm.scan"
		return e
	case !ok:
		return fail(r.m, o, "DM811", "%s has no derivative", o.Name)
	}
	for i, v := range dx {
		if v != nil {
			r.add(o.Operands[i], v)
		}
	}
	return nil
}

// add adds to the cotangent of v.
func (r *reverse) add(v, more *ir.Value) { r.cot[v] = append(r.cot[v], more) }

// sum is the cotangent of v, nil where it is zero. Three and more terms of half
// precision are summed in f32 and rounded once, so that their order matters little.
func (r *reverse) sum(b *ir.Builder, v *ir.Value) *ir.Value {
	terms := r.cot[v]
	if len(terms) == 0 {
		return nil
	}
	if whole := joined(b, terms); whole != nil {
		r.cot[v] = []*ir.Value{whole}
		return whole
	}
	total, elem := terms[0], v.Elem()
	wide := elem
	if len(terms) > 2 && elem.Bytes() < 4 {
		wide = types.F32
	}
	for i, t := range terms {
		if t = op.Convert(b, t, wide); i == 0 {
			total = t
		} else {
			total = op.Add(b, total, t)
		}
	}
	total = op.Convert(b, total, elem)
	r.cot[v] = []*ir.Value{total}
	return total
}
