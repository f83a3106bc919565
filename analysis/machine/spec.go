package machine

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"sort"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"dmir/analysis/units"
	"dmir/dialect/types"
)

// Spec is a machine as TOML writes it. Quantities are strings with their unit
// ("4.8 TB/s") or numbers in the base unit. Fields that are absent come from
// Base, where one is named.
type Spec struct {
	Base         string              `toml:"base" names:"machine" doc:"The machine whose values hold where this one has none"`
	Title        string              `toml:"title" doc:"The name as people read it"`
	Source       string              `toml:"source" doc:"Where the figures come from, such as the address of a data sheet"`
	CPU          *bool               `toml:"cpu" doc:"Whether the machine is a processor rather than an accelerator"`
	Arch         string              `toml:"arch" doc:"The architecture that kernels are compiled for, such as sm_90a"`
	Bandwidth    *BytesPerSecond     `toml:"bandwidth" doc:"Bandwidth of the memory"`
	Memory       *Bytes              `toml:"memory" doc:"Size of the memory"`
	L2           *Bytes              `toml:"l2" doc:"Size of the last cache"`
	SharedMemory *Bytes              `toml:"shared_memory" doc:"Shared memory of one multiprocessor"`
	SMs          *int                `toml:"sms" doc:"Number of multiprocessors, or cores of a CPU"`
	Launch       *Seconds            `toml:"launch_latency" doc:"Time that one kernel adds to a run: in a captured CUDA graph, or as a launch of its own on a CPU"`
	HostLink     *BytesPerSecond     `toml:"host_link" doc:"Bandwidth between host and device, each way"`
	PeerLink     *BytesPerSecond     `toml:"peer_link" doc:"Bandwidth between two devices of a node, each way"`
	TensorCore   map[string]FLOPRate `toml:"tensor_core" names:"element" doc:"Peak rates of the tensor cores by element type, dense"`
	Vector       map[string]FLOPRate `toml:"vector" names:"element" doc:"Peak rates of the vector units by element type"`
	Links        map[string]LinkSpec `toml:"links" doc:"Links that join devices to a cluster, by name such as nvlink"`
	Ceilings     *CeilingsSpec       `toml:"ceilings" doc:"What measured kernels reach of the peaks"`

	// Of processors.
	Read   *BytesPerSecond                `toml:"read_bandwidth" doc:"Bandwidth of a CPU's memory for kernels that only read; absent, that for as many reads as writes"`
	Grain  *Bytes                         `toml:"grain" doc:"Bytes moved and FLOP that a thread of a CPU has at least: smaller kernels run on fewer threads"`
	Call   *Seconds                       `toml:"call_latency" doc:"Time that a kernel on one thread of a CPU adds to a run"`
	Caches map[string]CacheSpec           `toml:"caches" doc:"Caches of a CPU by name, such as l2: what fits one is moved at its bandwidth"`
	Ops    map[string]map[string]FLOPRate `toml:"ops" names:"element" doc:"Rates of ops of a CPU that take longer than additions, by element type and by name such as exp"`
}

// CeilingsSpec is what kernels were measured to reach, as TOML writes it.
type CeilingsSpec struct {
	Source     string              `toml:"source" doc:"How the figures were measured"`
	Bandwidth  *BytesPerSecond     `toml:"bandwidth" doc:"Bandwidth that kernels reach"`
	TensorCore map[string]FLOPRate `toml:"tensor_core" names:"element" doc:"Rates of the tensor cores that kernels reach, by element type"`
	Vector     map[string]FLOPRate `toml:"vector" names:"element" doc:"Rates of the vector units that kernels reach, by element type"`
	Paths      map[string]float64  `toml:"paths" doc:"Fraction of the peak rate that each path of code generation reaches"`
}

// The quantities of a Spec.
type (
	Bytes          int64
	BytesPerSecond float64
	FLOPRate       float64
	Seconds        float64
)

// UnmarshalText reads "50 MB".
func (b *Bytes) UnmarshalText(text []byte) error {
	n, err := units.ParseBytes(string(text))
	*b = Bytes(n)
	return err
}

// UnmarshalText reads "4.8 TB/s".
func (r *BytesPerSecond) UnmarshalText(text []byte) error {
	x, err := positive(string(text), "B/s")
	*r = BytesPerSecond(x)
	return err
}

// UnmarshalText reads "989 TFLOP/s".
func (r *FLOPRate) UnmarshalText(text []byte) error {
	x, err := positive(string(text), "FLOP/s")
	*r = FLOPRate(x)
	return err
}

// UnmarshalText reads "500 ns".
func (s *Seconds) UnmarshalText(text []byte) error {
	x, err := units.Parse(string(text), "s")
	if err == nil && x < 0 {
		err = fmt.Errorf("%q is negative", text)
	}
	*s = Seconds(x)
	return err
}

func positive(text, unit string) (float64, error) {
	x, err := units.Parse(text, unit)
	if err == nil && x <= 0 {
		err = fmt.Errorf("%q must be more than 0", text)
	}
	return x, err
}

// Parse reads one machine file; name is the machine's name. An error of the
// TOML text is a *toml.DecodeError or *toml.StrictMissingError with its place.
func Parse(name string, text []byte) (*Machine, error) {
	s, err := decode(name, text)
	if err != nil {
		return nil, err
	}
	return s.Build(name)
}

func decode(name string, text []byte) (*Spec, error) {
	var s Spec
	d := toml.NewDecoder(bytes.NewReader(text)).DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return nil, fmt.Errorf("machine %s: %w", name, err)
	}
	return &s, nil
}

