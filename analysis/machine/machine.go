// Package machine describes the machines that cost is predicted for. Machines
// are data: one TOML file each under data/, with the datasheet it was read
// from; users add theirs in dmir.toml under [machines.NAME], alone or on top of
// one that exists (base = "h200"). The machine "local" is this one's processor as
// dmir calibrate measured it, a file in the user's configuration.
package machine

import (
	"embed"
	"maps"
	"slices"
	"sort"
	"strings"
	"sync"

	"dmir/analysis/units"
	"dmir/dialect/types"
)

// Default is the machine that figures are for unless another is chosen.
const Default = "h200"

// Machine holds the data of one machine for the cost model. Rates are peaks
// without sparsity.
type Machine struct {
	Name   string // as people type it: "h200"
	Title  string // as people read it: "H200 SXM"
	Source string // what the figures were read from
	CPU    bool   // a processor rather than an accelerator
	Arch   string // what the CUDA compiler calls its GPU, "sm_90a"; empty where it has none

	Bandwidth    float64 // of the main memory, B/s
	Launch       float64 // what each kernel adds to a step, s
	SMs          int     // streaming multiprocessors, or cores
	SharedMemory int64   // largest shared memory of one block, bytes
	L2           int64   // last-level cache, bytes
	Memory       int64   // main memory, bytes
	HostLink     float64 // to the host, one direction, B/s
	PeerLink     float64 // to another device, one direction, B/s; 0 where none

	TensorCore map[types.Elem]float64 // dense FLOP/s of contractions by operand type, accumulating in f32 (f64 in f64)
	Vector     map[types.Elem]float64 // FLOP/s of everything else

	Links []Link // of a cluster, which join its devices, from the inside out; Joined has those of every machine

	Ceilings Ceilings
	Assumed  map[string]string // constants that are those of a relative, by key; see Spec.Like

	Accelerator // what only accelerators have
	Processor   // what only processors have
}

// Ceilings are what kernels were measured to reach, where the datasheet promises
// more. What is 0 or absent was not measured.
type Ceilings struct {
	Source     string  // where they were measured; empty: nowhere
	Bandwidth  float64 // B/s
	TensorCore map[types.Elem]float64
	Vector     map[types.Elem]float64
	Paths      map[string]float64 // what instructions reach of the tensor cores' ceiling: "mma"
}

// Reach is the bandwidth that kernels reach, B/s: the ceiling, or the
// datasheet's where none was measured.
func (m *Machine) Reach() float64 {
	if c := m.Ceilings.Bandwidth; c > 0 {
		return c
	}
	return m.Bandwidth
}

// LaunchText is m.Gap in words. GPUs run a step as one captured graph, in which a
// kernel adds far less than a launch by itself does.
func (m *Machine) LaunchText() string {
	text := units.Time(m.Gap() * 1e9)
	if m.CPU {
		return text + " launch"
	}
	return text + " in a graph"
}

// Rate is the rate in FLOP/s that kernels reach on elements of type e, Peak
// where none was measured. path is how a contraction uses the tensor cores, ""
// where that is not known: the best there is.
func (m *Machine) Rate(contraction bool, e types.Elem, path string) float64 {
	if e = m.computedAs(e); !contraction {
		e = e.Stored()
	}
	if contraction && m.TensorCore[e] > 0 {
		rate := m.TensorCore[e]
		if c := m.Ceilings.TensorCore[e]; c > 0 {
			rate = c
		}
		if part, ok := m.Ceilings.Paths[path]; ok {
			rate *= part
		}
		return rate
	}
	if c := m.Ceilings.Vector[e]; c > 0 {
		return c
	}
	if m.Vector[e] == 0 {
		if c := m.Ceilings.Vector[types.F32]; c > 0 {
			return c
		}
	}
	return m.Peak(false, e)
}

// Peak is the highest rate in FLOP/s at which m computes on elements of type
// e: that of the tensor cores for a contraction whose type they take, that of
// the vector units otherwise. Half and quarter precision run on the vector
// units at the rate of f32 where the data names no rate of their own.
func (m *Machine) Peak(contraction bool, e types.Elem) float64 {
	if !contraction || m.TensorCore[e] == 0 {
		e = e.Stored()
	}
	if contraction {
		if p := m.TensorCore[e]; p > 0 {
			return p
		}
	}
	if p := m.Vector[e]; p > 0 {
		return p
	}
	return m.Vector[types.F32]
}

//go:embed data/*.toml data/clusters/*.toml
var data embed.FS

// builtin is the machines of data/ and the clusters, each built after those that it builds on.
var builtin = sync.OnceValue(func() map[string]*Machine {
	specs := map[string]*Spec{}
	for _, dir := range []string{"data", "data/clusters"} {
		files, err := data.ReadDir(dir)
		if err != nil {
			return nil
		}
		for _, f := range files {
			name, isTOML := strings.CutSuffix(f.Name(), ".toml")
			text, err := data.ReadFile(dir + "/" + f.Name())
			if !isTOML || err != nil {
				continue
			}
			if s, err := decode(name, text); err == nil {
				specs[name] = s
			}
		}
	}
	out := map[string]*Machine{}
	var build func(name string) *Machine
	build = func(name string) *Machine {
		s, ok := specs[name]
		if m, done := out[name]; done || !ok {
			return m
		}
		delete(specs, name) // none builds on itself
		m, err := s.build(name, build(s.Base), build(s.Like))
		if err != nil {
			return nil
		}
		out[name] = m
		return m
	}
	for _, name := range slices.Sorted(maps.Keys(specs)) {
		build(name)
	}
	return out
})

// Lookup is the machine called name, or that of a card whose name this is (OfCard); upper and lower case are the same. "local" and
// "local-cuda" are those that dmir calibrate measured.
func Lookup(name string) (*Machine, bool) {
	name = strings.ToLower(name)
	if IsLocal(name) {
		m, err := Local(name)
		return m, err == nil
	}
	m := builtin()[name]
	if m == nil {
		m = OfCard(name)
	}
	return m, m != nil
}

// All is every built-in machine in order of name.
func All() []*Machine {
	out := make([]*Machine, 0, len(builtin()))
	for _, m := range builtin() {
		out = append(out, m)
	}
	slices.SortFunc(out, func(a, b *Machine) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// Names is the names of All and of the given machines of the user, sorted.
func Names(users ...*Machine) []string {
	var names []string
	for n := range builtin() {
		names = append(names, n)
	}
	for _, m := range users {
		names = append(names, m.Name)
	}
	sort.Strings(names)
	return slices.Compact(names)
}
