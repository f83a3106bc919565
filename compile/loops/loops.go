// Package loops is the pass that writes scans and bounded loops out as loops that
// count: a device repeats their bodies without reading a predicate back.
package loops

import (
	"cmp"
	"slices"

	"dmir/compile/pass"
	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// Pass replaces every dm.scan by a dm.while with a counter: its iterations take
// their slices by dm.dynamic_slice and fill the stacked results, which begin as
// dm.empty, by dm.dynamic_update_slice, in place. A dm.while whose trip count only
// max_trips bounds counts its iterations too.
func Pass() pass.Pass {
	return pass.Pass{Name: "loops", Summary: "scans as loops that count, which slice their stacks and fill their stacked results in place", Run: func(u *pass.Unit) error {
		var found []*ir.Op
		ir.Walk(u.Func.Body.Ops, func(o *ir.Op) bool {
			if op.LoopBody(o) != nil {
				found = append(found, o)
			}
			return true
		})
		for _, o := range slices.Backward(found) { // those in others first
			var err error
			if o.Name == op.Scan {
				err = scan(o)
			} else if _, known := op.TripCount(o); !known && op.Attr(o, "max_trips") != nil {
				err = bounded(o)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}}
}

var counter = &types.Tensor{Elem: types.I64, At: types.Placement{Space: types.HBM}}

// number is n as a value of the counter's type.
func number(b *op.Builder, n int64) *ir.Value { return b.Splat(counter, float64(n)) }

// scan writes out o, a dm.scan.
func scan(o *ir.Op) error {
	trips, _ := op.Trips(o)
	n, ok := trips.Int()
	if !ok || !op.Valid(o) {
		return pass.Errorf(o, "DM820", "dm.scan has no number of iterations")
	}
	carries := op.Carries(o)
	reverse := op.Bool(o, "reverse")
	b := pass.Before(o)
	first, step := int64(0), int64(1)
	if reverse {
		first, step = n-1, -1
	}
	begin := append([]*ir.Value{}, o.Operands[:carries]...)
	for _, v := range o.Results[carries:] {
		begin = append(begin, b.Value("empty", nil, nil, v.Type))
		begin[len(begin)-1].Name = v.Name
	}
	if n == 0 {
		pass.Replace(o, begin...)
		return nil
	}
	begin = append(begin, number(b, first))
	w := b.Builder.Op(op.While, begin, nil, ir.Types(begin)...)
	w.Origin = o.Origin
	likes := append([]*ir.Value{}, o.Body(0).Args[:carries]...)
	likes = append(likes, begin[carries:]...)

	cond := w.AddRegion(likes...)
	c := op.NewBuilder(&ir.Builder{Block: cond, At: o}, nil)
	direction, end := "lt", n
	if reverse {
		direction, end = "ge", 0
	}
	c.Op(op.Yield, []*ir.Value{c.Value("compare", []*ir.Value{cond.Args[len(begin)-1], number(c, end)}, direct(direction))}, nil)

	body := w.AddRegion(likes...)
	i := body.Args[len(begin)-1]
	i.Name, cond.Args[i.Index].Name = "", ""
	c = op.NewBuilder(&ir.Builder{Block: body, At: o}, nil)
	zero := number(c, 0)
	args := append([]*ir.Value{}, body.Args[:carries]...)
	for k, x := range o.Operands[carries:] {
		slice := c.Value("dynamic_slice", at(x, i, zero), sizes(x.Tensor()))
		slice = c.Reshape(slice, x.Tensor().Shape[1:]...)
		slice.Name = o.Body(0).Args[carries+k].Name
		args = append(args, slice)
	}
	out := ir.CloneBlock(c.Builder, o.Body(0), args)
	next := append([]*ir.Value{}, out[:carries]...)
	for k, v := range out[carries:] {
		stack := body.Args[carries+k]
		one := c.Reshape(v, append([]dim.Dim{dim.Const(1)}, v.Tensor().Shape...)...)
		next = append(next, c.Value("dynamic_update_slice", append([]*ir.Value{stack, one}, at(stack, i, zero)[1:]...), nil))
	}
	next = append(next, c.Value("add", []*ir.Value{i, number(c, step)}, nil))
	c.Op(op.Yield, next, nil)
	if b.Err() != nil || c.Err() != nil {
		return pass.Errorf(o, "DM820", "dm.scan cannot be written out: %v", cmp.Or(b.Err(), c.Err()))
	}
	for k, v := range o.Results {
		w.Results[k].Name = v.Name
	}
	pass.Replace(o, w.Results[:len(o.Results)]...)
	return nil
}

// bounded adds a counter to o, a dm.while, which ends with max_trips iterations.
func bounded(o *ir.Op) error {
	most := op.Int(o, "max_trips")
	b := pass.Before(o)
	o.SetOperands(append(o.Operands[:len(o.Operands):len(o.Operands)], number(b, 0))...)
	o.Results = append(o.Results[:len(o.Results):len(o.Results)], &ir.Value{Type: counter, Op: o, Index: len(o.Results), Span: o.Head})
	cond, body := o.Body(0), o.Body(1)
	i := cond.AddArg("", counter)
	t := cond.Terminator()
	c := pass.Before(t)
	below := c.Value("compare", []*ir.Value{i, number(c, most)}, direct("lt"))
	t.SetOperand(0, c.Binary("and", t.Operands[0], below))
	i = body.AddArg("", counter)
	t = body.Terminator()
	d := pass.Before(t)
	t.SetOperands(append(t.Operands[:len(t.Operands):len(t.Operands)], d.Binary("add", i, number(d, 1)))...)
	o.RemoveAttr("max_trips")
	if op.Attr(o, "trip_count") == nil {
		o.SetAttr("trip_count", types.Int{V: most}) // for the prediction
	}
	if err := cmp.Or(b.Err(), c.Err(), d.Err()); err != nil {
		return pass.Errorf(o, "DM820", "max_trips cannot be written out: %v", err)
	}
	return nil
}

func direct(direction string) []types.Named {
	return []types.Named{{Name: "direction", Value: types.Keyword(direction)}}
}

// at is x with the start of its element i: the operands of a slice.
func at(x, i, zero *ir.Value) []*ir.Value {
	out := []*ir.Value{x, i}
	for range x.Tensor().Shape[1:] {
		out = append(out, zero)
	}
	return out
}

// sizes are those of one element of t's first dimension.
func sizes(t *types.Tensor) []types.Named {
	ns := []int{1}
	for range t.Shape[1:] {
		ns = append(ns, -1)
	}
	return []types.Named{{Name: "slice_sizes", Value: op.IntList(ns...)}}
}
