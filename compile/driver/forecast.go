package driver

import (
	"context"
	"fmt"
	"os"
	"strings"

	"dmir/analysis/units"
	"dmir/compile/target"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/gpu/device"
)

// What a device answers first depends on how long its code is compiled. The rates below are fits to models
// of vision and language and to the training steps among the examples, on two cores of 2021: what is
// compared with them is far from them or of no consequence.
const (
	referenceFLOPNs, referenceByteNs, referenceOpNs = 0.03, 0.4, 50e3
	hostFLOPNs, hostByteNs                          = 0.01, 0.06

	openNs           = 20e6  // to open a program from the cache
	compileNs        = 600e6 // of any program: the runtime, planning
	compileOpNs      = 1e6   // of each op,
	compileProductNs = 15e6  // and of a contraction or convolution that no other is equal to,
	compileOtherNs   = 5e6   // or of another such op
	gradientFactor   = 3     // ops of a function and its gradient for one of the function
)

// forecast is when the reference executor and a device have run a program as often as is asked for.
type forecast struct{ reference, compile, run float64 }

// forecast predicts when d, the processor, and the reference executor answer; ok is false where sizes
// are not known.
func (j Job) forecast(ctx context.Context, d device.Device) (f forecast, ok bool) {
	c := j.Program.Cost(j.Fn)
	if c == nil {
		return f, false
	}
	flop, known := c.FLOP.Int()
	bytes, sized := c.Moved().Int()
	if !known || !sized {
		return f, false
	}
	work := j.work()
	times := float64(max(j.Steps, 1))
	f.reference = times * (referenceFLOPNs*float64(flop) + referenceByteNs*float64(bytes) + referenceOpNs*float64(work.ops))
	f.run = times * (hostFLOPNs*float64(flop) + hostByteNs*float64(bytes))
	if f.compile = compileNs + compileOpNs*float64(work.ops) + compileProductNs*float64(work.products) + compileOtherNs*float64(work.others); j.isKept(ctx, d) {
		f.compile = openNs
	}
	return f, true
}

// isKept reports whether the job's program for d is in the cache.
func (j Job) isKept(ctx context.Context, d device.Device) bool {
	j = j.targeted()
	info, err := os.Stat(j.keptPath(ctx, d))
	return err == nil && info.Mode().IsRegular()
}

// work are the ops of a program, and those of them that are not equal to another.
type work struct{ ops, products, others int }

// work counts the ops of the functions that the job may reach, which are those of its module.
func (j Job) work() (w work) {
	seen := map[string]bool{}
	factor := 1
	count := func(o *ir.Op) bool {
		if o.Name == op.Grad {
			factor = gradientFactor
		}
		if o.Name == op.Constant || o.Name == op.Func || len(o.Results) == 0 || op.IsView(o) {
			return true
		}
		w.ops++
		var key strings.Builder
		key.WriteString(o.Name)
		for _, v := range append(o.Operands[:len(o.Operands):len(o.Operands)], o.Results...) {
			key.WriteString(" " + v.Type.String())
		}
		if seen[key.String()] {
			return true
		}
		seen[key.String()] = true
		if d := op.Of(o); d != nil && d.Class == op.ClassContraction {
			w.products++
		} else {
			w.others++
		}
		return true
	}
	ir.Walk(j.Module.Ops, count)
	return work{w.ops * factor, w.products * factor, w.others * factor}
}

// first decides between d, which was chosen for reason, and the reference executor: it is d's reason, or
// why the reference executor runs the job.
func (j Job) first(ctx context.Context, d device.Device, reason string) (reference bool, why string) {
	if _, hosted := target.For(d.Arch()).(target.Hosted); !hosted {
		return false, reason
	}
	f, ok := j.forecast(ctx, d)
	switch {
	case !ok:
		return false, reason
	case f.reference <= f.compile+f.run:
		return true, fmt.Sprintf("predicted to answer first, in about %s: %s would take %s", units.Time(f.reference), d.Name(), f.device())
	}
	return false, fmt.Sprintf("%s; predicted to answer first, in %s, the reference executor in %s", reason, f.device(), units.Time(f.reference))
}

// device is how long the device takes.
func (f forecast) device() string {
	if f.compile == openNs {
		return units.Time(f.compile+f.run) + ", compiled before"
	}
	return fmt.Sprintf("%s, with %s to compile", units.Time(f.compile+f.run), units.Time(f.compile))
}
