package interp

import (
	"time"

	"dmir/dialect/autodiff"
	"dmir/dialect/ir"
	"dmir/dialect/op"
)

// progress converts finished ops, and finished parts of long ones, to done of
// total. Ops of the function's body are weighted by their expected time; inside
// them only the ops of a called function, or of its gradient, and the parts of
// their loops count.
type progress struct {
	weight      map[*ir.Op]int
	total, done int
	top         *ir.Op
	last        time.Time

	inner map[*ir.Op]int // by op of its function, the share of top's weight
	part  int            // of these, the shares done
}

// planProgress weights the ops in microseconds of a slow machine: 50 GFLOP/s of
// contraction and 1 GB/s of memory.
func (x *machine) planProgress(fn *ir.Func) {
	if x.opts.Progress == nil {
		return
	}
	bind := op.Bindings(fn, x.opts.Bind)
	p := &x.progress
	p.weight = map[*ir.Op]int{}
	for _, o := range fn.Body.Ops {
		if o == fn.Body.Terminator() {
			continue
		}
		w := weigh(o, bind)
		if o.Name == op.Grad {
			for _, inner := range x.joint(o) {
				w += weigh(inner, bind)
			}
		}
		p.weight[o] = w
		p.total += w
	}
	x.tick = func(fraction float64) {
		if p.top == nil || time.Since(p.last) < 20*time.Millisecond {
			return
		}
		p.last = time.Now()
		part := p.part
		switch whole := p.inner[x.now]; {
		case x.depth <= 1 && p.inner == nil: // a loop of the op itself, not of one inside it
			part = int(min(fraction, 1) * float64(p.weight[p.top]))
		case x.depth == 2:
			part += int(min(fraction, 1) * float64(whole))
		}
		x.opts.Progress(p.done+part, p.total, x.now)
	}
}

// weigh is the expected time of o in microseconds, at least 1.
func weigh(o *ir.Op, bind map[string]int64) int {
	w := 1
	if n, ok := op.FLOP(o).Eval(bind).Int(); ok {
		w += int(n / 50_000)
	}
	for _, v := range append(o.Operands[:len(o.Operands):len(o.Operands)], o.Results...) {
		if t := v.Tensor(); t != nil {
			if n, ok := t.Bytes().Eval(bind).Int(); ok {
				w += int(n / 1000)
			}
		}
	}
	return w
}

// joint is the ops of the gradient that o takes, nil where it cannot be taken.
func (x *machine) joint(o *ir.Op) []*ir.Op {
	fn, err := autodiff.Of(x.module, o, nil, nil)
	if err != nil {
		return nil
	}
	return fn.Body.Ops
}

// enter distributes the weight of the current op of the function's body over
// the ops of the function fn that it calls.
func (x *machine) enter(fn *ir.Func, bind map[string]int64) {
	p := &x.progress
	if x.opts.Progress == nil || x.depth != 1 {
		return
	}
	p.inner = map[*ir.Op]int{}
	sum := 0
	for _, o := range fn.Body.Ops {
		p.inner[o] = weigh(o, bind)
		sum += p.inner[o]
	}
	for o, w := range p.inner {
		p.inner[o] = int(float64(w) / float64(sum) * float64(p.weight[p.top]))
	}
}

func (p *progress) begin(x *machine, o *ir.Op) {
	if x.opts.Progress == nil {
		return
	}
	if x.depth == 0 {
		p.top, p.inner, p.part = o, nil, 0
	} else {
		x.tick(0)
	}
}

func (p *progress) end(x *machine, o *ir.Op) {
	if x.opts.Progress == nil {
		return
	}
	if x.depth > 0 {
		if x.depth == 1 {
			p.part += p.inner[o]
		}
		return
	}
	p.done += p.weight[o]
	p.last = time.Now()
	x.opts.Progress(p.done, p.total, o)
}
