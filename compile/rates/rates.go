// Package rates makes a machine of what was measured of this one's processor, and measures
// what compiled kernels reach of its peaks: the rates of products, and of ops whose FLOP
// take longer than additions. All ops of the registry that take nothing but tensors of one
// shape are the kernels of two programs, which run many times; others have arguments of their
// own (samples).
package rates

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"dmir/analysis/machine"
	"dmir/analysis/program"
	"dmir/compile/driver"
	"dmir/compile/interp"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/gpu/device"
)

// How often programs run.
const (
	runs   = 5 // that are measured together, whose memory is there from the first one on
	least  = 5 // times
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
	m.Arch = d.Arch()
	for _, b := range programs(m, e) {
		if len(b.ops) == 0 {
			continue
		}
		kernels, err := timed(ctx, m, d, b.program)
		if err != nil {
			return err
		}
		of := map[*op.Def]driver.Kernel{}
		for line, d := range b.ops {
			if k, ok := kernels[line]; ok {
				of[d] = k
			}
		}
		keep(m, e, of)
	}
	for _, all := range [][]sample{opSamples(m, e), productSamples(m, e)} {
		text, lines := textOf(all, e)
		kernels, err := timed(ctx, m, d, loadText(m, text))
		if err != nil {
			return err
		}
		keepSamples(m, e, all, lines, kernels)
	}
	return nil
}

// timed runs the program several times, and returns the kernels of each line together. A kernel's time is the first quartile of
// many: other processes lengthen some, and a processor is not always as fast as at its best.
func timed(ctx context.Context, m *machine.Machine, d device.Device, program *program.Program) (map[int]driver.Kernel, error) {
	module := program.Modules[0]
	fn := module.Funcs[0]
	p, err := driver.Build(ctx, module, fn, driver.BuildOptions{Machine: m, Arch: d.Arch(), Skip: []string{"simplify", "layout", "fuse"}}) // each op is a kernel
	if err != nil {
		return nil, err
	}
	args, err := interp.Inputs(ctx, fn, nil, 0, nil)
	if err != nil {
		return nil, err
	}
	all := map[int][]driver.Kernel{} // by line
	start := time.Now()
	for n := 0; n < least || time.Since(start) < enough; n++ {
		res, err := driver.RunArtifact(ctx, d, p, args, device.Options{Runs: runs})
		if err != nil {
			return nil, err
		}
		lines := map[int]driver.Kernel{}
		for _, k := range res.Kernels {
			if len(k.Lines) == 1 && k.MeasuredNs > 0 {
				of := lines[k.Lines[0]]
				of.MeasuredNs += k.MeasuredNs
				of.FLOP += k.FLOP
				of.ReadBytes += k.ReadBytes
				of.WrittenBytes += k.WrittenBytes
				lines[k.Lines[0]] = of
			}
		}
		for line, k := range lines {
			all[line] = append(all[line], k)
		}
	}
	typical := map[int]driver.Kernel{}
	for line, ks := range all {
		slices.SortFunc(ks, func(a, b driver.Kernel) int { return cmp.Compare(a.MeasuredNs, b.MeasuredNs) })
		typical[line] = ks[len(ks)/4]
	}
	return typical, nil
}

// seconds is the time of a kernel without what each kernel takes.
func seconds(m *machine.Machine, k driver.Kernel) float64 {
	return max(k.MeasuredNs*1e-9-m.Launch, 1e-9)
}

// keepSamples adds what kernels, by line, show of samples on lines to m.
func keepSamples(m *machine.Machine, e types.Elem, all []sample, lines []int, kernels map[int]driver.Kernel) {
	var products []machine.ProductRun
	own, rows := maps.Clone(m.Ops[e]), map[string]float64{}
	if own == nil {
		own = map[string]float64{}
	}
	type run struct{ took, units float64 }
	var before run // of the last sample
	for i, s := range all {
		k, ok := kernels[lines[i]]
		if !ok {
			before = run{}
			continue
		}
		took := seconds(m, k)
		moves := m.Move(k.ReadBytes, k.WrittenBytes, 0).Seconds
		units := float64(k.FLOP)
		if units == 0 {
			units = float64(count(s.results[0]))
			if s.whole {
				units = float64(count(s.args[0]))
			}
			units *= float64(max(s.taps, 1))
		}
		last := before
		before = run{took, units}
		each := float64(m.SMs) / float64(max(s.rows, 1)) // rows of a core
		switch {
		case s.longer:
			if more := took - last.took; last.took > 0 && more > 0 {
				own[s.name] = (units - last.units) / more
				rows[s.name] = max(0, last.took-last.units/own[s.name]) * each
			}
		case s.uneven > 0:
			if lost := (took - last.took) * float64(m.SMs) / s.uneven; last.took > 0 && lost > 0 && (m.Mispredict == 0 || lost < m.Mispredict) {
				m.Mispredict = lost
			}
		case s.product != nil:
			products = append(products, machine.ProductRun{Product: *s.product, Moved: k.ReadBytes + k.WrittenBytes, Seconds: took})
		case s.rows > 0:
			rate := m.Rate(false, e, "")
			if r := own[s.name]; r > 0 {
				rate = r
			}
			if left := took - units/rate; left > 0 && took > slow*moves {
				rows[s.name] = left * each
			}
		default:
			if s.whole {
				took = max(took-moves, took/8)
			}
			if took > slow*moves || s.whole {
				own[s.name] = units / took
			}
		}
	}
	if len(own) > 0 {
		m.Ops[e] = own
	}
	if len(rows) > 0 {
		m.Rows[e] = rows
	}
	if r := m.FitProducts(products); r.Sums > 0 {
		m.Products[e] = r
	}
}

// count is the elements of a tensor type.
func count(text string) int64 {
	n := int64(1)
	for _, part := range strings.Split(strings.TrimPrefix(text, "tensor<"), "x") {
		if d, err := strconv.ParseInt(part, 10, 64); err == nil {
			n *= d
		}
	}
	return n
}

// keep adds what the kernels of ops reached to m.
func keep(m *machine.Machine, e types.Elem, kernels map[*op.Def]driver.Kernel) {
	fastest := 0.0
	for _, k := range kernels {
		fastest = max(fastest, float64(k.ReadBytes+k.WrittenBytes)/seconds(m, k))
	}
	own := map[string]float64{}
	products := 0.0
	for d, k := range kernels {
		switch rate := float64(k.FLOP) / seconds(m, k); {
		case d.Class == op.ClassContraction:
			products = max(products, rate)
		case seconds(m, k)*fastest > slow*float64(k.ReadBytes+k.WrittenBytes):
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
