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

// Spec is a machine as TOML writes it. Quantities are strings with their unit,
// "4.8 TB/s". Fields that are absent come from
// Base, where one is named.
type Spec struct {
	Base         string              `toml:"base" names:"machine" doc:"The machine whose values hold where this one has none"`
	Like         string              `toml:"like" names:"machine" doc:"The relative whose latencies, clock and parts of the peaks are assumed where this one names none; absent, h100 for an accelerator that names none of these"`
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
	Clock        *Hertz              `toml:"clock" doc:"Clock of the multiprocessors while long kernels run"`
	Dependent    *Seconds            `toml:"dependent_latency" doc:"Time that a kernel adds in a captured CUDA graph where it may start while the one before it runs (programmatic dependent launch), with compute capability 9.0 and up"`
	Stream       *Seconds            `toml:"stream_latency" doc:"Time that a kernel adds behind which the host begins another graph"`
	MemLatency   *Seconds            `toml:"memory_latency" doc:"Time of one load from the memory of an accelerator; a kernel waits for two, its first bytes and its last"`
	L2Bandwidth  *BytesPerSecond     `toml:"l2_bandwidth" doc:"Bandwidth at which all multiprocessors together read what lies in the last cache"`
	HostLink     *BytesPerSecond     `toml:"host_link" doc:"Bandwidth between host and device, each way"`
	PeerLink     *BytesPerSecond     `toml:"peer_link" doc:"Bandwidth between two devices of a node, each way"`
	TensorCore   map[string]FLOPRate `toml:"tensor_core" names:"element" doc:"Peak rates of the tensor cores by element type, dense"`
	Vector       map[string]FLOPRate `toml:"vector" names:"element" doc:"Peak rates of the vector units by element type"`
	Links        map[string]LinkSpec `toml:"links" doc:"Links that join devices to a cluster, by name such as nvlink"`
	Assumed      map[string]string   `toml:"assumed" doc:"Constants of this file that are assumed, as their keys, each with the machine that they are assumed after"`
	Ceilings     *CeilingsSpec       `toml:"ceilings" doc:"What measured kernels reach of the peaks"`

	// Of processors.
	Read       *BytesPerSecond                `toml:"read_bandwidth" doc:"Bandwidth of a CPU's memory for kernels that only read; absent, that for as many reads as writes"`
	Random     *BytesPerSecond                `toml:"random_bandwidth" doc:"Bandwidth of a CPU's memory for lines that are read at random; absent, read_bandwidth"`
	RandomRows *BytesPerSecond                `toml:"random_rows_bandwidth" doc:"Bandwidth of a CPU's memory for rows of four lines that are read at random; absent, of which each begins with a line at random"`
	Grain      *Bytes                         `toml:"grain" doc:"Bytes moved and FLOP that a thread of a CPU has at least: smaller kernels run on fewer threads"`
	Call       *Seconds                       `toml:"call_latency" doc:"Time that a kernel on one thread of a CPU adds to a run"`
	Mispredict *Seconds                       `toml:"mispredict" doc:"Time that a core of a CPU loses where a loop over a row ends sooner or later than that of the row before"`
	Caches     map[string]CacheSpec           `toml:"caches" doc:"Caches of a CPU by name, such as l2: what fits one is moved at its bandwidth"`
	Ops        map[string]map[string]FLOPRate `toml:"ops" names:"element" doc:"Rates of ops of a CPU that take longer than additions, by element type and by name such as exp; an op without FLOP counts one for each element of its result"`
	Rows       map[string]map[string]Seconds  `toml:"rows" names:"element" doc:"Time that an op of a CPU adds for each row that it reduces, on one core, by element type and by name such as softmax"`

	Products map[string]ProductSpec `toml:"products" names:"element" doc:"Rates of the parts of products on a CPU, by the type of their sums"`
}

