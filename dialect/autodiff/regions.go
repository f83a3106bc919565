package autodiff

import (
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// scalars goes back through a dm.map: a second map computes its region again
// and goes back through that, one element at a time.
func (r *reverse) scalars(b *ir.Builder, o *ir.Op, dy []*ir.Value) error {
	region := &ir.Region{}
	block := &ir.Block{Region: region}
	region.Blocks = []*ir.Block{block}
	argument := func(t types.Type, name string) *ir.Value {
		v := &ir.Value{Name: name, Type: t, Block: block, Index: len(block.Args)}
		block.Args = append(block.Args, v)
		return v
	}
	inner := r.inside()
	body := o.Body(0)
	operands := append([]*ir.Value{}, o.Operands...)
	for i, a := range body.Args {
		v := argument(a.Type, a.Name)
		inner.active[v] = r.active[o.Operands[i]]
	}
	args := slices.Clone(block.Args)
	outs, err := inner.forward(block, ir.CloneBlock(&ir.Builder{Block: block}, body, args))
	if err != nil {
		return err
	}
	at := &ir.Builder{Block: block, Index: len(block.Ops), At: o}
	for i, v := range outs {
		if dy[i] == nil || !inner.active[v] {
			continue
		}
		operands = append(operands, dy[i])
		inner.add(v, argument(v.Type, CotangentName(v)))
	}
	if err := inner.backward(block, len(block.Ops)); err != nil {
		return err
	}
	at.Index = len(block.Ops)
	var yields []*ir.Value
	var to []int
	var ts []types.Type
	shape := o.Out(0).Shape
	for i, a := range args {
		if v := inner.sum(at, a); v != nil && inner.active[a] {
			yields, to = append(yields, v), append(to, i)
			t := o.Out(0).With(shape...)
			t.Elem = a.Type.(types.Scalar).Elem
			ts = append(ts, t)
		}
	}
	if len(yields) == 0 {
		return nil
	}
	at.Op(op.Yield, yields, nil)
	op.RemoveDead(block)
	back := b.Op(op.Map, operands, nil, ts...)
	region.Op = back
	back.Regions = []*ir.Region{region}
	for k, i := range to {
		r.add(o.Operands[i], op.SumTo(b, back.Results[k], o.In(i).Shape))
	}
	return nil
}

// branches goes back through a dm.if: a second one, on the same condition,
// computes the branch again and goes back through it.
func (r *reverse) branches(b *ir.Builder, o *ir.Op, dy []*ir.Value) error {
	captured := slices.DeleteFunc(ir.CapturedValues(o.Regions...), func(v *ir.Value) bool { return !r.active[v] })
	var ts []types.Type
	for _, v := range captured {
		ts = append(ts, plain(v.Type))
	}
	back := &ir.Op{Name: o.Name}
	for n := range o.Regions {
		region := &ir.Region{Op: back}
		block := &ir.Block{Region: region}
		region.Blocks = []*ir.Block{block}
		back.Regions = append(back.Regions, region)
		inner := r.inside()
		for _, v := range captured {
			inner.active[v] = true
		}
		outs, err := inner.forward(block, ir.CloneBlock(&ir.Builder{Block: block}, o.Body(n), nil))
		if err != nil {
			return err
		}
		op.RemoveChecks(block) // o makes them
		at := &ir.Builder{Block: block, Index: len(block.Ops), At: o}
		for i, v := range outs {
			if dy[i] != nil && inner.active[v] {
				inner.add(v, dy[i])
			}
		}
		if err := inner.backward(block, len(block.Ops)); err != nil {
			return err
		}
		at.Index = len(block.Ops)
		var yields []*ir.Value
		for i, v := range captured {
			c := inner.sum(at, v)
			if c == nil {
				c = op.Zeros(at, ts[i])
			}
			yields = append(yields, c)
		}
		at.Op(op.Yield, yields, nil)
		op.RemoveDead(block)
	}
	made := b.Op(o.Name, o.Operands, nil, ts...)
	made.Regions = back.Regions
	for _, region := range made.Regions {
		region.Op = made
	}
	for i, v := range captured {
		r.add(v, made.Results[i])
	}
	return nil
}
