package cost

import (
	"math"
	"strings"

	"dmir/analysis/machine"
	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// Report is the JSON form of the cost of a file's functions. Numbers are exact
// integers with the unit in the name. A number that depends on an unbound
// symbol is null, and the formula stands beside it under NAME_formula; so is a
// number that is not known (an unknown op's), without a formula.
type Report struct {
	Target    string           `json:"target"`
	Ceilings  *Ceilings        `json:"ceilings,omitempty"` // that times are computed with; absent: the datasheet's figures
	Functions []FunctionReport `json:"functions"`
}

// Ceilings are the measured rates of the target.
type Ceilings struct {
	Source     string             `json:"source"`
	Bandwidth  float64            `json:"bandwidth_bytes_per_s,omitempty"`
	TensorCore map[string]float64 `json:"tensor_core_flop_per_s,omitempty"`
	Vector     map[string]float64 `json:"vector_flop_per_s,omitempty"`
	Paths      map[string]float64 `json:"paths,omitempty"` // parts of tensor_core_flop_per_s
}

func ceilings(c machine.Ceilings) *Ceilings {
	if c.Source == "" {
		return nil
	}
	named := func(rates map[types.Elem]float64) map[string]float64 {
		out := map[string]float64{}
		for e, rate := range rates {
			out[e.String()] = rate
		}
		return out
	}
	return &Ceilings{c.Source, c.Bandwidth, named(c.TensorCore), named(c.Vector), c.Paths}
}

// FunctionReport is one function.
type FunctionReport struct {
	Name           string `json:"name"`
	FLOP           *int64 `json:"flop"`
	FLOPFormula    string `json:"flop_formula,omitempty"`
	Read           *int64 `json:"read_bytes"`
	ReadFormula    string `json:"read_bytes_formula,omitempty"`
	Written        *int64 `json:"written_bytes"`
	WrittenFormula string `json:"written_bytes_formula,omitempty"`
	Moved          *int64 `json:"moved_bytes"`
	MovedFormula   string `json:"moved_bytes_formula,omitempty"`
	Minimum        *int64 `json:"minimum_bytes"`
	MinimumFormula string `json:"minimum_bytes_formula,omitempty"`
	Peak           *int64 `json:"peak_bytes"`
	PeakFormula    string `json:"peak_bytes_formula,omitempty"`
	TimeNs         *int64 `json:"time_ns"`

	// Of functions that the devices of a mesh run together; all figures are then of one
	// device, and time_ns is less what of its collectives runs beside kernels.
	Devices    int              `json:"devices,omitempty"`
	Mesh       *MeshReport      `json:"mesh,omitempty"`
	Sent       map[string]int64 `json:"sent_bytes,omitempty"` // by axes
	ExposedNs  *int64           `json:"exposed_ns,omitempty"` // of collectives in which no kernel runs
	CommNs     *int64           `json:"communication_ns,omitempty"`
	NotDivided string           `json:"not_divided,omitempty"` // why the figures are of one device

	// Rows that are read by number: from the level-2 cache, or a processor's caches, and from the memory beyond moved_bytes.
	Rows    int64           `json:"rows_from_cache_bytes,omitempty"`
	Again   int64           `json:"rows_again_bytes,omitempty"`
	Counted []CountedReport `json:"counted,omitempty"`

	Unbound    []string   `json:"unbound,omitempty"`
	UnknownOps int        `json:"unknown_ops,omitempty"`
	Ops        []OpReport `json:"ops"`
	LeftOut    int        `json:"ops_left_out,omitempty"` // by Order.Top

	// As it is compiled, or why that is not known; neither unless it was asked for.
	Compiled    *CompiledReport `json:"compiled,omitempty"`
	NotCompiled string          `json:"not_compiled,omitempty"`
}

// CountedReport is what was counted of the elements that a sparse argument stores.
type CountedReport struct {
	Argument string  `json:"argument"`
	File     string  `json:"file"`
	Stored   int64   `json:"stored"`
	Rows     int64   `json:"rows"`
	Empty    int64   `json:"empty_rows"`
	Median   int64   `json:"median_row"`
	Longest  int64   `json:"longest_row"`
	Blocks   int64   `json:"blocks_16,omitempty"`
	Touched  []int64 `json:"touched"` // by level with coordinates
}

// CompiledReport is a function as it is compiled.
type CompiledReport struct {
	Kernels *int64 `json:"kernels"`
	Moved   *int64 `json:"moved_bytes"`
	Peak    *int64 `json:"peak_bytes"`
	TimeNs  *int64 `json:"time_ns"`
	Sent    *int64 `json:"sent_bytes,omitempty"`
	// Stages are, of a step in stages, the figures of each position along the axis of its pipeline; those above are then
	// of the device that has most, and time_ns is until the last has ended.
	Stages []StageReport `json:"stages,omitempty"`
}

// StageReport is what the devices of one position along the axis of a pipeline run.
type StageReport struct {
	Func    string `json:"func"`
	Kernels *int64 `json:"kernels"`
	Moved   *int64 `json:"moved_bytes"`
	Peak    *int64 `json:"peak_bytes"`
	BusyNs  *int64 `json:"busy_ns"` // of its kernels
	WaitNs  *int64 `json:"wait_ns"` // in which none of them runs
	Sent    *int64 `json:"sent_bytes,omitempty"`
}

// report is s for JSON.
func (s *StageFigures) report(timed bool) StageReport {
	r := StageReport{Func: s.Func, Sent: s.Sent}
	r.Kernels, _ = number(s.Kernels)
	r.Moved, _ = number(s.Moved)
	if len(s.Peaks) == 1 {
		r.Peak, _ = number(s.Peaks[0])
	}
	if timed {
		busy, wait := int64(math.Round(s.BusyNs)), int64(math.Round(s.WaitNs))
		r.BusyNs, r.WaitNs = &busy, &wait
	}
	return r
}

// Compile fills in what functions cost as they are compiled.
func (r *Report) Compile(funcs []*Func, of func(*Func) (Figures, error)) {
	for i, f := range funcs {
		if f.planned() {
			continue
		}
		x, err := of(f)
		if err != nil {
			r.Functions[i].NotCompiled = err.Error()
			continue
		}
		c := &CompiledReport{Sent: x.Sent}
		c.Kernels, _ = number(x.Kernels)
		c.Moved, _ = number(x.Moved)
		if len(x.Peaks) == 1 {
			c.Peak, _ = number(x.Peaks[0])
		}
		if x.Time.Known {
			ns := int64(math.Round(x.Time.Ns))
			c.TimeNs = &ns
		}
		for k := range x.Stages {
			c.Stages = append(c.Stages, x.Stages[k].report(x.Time.Known))
		}
		r.Functions[i].Compiled = c
	}
}

// MeshReport is a mesh.
type MeshReport struct {
	Name string       `json:"name"`
	Axes []AxisReport `json:"axes"`
}

// AxisReport is an axis of a mesh.
type AxisReport struct {
	Name string `json:"name"`
	Size int    `json:"size"`
}

// OpReport is one op. Inner are the ops in the region of a kernel, an if or a
// while; those of a kernel move nothing and take no separate time.
type OpReport struct {
	Line           int    `json:"line"`
	Name           string `json:"name"`
	Result         string `json:"result"`
	Class          string `json:"class"`
	FLOP           *int64 `json:"flop"`
	FLOPFormula    string `json:"flop_formula,omitempty"`
	Read           *int64 `json:"read_bytes"`
	ReadFormula    string `json:"read_bytes_formula,omitempty"`
	Written        *int64 `json:"written_bytes"`
	WrittenFormula string `json:"written_bytes_formula,omitempty"`
	TimeNs         *int64 `json:"time_ns"`

	Sent map[string]int64 `json:"sent_bytes,omitempty"` // by axes

	Rows  int64 `json:"rows_from_cache_bytes,omitempty"`
	Again int64 `json:"rows_again_bytes,omitempty"`

	Bound *string    `json:"bound"`
	Inner []OpReport `json:"inner,omitempty"`
}

// JSON is the report on funcs for m. The times of a function's ops add up to
// the function's to the last digit.
func JSON(m *machine.Machine, funcs []*Func) Report {
	r := Report{Functions: make([]FunctionReport, 0, len(funcs))}
	if m != nil {
		r.Target, r.Ceilings = m.Name, ceilings(m.Ceilings)
	}
	for _, f := range funcs {
		r.Functions = append(r.Functions, f.PerDevice().report(m))
	}
	return r
}

func (f *Func) report(m *machine.Machine) FunctionReport {
	r := FunctionReport{Name: f.Func.Name, Unbound: f.Unbound(), UnknownOps: f.Unknown, Ops: []OpReport{}}
	r.FLOP, r.FLOPFormula = number(f.FLOP)
	r.Read, r.ReadFormula = number(f.Read)
	r.Written, r.WrittenFormula = number(f.Written)
	r.Moved, r.MovedFormula = number(f.Moved())
	r.Minimum, r.MinimumFormula = number(f.Minimum())
	if len(f.Peaks()) == 1 {
		r.Peak, r.PeakFormula = number(f.Peak())
	} else {
		r.PeakFormula = f.PeakFormula()
	}
	t := timer{m}
	var ns int64
	known := true
	for _, e := range f.Entries {
		o := t.report(e)
		if o.TimeNs == nil {
			known = false
		} else {
			ns += *o.TimeNs
		}
		r.Ops = append(r.Ops, o)
	}
	if known {
		r.TimeNs = &ns
	}
	r.Rows, r.Again = f.Rows(m)
	r.Counted = f.countedReport()
	f.distribution(m, &r)
	return r
}

// distribution fills in what concerns the devices of a mesh.
func (f *Func) distribution(m *machine.Machine, r *FunctionReport) {
	on := f.Mesh()
	if on == nil {
		if _, problem := f.Divide(); problem != nil {
			r.NotDivided = problem.Msg
		}
		return
	}
	r.Devices, r.Mesh = on.Devices(), &MeshReport{Name: on.Name}
	for _, a := range on.Axes {
		r.Mesh.Axes = append(r.Mesh.Axes, AxisReport{a.Name, a.Size})
	}
	if f.body.in.mesh == nil {
		if _, problem := f.Divide(); problem != nil {
			r.NotDivided = problem.Msg
		}
		return
	}
	if sent, known := f.Sent(); known {
		r.Sent = sentReport(sent)
	}
	if o := f.Overlap(m); o.Known {
		exposed, comm := int64(math.Round(o.ExposedNs)), int64(math.Round(o.Comm))
		r.ExposedNs, r.CommNs = &exposed, &comm
		if f.talks() {
			ns := int64(math.Round(o.Ns))
			r.TimeNs = &ns
		}
	}
}

func sentReport(sent []Sent) map[string]int64 {
	if len(sent) == 0 {
		return nil
	}
	out := make(map[string]int64, len(sent))
	for _, s := range sent {
		out[s.Axes] = s.Bytes
	}
	return out
}

func (t *timer) report(e *Entry) OpReport {
	r := OpReport{Line: e.Line(), Name: e.Op.Name, Result: resultNames(e.Op), Class: string(e.Class)}
	if e.Known {
		r.FLOP, r.FLOPFormula = number(e.FLOP)
		r.Read, r.ReadFormula = number(e.Read)
		r.Written, r.WrittenFormula = number(e.Written)
	} else {
		r.Class = "unknown"
	}
	if x := t.entry(e); x.Known {
		ns := int64(math.Round(x.Ns))
		r.TimeNs, r.Bound = &ns, &x.Bound
	}
	if sent, known := e.Sent(); known {
		r.Sent = sentReport(sent)
	}
	if t.m != nil {
		r.Rows, r.Again = e.rowBytes(t.m)
	}
	for _, i := range e.Inner {
		r.Inner = append(r.Inner, t.report(i))
	}
	return r
}

// number is d as an exact integer, or otherwise its formula.
func number(d dim.Dim) (*int64, string) {
	if n, ok := d.Int(); ok {
		return &n, ""
	}
	return nil, d.String()
}

// PeakFormula is the peak as a formula: "max(a, b)" where it depends on the
// unbound symbols which op holds most, "" where it is not known.
func (f *Func) PeakFormula() string {
	if len(f.Peaks()) == 1 {
		return f.Peak().String()
	}
	parts := make([]string, len(f.Peaks()))
	for i, p := range f.Peaks() {
		parts[i] = p.String()
	}
	if parts = parts[:min(len(parts), 8)]; len(parts) == 0 {
		return ""
	}
	return "max(" + strings.Join(parts, ", ") + ")"
}

// resultNames is what o's results are called in the text: "%y", "%y, %mask",
// "%r:2"; "" for none.
func resultNames(o *ir.Op) string {
	var names []string
	for _, v := range o.Results {
		name, _, several := strings.Cut(v.Name, "#")
		if n := len(names); several && n > 0 && strings.HasPrefix(names[n-1], name+":") {
			continue
		}
		if several {
			count := 0
			for _, w := range o.Results {
				if strings.HasPrefix(w.Name, name+"#") {
					count++
				}
			}
			name += ":" + dim.Const(int64(count)).String()
		}
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}
