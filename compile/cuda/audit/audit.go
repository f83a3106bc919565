// Package audit reads from the machine code of a program how fast its steps can
// be, without running them.
package audit

import (
	"fmt"
	"slices"

	"dmir/analysis/machine"
	"dmir/dialect/types"
	"dmir/gpu/artifact"
	"dmir/gpu/sass"
)

// Step is what the machine code of one step shows of its speed.
type Step struct {
	Name, Kernel, Class string
	Bytes               int64 // that the cost model has the step move
	Memory              bool  // by the cost model the step is bound by memory; of several launches of an op, see bound
	Loop                bool  // Hot is a loop, else the whole kernel
	Hot                 sass.Counts
	All                 sass.Counts
	PerByte             float64 // issue slots of a thread for each byte, of the busiest pipe
	Share               float64 // of the slots that the machine has while it moves a byte at Target of its bandwidth
}

// Target is the part of the memory's bandwidth that kernels bound by it are to reach.
const Target = 0.9

// SlotsPerByte is how many instructions of a thread m issues while it moves a
// byte at Target of its bandwidth. A multiprocessor issues an instruction for 128 lanes in a
// clock, and a multiply-add is two FLOP, so that half the f32 peak of the machine's data is what
// it issues where it has as many lanes of f32 arithmetic, and all of it where it has 64 (A100, V100):
//
//	slots/B = (f32 peak / 2) / (Target · bandwidth)
//
// which for the H200 is 67 TFLOP/s / 2 / (0.9 · 4.8 TB/s) = 7.75.
func SlotsPerByte(m *machine.Machine) float64 {
	return m.Peak(false, types.F32) / 2 * (128 / sass.Lanes(m.Arch)) / (Target * m.Bandwidth)
}

// Steps reads the machine code of p, as nvdisasm prints it, for machine m:
// one entry for each step that launches a kernel.
//
// Of a kernel without loops around its accesses, PerByte is what all its threads
// issue over the bytes of the cost model; of a loop, what it issues over the
// bytes that its accesses move, those that a cache answers included.
func Steps(p *artifact.Program, text string, m *machine.Machine) ([]Step, error) {
	code := map[string]*sass.Kernel{}
	kernels := sass.Parse(text)
	for i := range kernels {
		code[kernels[i].Name] = &kernels[i]
	}
	var out []Step
	var times []float64
	for i := range p.Steps {
		s := &p.Steps[i]
		k := p.KernelOf(s)
		if k == nil {
			continue
		}
		c := code[k.Name]
		if c == nil {
			return nil, fmt.Errorf("no machine code of %s", k.Name)
		}
		a := Step{Name: s.Name, Kernel: k.Name, Class: k.Class, Bytes: s.ReadBytes + s.WrittenBytes}
		region, hot := c.Hot()
		a.Hot, a.Loop, a.All = hot, region.Depth > 0, c.Count(c.Regions()[0])
		switch {
		case a.Loop && hot.Bytes > 0:
			a.PerByte = hot.Slots / float64(hot.Bytes)
		case a.Bytes > 0:
			threads := float64(k.Block.Threads) * float64(s.Launch.Grid[0]) * float64(max(1, s.Launch.Grid[1])) * float64(max(1, s.Launch.Grid[2]))
			a.PerByte = hot.Slots * threads / float64(a.Bytes)
		}
		a.Share = a.PerByte / SlotsPerByte(m)
		out, times = append(out, a), append(times, s.TimeNs)
	}
	bound(out, times, m)
	return out, nil
}

// bound sets Memory of each step. The launches of an op follow each other, and the first has the time of all. If
// some of them have tensor cores, it is the time of those, and of their bytes; the others take what their bytes take.
func bound(steps []Step, times []float64, m *machine.Machine) {
	for first := 0; first < len(steps); {
		end := first + 1
		for end < len(steps) && times[end] == 0 {
			end++
		}
		op := steps[first:end]
		products := slices.ContainsFunc(op, func(a Step) bool { return a.All.Tensor > 0 })
		var bytes int64
		for i, a := range op {
			if a.All.Tensor > 0 || !products && i == 0 {
				bytes += a.Bytes
			}
		}
		memory := float64(bytes)/m.Reach()*1e9 > 0.9*(times[first]-m.Start()*1e9)
		for i := range op {
			op[i].Memory = memory || (i > 0 || products) && op[i].All.Tensor == 0
		}
		first = end
	}
}
