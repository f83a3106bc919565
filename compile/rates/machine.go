package rates

import (
	"fmt"
	"time"

	"dmir/analysis/machine"
	"dmir/dialect/types"
	"dmir/gpu/calibrate"
)

// Machine is the machine local with the figures of a processor that was measured at a
// time.
func Machine(f *calibrate.Figures, at time.Time) *machine.Machine {
	source := "measured by dmir calibrate on " + at.Format(time.DateOnly)
	m := &machine.Machine{
		Name: machine.LocalName, Title: f.Title, Source: source, CPU: true,
		Bandwidth: f.Move.Both, HostLink: f.Move.Both, // the memory is the host's
		Launch: f.Launch, SMs: f.Threads, Memory: f.Memory,
		TensorCore: map[types.Elem]float64{types.F32: f.F32.FMA, types.F64: f.F64.FMA},
		Vector:     map[types.Elem]float64{types.F32: f.F32.FMA, types.F64: f.F64.FMA},
		Ceilings: machine.Ceilings{ // most FLOP are no product with a sum
			Source:     source,
			TensorCore: map[types.Elem]float64{},
			Vector:     map[types.Elem]float64{types.F32: f.F32.Add, types.F64: f.F64.Add},
		},
		Processor: machine.Processor{Read: f.Move.Read, Random: f.Move.Random, RandomRows: f.Move.Rows, Grain: f.Grain, Call: f.Call, Ops: map[types.Elem]map[string]float64{}, Rows: map[types.Elem]map[string]float64{}, Products: map[types.Elem]machine.ProductRates{}},
	}
	for _, c := range f.Caches {
		m.Caches = append(m.Caches, machine.Cache{Name: fmt.Sprintf("L%d", c.Level), Size: c.Size, PerCore: c.PerCore, Bandwidth: c.Move.Both, Read: c.Move.Read, Random: c.Move.Random, RandomRows: c.Move.Rows})
		m.L2 = c.Size // of the last
		if c.PerCore {
			m.SharedMemory = c.Size
		}
	}
	return m
}
