package machine

import (
	"maps"
	"slices"
	"strings"

	"dmir/dialect/types"
)

// Accelerator is what a kernel of a GPU takes besides its bytes and FLOP at the rates that
// kernels reach. The zero value leaves times as those rates make them.
type Accelerator struct {
	Clock         float64 // of the multiprocessors in long kernels, Hz
	Stream        float64 // what a kernel adds behind which the host begins another graph, s; Launch is that of one in a graph
	Dependent     float64 // what one in a graph adds that may start while the one before it runs, s; 0: as Launch
	MemoryLatency float64 // of one load from memory, s
	L2Bandwidth   float64 // of all multiprocessors together, reading what lies in the level-2 cache, B/s
}

// Start is what each kernel takes, however little it moves and computes: its launch, and the way of the first bytes from
// memory and of the last ones back, s.
func (m *Machine) Start() float64 { return m.Gap() + m.Fill() }

// Gap is what a kernel of a graph adds to a step, s: from Hopper on kernels start while the one before them runs (programmatic
// dependent launch).
func (m *Machine) Gap() float64 {
	if m.Dependent > 0 {
		return m.Dependent
	}
	return m.Launch
}

// Serial is m with kernels that start when the one before has ended, as those of libraries mostly do.
func (m *Machine) Serial() *Machine {
	s := *m
	s.Dependent = 0
	return &s
}

// Fill is the way of the first bytes of a kernel from memory and of its last ones back, s.
func (m *Machine) Fill() float64 { return 2 * m.MemoryLatency }

// special is how many results of exponentials, logarithms and the like a multiprocessor gives in a
// clock (CUDA C++ Programming Guide, table of arithmetic instructions: 16 for all compute
// capabilities from 7.0 to 10.0).
const special = 16

// SpecialRate is how many exponentials all multiprocessors compute in a second; 0 where the clock is not known.
func (m *Machine) SpecialRate() float64 { return special * float64(m.SMs) * m.Clock }

// generation is the compute capability that m's architecture has; 0 where it has none.
func (m *Machine) generation() int { return Capability(m.Arch) }

// Capability is the compute capability that an architecture names, 90 for sm_90a; 0 where it is none of NVIDIA's.
func Capability(arch string) int {
	digits, ok := strings.CutPrefix(arch, "sm_")
	n := 0
	for _, c := range digits {
		if !ok || c < '0' || c > '9' {
			break
		}
		n = 10*n + int(c-'0')
	}
	return n
}

// hopper is the first generation whose blocks form clusters, which share what they read, and whose tensor cores work beside
// the other units of a block (NVIDIA H100 Tensor Core GPU Architecture: thread block clusters, asynchronous execution).
const hopper = 90

// neighbours is how many reads of blocks on Hopper, whose operands tensor maps copy, the level-2 cache serves at the price of one, besides
// what they multicast: neighbours ask for the same lines at the same time. Tiles of 192 × 192 without clusters reach 777 TFLOP/s at 8192³ on an
// H100 SXM (fast.cu, kernel 6), for which they read 8.1 TB/s: 4/3 of l2_bandwidth.
const neighbours = 4.0 / 3

// sharing is how many blocks of a library's product one read of the level-2 cache serves: libraries choose the clusters.
func (m *Machine) sharing() float64 {
	if m.generation() >= hopper {
		return 2
	}
	return 1
}

// The constants that a machine may take from a relative, by their keys.
const (
	keyClock         = "clock"
	KeyLaunch        = "launch_latency"
	KeyStream        = "stream_latency"
	KeyDependent     = "dependent_latency"
	KeyMemoryLatency = "memory_latency"
	KeyL2Bandwidth   = "l2_bandwidth"
	keyCeilings      = "ceilings."
	KeyBandwidth     = keyCeilings + "bandwidth"
)

// CeilingOf is the key of the ceiling of a rate.
func CeilingOf(contraction bool, e types.Elem) string {
	if contraction {
		return keyCeilings + "tensor_core." + e.String()
	}
	return keyCeilings + "vector." + e.String()
}

// CeilingOfPath is the key of the part of the tensor cores' rate that a path reaches.
func CeilingOfPath(path string) string { return keyCeilings + "paths." + path }

// assumed notes that the constant with this key is assumed after another machine.
func (m *Machine) assumed(key, after string) {
	if m.Assumed == nil {
		m.Assumed = map[string]string{}
	}
	m.Assumed[key] = after
}

