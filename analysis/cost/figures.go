package cost

import (
	"math"
	"slices"

	"dmir/analysis/machine"
	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/op"
)

// Figures are what budgets limit: of a function, or of each device that runs it.
type Figures struct {
	Compiled bool    // of the function as it is compiled, not as written
	Kernels  dim.Dim // how many run
	Moved    dim.Dim
	Peaks    []dim.Dim // as those of Func
	Sent     *int64    // nil where it is not known
	Along    []Sent    // the same, by axes
	Time     Time
	// ExposedNs is the part of Time in which a collective runs and no kernel.
	ExposedNs float64
	Stages    []StageFigures // of a step in stages, by their position; nil: all devices run one program
	Shares    []Share        // of Time, of a function that is compiled for one device
}

// A Share is what a kernel, or another op of the compiled function, takes.
type Share struct {
	Ops []int // the ops of the function in the text that it was made of, by their places there
	Ns  float64
}

// Figures are those of f, or of each device that runs it, on m.
func (f *Func) Figures(m *machine.Machine) Figures {
	f = f.PerDevice()
	x := Figures{Compiled: f.planned(), Moved: f.Moved(), Peaks: f.Peaks(), Time: f.Time(m)}
	x.Kernels = launchesOf(f.Entries).n
	if sent, known := f.Sent(); known {
		n := TotalSent(sent)
		x.Sent, x.Along = &n, sent
	}
	if o := f.Overlap(m); o.Known {
		x.ExposedNs = o.ExposedNs
	}
	return x
}

// Shares are what the entries of f take on m, of a function that was compiled from source.
func (f *Func) Shares(m *machine.Machine, source *ir.Func) []Share {
	number := make(map[int]int, len(source.Body.Ops))
	for i, o := range source.Body.Ops {
		number[o.Span.Start] = i
	}
	var out []Share
	for _, e := range f.Entries {
		t := e.Time(m)
		if !t.Known || t.Ns == 0 || e.Op.Name == op.Return {
			continue
		}
		s := Share{Ns: t.Ns}
		ir.Walk([]*ir.Op{e.Op}, func(o *ir.Op) bool {
			if i, ok := number[o.Span.Start]; ok && !slices.Contains(s.Ops, i) {
				s.Ops = append(s.Ops, i)
			}
			return true
		})
		out = append(out, s)
	}
	return out
}

// of is the candidates for the figure that a limit is on, each of which must be within it.
func (x Figures) of(attr string) []dim.Dim {
	switch attr {
	case MaxMoved:
		return []dim.Dim{x.Moved}
	case MaxPeak:
		return x.Peaks
	case MaxSent:
		if x.Sent != nil {
			return []dim.Dim{dim.Const(*x.Sent)}
		}
	case MaxTime:
		if x.Time.Known {
			return []dim.Dim{dim.Const(int64(math.Round(x.Time.Ns)))}
		}
	}
	return nil
}

// Text is what the figures are of, "as compiled" or "as written".
func (x Figures) Text() string {
	if x.Compiled {
		return asCompiled
	}
	return asWritten
}

// planned reports whether f is the cost of a function that is compiled: its memory is.
func (f *Func) planned() bool {
	return f.Func != nil && f.Func.Op != nil && f.Func.Op.Int(op.WorkspaceAttr, -1) >= 0
}