// ProductSpec is ProductRates as TOML writes them.
type ProductSpec struct {
	Sums    *FLOPRate       `toml:"sums" doc:"Rate of multiplications in whole tiles, of all cores together"`
	Rows    *BytesPerSecond `toml:"rows" doc:"Rate at which elements of the rows' operand are packed, of all cores together"`
	Cols    *BytesPerSecond `toml:"cols" doc:"Rate at which elements of the columns' operand are packed, likewise"`
	Results *BytesPerSecond `toml:"results" doc:"Rate at which results are stored, likewise"`
	Line    *Seconds        `toml:"line" doc:"Time that a row of a tile of results takes besides, on one core"`
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
	Hertz          float64
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

// UnmarshalText reads "1.755 GHz".
func (h *Hertz) UnmarshalText(text []byte) error {
	x, err := positive(string(text), "Hz")
	*h = Hertz(x)
	return err
}

func positive(text, unit string) (float64, error) {
	x, err := units.Parse(text, unit)
	if err == nil && x <= 0 {
		err = fmt.Errorf("%q must be more than 0", text)
	}
	return x, err
}

// A SpecError is what is wrong with a machine: with the value of a key of it, such as
// tensor_core.f16, or with all of it where Key is "".
type SpecError struct{ Machine, Key, Text string }

func (e *SpecError) Error() string { return "machine " + e.Machine + ": " + e.Text }

func wrong(machine, key, format string, args ...any) error {
	return &SpecError{machine, key, fmt.Sprintf(format, args...)}
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
	base, err := s.named("base", s.Base, name)
	if err != nil {
		return nil, err
	}
	like, err := s.named("like", s.Like, name)
	if err != nil {
		return nil, err
	}
	if like == nil && base == nil && (s.CPU == nil || !*s.CPU) && s.bare() {
		like, _ = Lookup(relative)
	}
	return s.build(name, base, like)
}

// relative is the machine that accelerators of users are like that name no other, and none of the constants.
const relative = "h100"

// bare reports whether s names none of the constants that an accelerator may take from a relative.
func (s *Spec) bare() bool {
	return s.Clock == nil && s.Launch == nil && s.Stream == nil && s.Dependent == nil && s.MemLatency == nil && s.L2Bandwidth == nil && s.Ceilings == nil
}

// named is the machine that a key of s names, nil where it names none.
func (s *Spec) named(key, other, name string) (*Machine, error) {
	if other == "" {
		return nil, nil
	}
	m, ok := Lookup(other)
	switch {
	case ok:
		return m, nil
	case IsLocal(other):
		return nil, wrong(name, key, "it builds on %s: %v", strings.ToLower(other), NoLocal(other))
	}
	return nil, wrong(name, key, "there is no machine %q to build on; %s", other, Meant(other, Names()))
}

func (s *Spec) build(name string, base, like *Machine) (*Machine, error) {
	m := &Machine{Name: strings.ToLower(name), TensorCore: map[types.Elem]float64{}, Vector: map[types.Elem]float64{}}
	if base != nil {
		*m = *base
		m.Name = strings.ToLower(name)
		m.TensorCore, m.Vector = clone(base.TensorCore), clone(base.Vector)
		m.Assumed = maps.Clone(base.Assumed)
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
	given(m, KeyLaunch, &m.Launch, s.Launch)
	given(m, keyClock, &m.Clock, s.Clock)
	given(m, KeyStream, &m.Stream, s.Stream)
	if s.Launch != nil {
		m.Dependent = 0 // the base's is a part of the base's launch
	}
	given(m, KeyDependent, &m.Dependent, s.Dependent)
	given(m, KeyMemoryLatency, &m.MemoryLatency, s.MemLatency)
	given(m, KeyL2Bandwidth, &m.L2Bandwidth, s.L2Bandwidth)
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
		m.Ceilings = Ceilings{} // they were measured on another machine, and only parts of the peaks are alike
		if like == nil {
			like = base
		}
	}
	if s.Ceilings != nil {
		if err := s.Ceilings.over(m, name); err != nil {
			return nil, err
		}
	}
	for key, after := range s.Assumed {
		m.assumed(key, after)
	}
	m.assume(like)
	m.assume(m) // types of which no ceiling is known, after those of which one is
	if err := s.processor(m, name); err != nil {
		return nil, err
	}
	if err := s.linksOf(m, name); err != nil {
		return nil, err
	}
	switch {
	case m.SMs < 0:
		return nil, wrong(name, "sms", "sms is %d, which is negative", m.SMs)
	case m.Memory < 0 || m.L2 < 0 || m.SharedMemory < 0 || m.Launch < 0 || m.Stream < 0 || m.Dependent < 0 || m.MemoryLatency < 0 || m.HostLink < 0 || m.PeerLink < 0:
		return nil, wrong(name, "", "a negative quantity")
	case m.Bandwidth <= 0:
		return nil, wrong(name, "", `bandwidth is missing; write for example bandwidth = "4.8 TB/s"`)
	case m.Vector[types.F32] <= 0:
		return nil, wrong(name, "", `the peak of f32 is missing; write for example vector.f32 = "67 TFLOP/s"`)
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
	if s.Source == "" {
		return wrong(name, "ceilings", "ceilings.source is missing; it states where the ceilings were measured")
	}
	if c.Bandwidth > m.Bandwidth {
		return wrong(name, "ceilings.bandwidth", "ceilings.bandwidth is above the bandwidth")
	}
	for _, t := range []struct {
		table      string
		rate, peak map[types.Elem]float64
	}{{"tensor_core", c.TensorCore, m.TensorCore}, {"vector", c.Vector, m.Vector}} {
		for e, rate := range t.rate {
			if rate > t.peak[e] {
				return wrong(name, "ceilings."+t.table+"."+e.String(), "ceilings.%s.%s is above %s.%s", t.table, e, t.table, e)
			}
		}
	}
	for path, part := range s.Paths {
		if !(part > 0 && part <= 1) {
			return wrong(name, "ceilings.paths."+path, "ceilings.paths.%s is no part of 1", path)
		}
		if c.Paths == nil {
			c.Paths = map[string]float64{}
		}
		c.Paths[path] = part
	}
	return nil
}

func peaks(to map[types.Elem]float64, from map[string]FLOPRate, name, table string) (all error) {
	keys := make([]string, 0, len(from))
	for k := range from {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	for _, k := range keys {
		e, ok := types.ElemByName(k)
		if strings.HasSuffix(table, "tensor_core") && k == types.TF32.String() {
			e, ok = types.TF32, true
		}
		if !ok || !e.IsFloat() {
			all = errors.Join(all, wrong(name, table+"."+k, "%s.%s: %q is not a floating-point element type", table, k, k))
			continue
		}
		to[e] = float64(from[k])
	}
	return all
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

// given copies a constant that the file names, which is then not assumed.
func given[F ~float64](m *Machine, key string, to *float64, from *F) {
	if from != nil {
		copyTo(to, from)
		delete(m.Assumed, key)
	}
}

func clone(m map[types.Elem]float64) map[types.Elem]float64 {
	out := make(map[types.Elem]float64, len(m))
	for k, v := range m {
		out[k] = v
	}
	return out
}
