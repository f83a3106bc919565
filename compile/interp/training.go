package interp

import (
	"errors"
	"math"
	"slices"

	"dmir/compile/tensor"
	"dmir/dialect/autodiff"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

func trainingExecutors() map[string]executor {
	return map[string]executor{
		op.Grad:       runGrad,
		"dm.sgd":      runSGD,
		"dm.momentum": runMomentum,
		"dm.adam":     runAdam,
	}
}

// gradient is the joint function of a dm.grad for operands of certain shapes.
type gradient struct {
	shapes [][]int
	fn     *ir.Func
}

// runGrad differentiates the callee, for the sizes that it now has, and runs that.
func runGrad(c *call) ([]*tensor.Tensor, error) {
	if c.calls >= maxCalls {
		return nil, c.errorf("DM706", "functions call each other more than %d deep", maxCalls)
	}
	known := c.gradients[c.op]
	if !slices.EqualFunc(known.shapes, c.in, func(s []int, t *tensor.Tensor) bool { return slices.Equal(s, t.Shape) }) {
		known = gradient{}
	}
	if known.fn == nil {
		operands := make([]types.Type, len(c.in))
		for i, x := range c.in {
			operands[i] = storedType(x)
			known.shapes = append(known.shapes, x.Shape)
		}
		fn, err := autodiff.Of(c.module, c.op, operands, nil)
		var e *autodiff.Error
		if errors.As(err, &e) {
			return nil, &Error{Span: e.Span, Code: e.Code, Msg: e.Msg, Help: e.Help}
		}
		known.fn = fn
		c.gradients[c.op] = known
	}
	if len(known.fn.Args) != len(c.in) {
		return nil, c.errorf("DM704", "the gradient of @%s takes %d values, got %d", c.op.Str("callee"), len(known.fn.Args), len(c.in))
	}
	f, err := c.called(known.fn)
	if err != nil {
		return nil, err
	}
	c.enter(known.fn, f.bind)
	c.calls++
	defer func() { c.calls-- }()
	_, leave := c.inside(c.op.Str("callee"))
	defer leave()
	return c.block(f, known.fn.Body, c.in)
}

// step runs an optimizer: update computes an element of the new parameters and
// states from the old ones, in float64.
func (c *call) step(states []int, update func(w, g float64, old, next []float64) float64) ([]*tensor.Tensor, error) {
	w, g := c.in[0], c.in[1]
	outs := make([]*tensor.Tensor, len(c.op.Results))
	for i := range outs {
		outs[i] = tensor.New(c.outElem(i), w.Shape...)
	}
	for _, i := range append([]int{1}, states...) {
		if !slices.Equal(c.in[i].Shape, w.Shape) {
			return nil, c.errorf("DM704", "%s does not match parameters %s", c.in[i].Type(), w.Type())
		}
	}
	c.parallel(w.Len(), elements, func(lo, hi int) {
		ins, news := make([]row, 2+len(states)), make([]row, 1+len(states))
		old, next := make([]float64, len(states)), make([]float64, len(states))
		for ; lo < hi; lo += lanes {
			n := min(lanes, hi-lo)
			ins[0].load(w, lo, n)
			ins[1].load(g, lo, n)
			for k, s := range states {
				ins[2+k].load(c.in[s], lo, n)
			}
			for i := range n {
				for k := range states {
					old[k] = ins[2+k][i]
				}
				news[0][i] = update(ins[0][i], ins[1][i], old, next)
				for k := range states {
					news[1+k][i] = next[k]
				}
			}
			for k, to := range outs {
				if k == len(news) {
					k = 0 // the copy of the parameters
				}
				news[k].store(to, lo, n)
			}
		}
	})
	return outs, nil
}

// row is a few elements in float64.
type row [lanes]float64

func (r *row) load(t *tensor.Tensor, at, n int) {
	switch {
	case t.F32 != nil:
		for i, v := range t.F32[at : at+n] {
			r[i] = float64(v)
		}
	case t.F64 != nil:
		copy(r[:n], t.F64[at:])
	}
}

// store rounds once.
func (r *row) store(t *tensor.Tensor, at, n int) {
	switch {
	case t.F64 != nil:
		copy(t.F64[at:at+n], r[:n])
	case t.Elem == types.F32:
		for i, v := range r[:n] {
			t.F32[at+i] = float32(v)
		}
	default:
		for i, v := range r[:n] {
			t.SetFloat(at+i, v)
		}
	}
}

// rate is the learning rate: operand i, or the attribute.
func (c *call) rate(i int) float64 {
	if len(c.in) > i && c.in[i].Len() == 1 {
		return c.in[i].Float(0)
	}
	return op.Float(c.op, "lr")
}

func runSGD(c *call) ([]*tensor.Tensor, error) {
	lr, decay := c.rate(2), op.Float(c.op, "weight_decay")
	return c.step(nil, func(w, g float64, _, _ []float64) float64 { return w - lr*(g+decay*w) })
}

func runMomentum(c *call) ([]*tensor.Tensor, error) {
	lr, decay, keep, ahead := c.rate(3), op.Float(c.op, "weight_decay"), op.Float(c.op, "momentum"), op.Bool(c.op, "nesterov")
	return c.step([]int{2}, func(w, g float64, old, next []float64) float64 {
		g += decay * w
		next[0] = keep*old[0] + g
		if ahead {
			return w - lr*(g+keep*next[0])
		}
		return w - lr*next[0]
	})
}

func runAdam(c *call) ([]*tensor.Tensor, error) {
	if c.in[4].Len() != 1 {
		return nil, c.errorf("DM704", "the step number must be a scalar, not %s", c.in[4].Type())
	}
	lr, decay, t := c.rate(5), op.Float(c.op, "weight_decay"), c.in[4].Float(0)
	b1, b2, epsilon := op.Float(c.op, "beta1"), op.Float(c.op, "beta2"), op.Float(c.op, "epsilon")
	c1, c2 := 1-math.Pow(b1, t), 1-math.Pow(b2, t)
	return c.step([]int{2, 3}, func(w, g float64, old, next []float64) float64 {
		next[0] = b1*old[0] + (1-b1)*g
		next[1] = b2*old[1] + (1-b2)*g*g
		return w - lr*(next[0]/c1/(math.Sqrt(next[1]/c2)+epsilon)+decay*w)
	})
}
