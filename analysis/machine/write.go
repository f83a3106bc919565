package machine

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"dmir/analysis/units"
	"dmir/dialect/types"
)

// TOML is m as a machine file, with quantities to three digits.
func (m *Machine) TOML() string {
	var w writer
	w.text("title", m.Title)
	w.text("source", m.Source)
	if m.CPU {
		w.line("cpu = true")
	}
	w.text("arch", m.Arch)
	w.line("")
	w.bandwidth("bandwidth", m.Bandwidth)
	w.bandwidth("read_bandwidth", m.Read)
	w.bandwidth("random_bandwidth", m.Random)
	w.bandwidth("random_rows_bandwidth", m.RandomRows)
	w.bytes("memory", m.Memory)
	w.bytes("l2", m.L2)
	w.bytes("shared_memory", m.SharedMemory)
	w.number("sms", int64(m.SMs))
	w.bytes("grain", m.Grain)
	w.bandwidth("host_link", m.HostLink)
	w.bandwidth("peer_link", m.PeerLink)
	if m.Clock > 0 {
		w.text("clock", strconv.FormatFloat(m.Clock/1e9, 'g', 4, 64)+" GHz")
	}
	w.seconds("launch_latency", m.Launch)
	w.seconds("stream_latency", m.Stream)
	w.seconds("dependent_latency", m.Dependent)
	w.seconds("memory_latency", m.MemoryLatency)
	w.bandwidth("l2_bandwidth", m.L2Bandwidth)
	w.seconds("call_latency", m.Call)
	w.seconds("mispredict", m.Mispredict)
	if len(m.Assumed) > 0 {
		w.line("\n[assumed]")
		for _, k := range slices.Sorted(maps.Keys(m.Assumed)) {
			w.text(strconv.Quote(k), m.Assumed[k])
		}
	}
	for _, c := range m.Caches {
		w.line("\n[caches." + key(strings.ToLower(c.Name)) + "]")
		w.bytes("size", c.Size)
		if c.PerCore {
			w.line("per_core = true")
		}
		w.bandwidth("bandwidth", c.Bandwidth)
		w.bandwidth("read_bandwidth", c.Read)
		w.bandwidth("random_bandwidth", c.Random)
		w.bandwidth("random_rows_bandwidth", c.RandomRows)
	}
	w.links(m.Links)
	w.rates("tensor_core", byName(m.TensorCore))
	w.rates("vector", byName(m.Vector))
	for _, e := range slices.Sorted(maps.Keys(m.Ops)) {
		w.rates("ops."+e.String(), m.Ops[e])
	}
	for _, e := range slices.Sorted(maps.Keys(m.Rows)) {
		w.line("\n[rows." + e.String() + "]")
		for _, op := range slices.Sorted(maps.Keys(m.Rows[e])) {
			w.seconds(key(op), m.Rows[e][op])
		}
	}
	for _, e := range slices.Sorted(maps.Keys(m.Products)) {
		r := m.Products[e]
		w.line("\n[products." + e.String() + "]")
		w.text("sums", units.Rate(r.Sums))
		w.bandwidth("rows", r.Rows)
		w.bandwidth("cols", r.Cols)
		w.bandwidth("results", r.Results)
		w.seconds("line", r.Line)
	}
	if c := m.Ceilings; c.Source != "" {
		w.line("\n[ceilings]")
		w.text("source", c.Source)
		w.bandwidth("bandwidth", c.Bandwidth)
		w.rates("ceilings.tensor_core", byName(c.TensorCore))
		w.rates("ceilings.vector", byName(c.Vector))
		if len(c.Paths) > 0 {
			w.line("\n[ceilings.paths]")
			for _, path := range slices.Sorted(maps.Keys(c.Paths)) {
				w.line(key(path) + " = " + strconv.FormatFloat(c.Paths[path], 'f', -1, 64))
			}
		}
	}
	return w.String()
}

// writer writes lines of TOML; what is 0 or empty was not known and is left out.
type writer struct{ strings.Builder }

func (w *writer) line(s string) { w.WriteString(s + "\n") }

func (w *writer) text(name, s string) {
	if s != "" {
		w.line(name + " = " + quoted(s))
	}
}

func (w *writer) number(name string, n int64) {
	if n != 0 {
		w.line(fmt.Sprint(name, " = ", n))
	}
}

func (w *writer) bandwidth(name string, x float64) {
	if x != 0 {
		w.text(name, units.Bandwidth(x))
	}
}

func (w *writer) seconds(name string, x float64) {
	if x != 0 {
		w.text(name, units.Time(x*1e9))
	}
}

func (w *writer) bytes(name string, n int64) {
	switch {
	case n == 0:
	case n%(1<<20) == 0:
		w.text(name, fmt.Sprint(n>>20, " MiB"))
	case n%(1<<10) == 0:
		w.text(name, fmt.Sprint(n>>10, " KiB"))
	default:
		w.text(name, fmt.Sprint(n, " B"))
	}
}

func (w *writer) rates(table string, rates map[string]float64) {
	if len(rates) == 0 {
		return
	}
	w.line("\n[" + table + "]")
	for _, name := range slices.Sorted(maps.Keys(rates)) {
		w.text(key(name), units.Rate(rates[name]))
	}
}

func byName(rates map[types.Elem]float64) map[string]float64 {
	out := make(map[string]float64, len(rates))
	for e, rate := range rates {
		out[e.String()] = rate
	}
	return out
}

// key is s as the key of a value.
func key(s string) string {
	const bare = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
	if s != "" && strings.Trim(s, bare) == "" {
		return s
	}
	return quoted(s)
}

// quoted is s as a string of TOML, whose escapes are not all those of Go.
func quoted(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range strings.ToValidUTF8(s, "\uFFFD") {
		switch {
		case r == '"' || r == '\\':
			b.WriteString(`\` + string(r))
		case r < 0x20 || r == 0x7f:
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
