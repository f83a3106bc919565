package interp

import (
	"time"

	"dmir/dialect/ir"
	"dmir/dialect/op"
)

// progress turns finished ops, and finished parts of long ones, into done of
// total. Ops of the function's body are weighed by the time they are expected
// to take; what runs inside them does not move the count, only the parts of
// their loops do.
type progress struct {
	weight      map[*ir.Op]int
	total, done int
	top         *ir.Op
	last        time.Time
}

// planProgress weighs the ops in microseconds of a slow machine: 50 GFLOP/s of
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
		p.weight[o] = w
		p.total += w
	}
	x.tick = func(fraction float64) {
		if p.top == nil || time.Since(p.last) < 20*time.Millisecond {
			return
		}
		p.last = time.Now()
		part := 0
		if x.depth <= 1 { // a loop of the op itself, not of one inside it
			part = int(min(fraction, 1) * float64(p.weight[p.top]))
		}
		x.opts.Progress(p.done+part, p.total, x.now)
	}
}

func (p *progress) begin(x *machine, o *ir.Op) {
	if x.opts.Progress == nil {
		return
	}
	if x.depth == 0 {
		p.top = o
	} else {
		x.tick(0)
	}
}

func (p *progress) end(x *machine, o *ir.Op) {
	if x.opts.Progress == nil || x.depth > 0 {
		return
	}
	p.done += p.weight[o]
	p.last = time.Now()
	x.opts.Progress(p.done, p.total, o)
}
