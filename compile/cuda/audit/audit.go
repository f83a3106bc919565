// Package audit reads from the machine code of a program how fast its steps can
// be, without running them.
package audit

import (
	"fmt"

	"dmir/analysis/machine"
	"dmir/dialect/types"
	"dmir/gpu/artifact"
	"dmir/gpu/sass"
)

// Step is what the machine code of one step shows of its speed.
type Step struct {
	Name, Kernel, Class string
	Bytes               int64 // that the cost model has the step move
	Memory              bool  // by the cost model the step is bound by memory
	Loop                bool  // Hot is a loop, else the whole kernel
	Hot                 sass.Counts
	All                 sass.Counts
	PerByte             float64 // issue slots of a thread for each byte, of the busiest pipe
	Share               float64 // of the slots that the machine has while it moves a byte at Target of its bandwidth
}

// Target is the part of the memory's bandwidth that kernels bound by it are to reach.
const Target = 0.9

// SlotsPerByte is how many instructions of a thread m issues while it moves a
// byte at Target of its bandwidth. A multiprocessor issues an instruction for
// each lane of 32-bit arithmetic in a clock, and a multiply-add is two FLOP, so
// that half the f32 peak of the machine's data is what it issues:
//
//	slots/B = (f32 peak / 2) / (Target · bandwidth)
//
// which for the H200 is 67 TFLOP/s / 2 / (0.9 · 4.8 TB/s) = 7.75.
func SlotsPerByte(m *machine.Machine) float64 {
	return m.Peak(false, types.F32) / 2 / (Target * m.Bandwidth)
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
		a.Memory = float64(a.Bytes)/m.Reach()*1e9 > 0.9*(s.TimeNs-m.Start()*1e9)
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
		out = append(out, a)
	}
	return out, nil
}
