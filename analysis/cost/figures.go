package cost

import (
	"math"

	"dmir/analysis/machine"
	"dmir/dialect/dim"
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
}

// Figures are those of f, or of each device that runs it, on m.
func (f *Func) Figures(m *machine.Machine) Figures {
	f = f.PerDevice()
	x := Figures{Compiled: f.planned(), Moved: f.Moved(), Peaks: f.Peaks(), Time: f.Time(m)}
	x.Kernels, _ = f.kernels()
	if sent, known := f.Sent(); known {
		n := TotalSent(sent)
		x.Sent, x.Along = &n, sent
	}
	if o := f.Overlap(m); o.Known {
		x.ExposedNs = o.ExposedNs
	}
	return x
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
