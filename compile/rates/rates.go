// Package rates makes a machine of what was measured of this one's processor, and measures
// what compiled kernels reach of its peaks: the rates of products, and of ops whose FLOP
// take longer than additions. All ops of the registry that take nothing but tensors of one
// shape are the kernels of two programs, which run many times.
package rates

import (
	"context"
	"time"

	"dmir/analysis/machine"
	"dmir/compile/driver"
	"dmir/compile/interp"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/gpu/device"
)

// A kernel's time is the shortest of many: other processes lengthen times, and nothing
// shortens them.
const (
	least  = 10 // runs
	enough = 600 * time.Millisecond
)

// slow is how many times longer an op takes at least than the bytes that it moves, to have
// a rate of its own. The bytes take as long as those of the fastest op.
const slow = 1.3

// processor is the device that this machine's processor is.
const processor = "cpu"

// Elems are the types that ops are measured for. Narrower floats are computed as f32.
var Elems = []types.Elem{types.F32, types.F64}

// Measure adds to m, which Machine made, the rates that kernels of numbers of type e reach.
func Measure(ctx context.Context, m *machine.Machine, e types.Elem) error {
	d, _, err := device.Find(processor)
	if err != nil {
		return err
	}
	for _, b := range programs(m, e) {
		if len(b.ops) == 0 {
			continue
		}
		best, err := b.run(ctx, m, d)
		if err != nil {
			return err
		}
		keep(m, e, best)
	}
	return nil
}

// run runs the program several times; best are the kernels of its ops, each at its best.
func (b *measured) run(ctx context.Context, m *machine.Machine, d device.Device) (best map[*op.Def]driver.Kernel, err error) {
	module := b.program.Modules[0]
	fn := module.Funcs[0]
	p, err := driver.Build(ctx, module, fn, driver.BuildOptions{Machine: m, Arch: d.Arch(), Skip: []string{"simplify", "fuse"}}) // each op is a kernel
	if err != nil {
		return nil, err
	}
	args, err := interp.Inputs(ctx, fn, nil, 0, nil)
	if err != nil {
		return nil, err
	}
	best = map[*op.Def]driver.Kernel{}
	start := time.Now()
	for n := 0; n < least || time.Since(start) < enough; n++ {
		res, err := driver.RunArtifact(ctx, d, p, args, device.Options{Runs: 1})
		if err != nil {
			return nil, err
		}
		for _, k := range res.Kernels {
			if len(k.Lines) != 1 || k.MeasuredNs <= 0 {
				continue
			}
			of := b.ops[k.Lines[0]]
			if old, ok := best[of]; of != nil && (!ok || k.MeasuredNs < old.MeasuredNs) {
				best[of] = k
			}
		}
	}
	return best, nil
}

// keep adds what the kernels of ops reached to m.
func keep(m *machine.Machine, e types.Elem, kernels map[*op.Def]driver.Kernel) {
	seconds := func(k driver.Kernel) float64 { return max(k.MeasuredNs*1e-9-m.Launch, 1e-9) }
	fastest := 0.0
	for _, k := range kernels {
		fastest = max(fastest, float64(k.ReadBytes+k.WrittenBytes)/seconds(k))
	}
	own := map[string]float64{}
	products := 0.0
	for d, k := range kernels {
		switch rate := float64(k.FLOP) / seconds(k); {
		case d.Class == op.ClassContraction:
			products = max(products, rate)
		case seconds(k)*fastest > slow*float64(k.ReadBytes+k.WrittenBytes):
			own[d.Name] = rate
		}
	}
	if products > 0 && m.TensorCore[e] > 0 {
		m.Ceilings.TensorCore[e] = min(products, m.TensorCore[e])
	}
	if len(own) > 0 {
		m.Ops[e] = own
	}
}