// assume fills in what m lacks from a relative: latencies and the clock as they are there, the bandwidth of
// the level-2 cache in proportion to multiprocessors and clock, ceilings as the same part of the
// peak. What is assumed is in m.Assumed, with the relative's name.
func (m *Machine) assume(from *Machine) {
	if from == nil || m.CPU || from.CPU {
		return
	}
	note := func(key string) {
		if after := from.Assumed[key]; after != "" {
			m.assumed(key, after)
			return
		}
		m.assumed(key, from.Name)
	}
	take := func(key string, to *float64, x float64) {
		if *to == 0 && x > 0 && m.Assumed[key] == "" {
			*to = x
			note(key)
		}
	}
	take(keyClock, &m.Clock, from.Clock)
	take(KeyLaunch, &m.Launch, from.Launch)
	take(KeyStream, &m.Stream, from.Stream)
	if m.generation() >= hopper && m.Assumed[KeyLaunch] != "" { // it is a part of that launch
		take(KeyDependent, &m.Dependent, from.Dependent)
	}
	take(KeyMemoryLatency, &m.MemoryLatency, from.MemoryLatency)
	if from.SMs > 0 && from.Clock > 0 {
		take(KeyL2Bandwidth, &m.L2Bandwidth, from.L2Bandwidth*float64(m.SMs)*m.Clock/(float64(from.SMs)*from.Clock))
	}
	c, of := &m.Ceilings, from.Ceilings
	if of.Source == "" {
		return
	}
	if c.Source == "" {
		c.Source = "assumed: the parts of the peaks that the " + from.Title + " reaches"
	}
	take(KeyBandwidth, &c.Bandwidth, m.Bandwidth*of.Bandwidth/from.Bandwidth)
	rates := func(table string, to *map[types.Elem]float64, peak, ceiling, of map[types.Elem]float64) {
		*to = maps.Clone(*to)
		for _, e := range slices.Sorted(maps.Keys(peak)) {
			part := 0.0 // that the relative reaches: of this type, else of a common one
			for _, k := range []types.Elem{e, types.BF16, types.F16, types.F32} {
				if part == 0 && of[k] > 0 {
					part = ceiling[k] / of[k]
				}
			}
			if (*to)[e] == 0 && part > 0 {
				if *to == nil {
					*to = map[types.Elem]float64{}
				}
				(*to)[e] = peak[e] * part
				note(keyCeilings + table + "." + e.String())
			}
		}
	}
	rates("tensor_core", &c.TensorCore, m.TensorCore, of.TensorCore, from.TensorCore)
	rates("vector", &c.Vector, m.Vector, of.Vector, from.Vector)
	for _, path := range slices.Sorted(maps.Keys(of.Paths)) {
		if _, ok := c.Paths[path]; !ok {
			if c.Paths = maps.Clone(c.Paths); c.Paths == nil {
				c.Paths = map[string]float64{}
			}
			c.Paths[path] = of.Paths[path]
			note(CeilingOfPath(path))
		}
	}
}

// gatherSlots is how many instructions of a thread load an element by itself to shared memory: its
// position in the window, its bounds, the access and the conversion. A 3×3 convolution of f16 for
// sm_90a has 1,218 in its loop instead of 185, for 32 elements.
const gatherSlots = 32

// Gather is how long the loads of operand i of a product take where each of its elements is loaded by
// itself, once by each of the tiles of 128 that it is a part of, s. A multiprocessor issues an
// instruction for each lane of f32 arithmetic in a clock.
func (m *Machine) Gather(p Product, i int) float64 {
	return p.loads(i) * gatherSlots / (m.Peak(false, types.F32) / 2)
}

// loads is how many elements of operand i tiles of 128 load.
func (p Product) loads(i int) float64 {
	of, others := p.Rows, p.Cols
	if (i == 1) != p.Turned {
		of, others = others, of
	}
	return float64(p.Batch) * float64(of) * float64(p.Depth) / float64(max(p.Phases, 1)) * float64(ceil(others, 128))
}

// Sectors is how much longer these loads take of the level-2 cache where each has a sector of its own, s.
func (m *Machine) Sectors(p Product, i int, e types.Elem) float64 {
	return p.loads(i) * float64(sector-e.Bytes()) / m.L2Bandwidth
}
