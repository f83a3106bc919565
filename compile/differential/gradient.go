package differential

import (
	"context"
	"fmt"
	"math"

	"dmir/compile/tensor"
	"dmir/dialect/types"
)

// steps are the steps of the differences: a failure only with a long or a short
// one is a kink that it crosses, or rounding.
var steps = []float64{1e-5, 1e-4, 1e-6, 1e-7}

// differences compares the gradient that the reference computes with central
// differences of its function, in one random direction, all in f64. The point
// is near the arguments, not at them: these may be equal where numbers have few
// bits, and a maximum of equals has no derivative.
func (p *prepared) differences(ctx context.Context) *Find {
	if p.c.Of == "" {
		return nil
	}
	fail := func(err error) *Find { return &Find{p.c, Gradient, err.Error()} }
	_, m, f, err := load(p.c.Name, wide(p.c.Of), "", nil)
	if err != nil {
		return fail(err)
	}
	_, gm, gf, err := load(p.c.Name, wide(p.c.Text), "", nil)
	if err != nil {
		return fail(err)
	}
	args := inElem(p.args, types.F64)
	for i, x := range args {
		for k := range x.Len() {
			if x.Elem.IsFloat() {
				x.SetFloat(k, x.Float(k)+1e-3*tensor.Normal(98, uint64(i), uint64(k)))
			}
		}
	}
	grads, err := execute(ctx, gm, gf, args, nil)
	if err != nil {
		return fail(err)
	}
	point, cotangents := args[:len(f.Args)], args[len(f.Args):]
	direction := make([]*tensor.Tensor, len(point))
	var slope, size float64
	next := len(f.Results)
	for i, x := range point {
		if !x.Elem.IsFloat() {
			continue
		}
		direction[i] = tensor.Random(types.F64, x.Shape, 99, uint64(i))
		for k := range x.Len() {
			d := grads[next].Float(k) * direction[i].Float(k)
			slope += d
			size += math.Abs(d)
		}
		next++
	}
	at := func(h float64) (sum float64) {
		moved := append([]*tensor.Tensor{}, point...)
		for i, x := range point {
			if direction[i] == nil {
				continue
			}
			moved[i] = tensor.New(types.F64, x.Shape...)
			for k := range x.Len() {
				moved[i].SetFloat(k, x.Float(k)+h*direction[i].Float(k))
			}
		}
		outs, e := execute(ctx, m, f, moved, nil)
		if e != nil {
			err = e
			return 0
		}
		c := 0
		for _, y := range outs {
			if !y.Elem.IsFloat() {
				continue
			}
			for k := range y.Len() {
				sum += y.Float(k) * cotangents[c].Float(k)
			}
			c++
		}
		return sum
	}
	got := 0.0
	for _, h := range steps {
		got = (at(h) - at(-h)) / (2 * h)
		if err != nil {
			return fail(err)
		}
		if math.Abs(got-slope) <= 1e-4*(math.Abs(slope)+1e-2*size+1e-3) {
			return nil
		}
	}
	return &Find{p.c, Gradient, fmt.Sprintf("the slope in a direction is %.9g, differences give %.9g", slope, got)}
}