// Build makes the machine called name, on top of its base where it has one; an
// error returns what is missing or not known.
func (s *Spec) Build(name string) (*Machine, error) {
	var base *Machine
	if s.Base != "" {
		var ok bool
		if base, ok = Lookup(s.Base); !ok && IsLocal(s.Base) {
			return nil, fmt.Errorf("machine %s: it builds on %s: %w", name, LocalName, NoLocal())
		} else if !ok {
			return nil, fmt.Errorf("machine %s: there is no machine %q to build on; known: %s", name, s.Base, strings.Join(Names(), ", "))
		}
	}
	return s.build(name, base)
}

func (s *Spec) build(name string, base *Machine) (*Machine, error) {
	m := &Machine{Name: strings.ToLower(name), TensorCore: map[types.Elem]float64{}, Vector: map[types.Elem]float64{}}
	if base != nil {
		*m = *base
		m.Name = strings.ToLower(name)
		m.TensorCore, m.Vector = clone(base.TensorCore), clone(base.Vector)
	}
	set(&m.Title, s.Title)
	set(&m.Source, s.Source)
	set(&m.Arch, s.Arch)
	if s.CPU != nil {
		m.CPU = *s.CPU
	}
	if s.SMs != nil {
		m.SMs = *s.SMs
	}
	copyTo(&m.Bandwidth, s.Bandwidth)
	copyTo(&m.Launch, s.Launch)
	copyTo(&m.HostLink, s.HostLink)
	copyTo(&m.PeerLink, s.PeerLink)
	copyTo(&m.Memory, s.Memory)
	copyTo(&m.L2, s.L2)
	copyTo(&m.SharedMemory, s.SharedMemory)
	if err := errors.Join(peaks(m.TensorCore, s.TensorCore, name, "tensor_core"), peaks(m.Vector, s.Vector, name, "vector")); err != nil {
		return nil, err
	}
	if m.Title == "" {
		m.Title = name
	}
	if base != nil && (s.Bandwidth != nil || s.TensorCore != nil || s.Vector != nil) {
		m.Ceilings = Ceilings{} // they were measured on another machine
	}
	if s.Ceilings != nil {
		if err := s.Ceilings.over(m, name); err != nil {
			return nil, err
		}
	}
	if err := s.processor(m, name); err != nil {
		return nil, err
	}
	if err := s.linksOf(m, name); err != nil {
		return nil, err
	}
	switch {
	case m.SMs < 0 || m.Memory < 0 || m.L2 < 0 || m.SharedMemory < 0 || m.Launch < 0 || m.HostLink < 0 || m.PeerLink < 0:
		return nil, fmt.Errorf("machine %s: a negative quantity", name)
	case m.Bandwidth <= 0:
		return nil, fmt.Errorf(`machine %s: bandwidth is missing; write for example bandwidth = "4.8 TB/s"`, name)
	case m.Vector[types.F32] <= 0:
		return nil, fmt.Errorf(`machine %s: the peak of f32 is missing; write for example vector.f32 = "67 TFLOP/s"`, name)
	}
	return m, nil
}

// over lays the ceilings over those that m has; none is above its peak.
func (s *CeilingsSpec) over(m *Machine, name string) error {
	c := &m.Ceilings
	c.TensorCore, c.Vector, c.Paths = clone(c.TensorCore), clone(c.Vector), maps.Clone(c.Paths)
	set(&c.Source, s.Source)
	copyTo(&c.Bandwidth, s.Bandwidth)
	if err := errors.Join(peaks(c.TensorCore, s.TensorCore, name, "ceilings.tensor_core"), peaks(c.Vector, s.Vector, name, "ceilings.vector")); err != nil {
		return err
	}
	if c.Source == "" {
		return fmt.Errorf("machine %s: ceilings.source is missing; it states where the ceilings were measured", name)
	}
	if c.Bandwidth > m.Bandwidth {
		return fmt.Errorf("machine %s: ceilings.bandwidth is above the bandwidth", name)
	}
	for _, t := range []struct {
		table      string
		rate, peak map[types.Elem]float64
	}{{"tensor_core", c.TensorCore, m.TensorCore}, {"vector", c.Vector, m.Vector}} {
		for e, rate := range t.rate {
			if rate > t.peak[e] {
				return fmt.Errorf("machine %s: ceilings.%s.%s is above %s.%s", name, t.table, e, t.table, e)
			}
		}
	}
	for path, part := range s.Paths {
		if !(part > 0 && part <= 1) {
			return fmt.Errorf("machine %s: ceilings.paths.%s is no part of 1", name, path)
		}
		if c.Paths == nil {
			c.Paths = map[string]float64{}
		}
		c.Paths[path] = part
	}
	return nil
}

func peaks(to map[types.Elem]float64, from map[string]FLOPRate, name, table string) error {
	keys := make([]string, 0, len(from))
	for k := range from {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	for _, k := range keys {
		e, ok := types.ElemByName(k)
		if !ok || !e.IsFloat() {
			return fmt.Errorf("machine %s: %s.%s: %q is not a floating-point element type", name, table, k, k)
		}
		to[e] = float64(from[k])
	}
	return nil
}

func set(to *string, from string) {
	if from != "" {
		*to = from
	}
}

func copyTo[T ~int64 | ~float64, F ~int64 | ~float64](to *T, from *F) {
	if from != nil {
		*to = T(*from)
	}
}

func clone(m map[types.Elem]float64) map[types.Elem]float64 {
	out := make(map[types.Elem]float64, len(m))
	for k, v := range m {
		out[k] = v
	}
	return out
}
