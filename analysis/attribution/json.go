package attribution

import (
	"cmp"
	"fmt"
	"slices"

	"dmir/dialect/loc"
)

// Report is the JSON of a listing. Figures are whole numbers, and those of the rows add up to the total in each.
type Report struct {
	File      string           `json:"file"`
	Target    string           `json:"target"`
	By        By               `json:"by"`
	Level     string           `json:"level"` // written or planned
	Trace     string           `json:"trace,omitempty"`
	Functions []FunctionReport `json:"functions"`
}

// FunctionReport is a function.
type FunctionReport struct {
	Name    string    `json:"name"`
	Total   Figures   `json:"total"`
	Peak    *int64    `json:"peak_bytes,omitempty"`
	Given   *int64    `json:"arguments_bytes,omitempty"` // of the peak, those of arguments
	Rows    []RowJSON `json:"rows"`
	LeftOut int       `json:"rows_left_out,omitempty"` // by --top
}

// Figures are an Amount.
type Figures struct {
	TimeNs  int64 `json:"time_ns"`
	FLOP    int64 `json:"flop"`
	Read    int64 `json:"read_bytes"`
	Written int64 `json:"written_bytes"`
	Sent    int64 `json:"sent_bytes"`
}

// RowJSON is a line, a function or a module.
type RowJSON struct {
	File     string `json:"file,omitempty"`
	Line     int    `json:"line,omitempty"`
	Function string `json:"function,omitempty"`
	Text     string `json:"text,omitempty"`
	Path     string `json:"path,omitempty"`
	Class    string `json:"class,omitempty"`
	Figures
	Share   float64            `json:"share"` // of the time
	Phases  map[string]Figures `json:"phases"`
	Ops     int                `json:"ops"`
	Kernels int                `json:"kernels"`
	Shared  bool               `json:"shared,omitempty"`
	Held    int64              `json:"held_bytes,omitempty"`
	Library []FrameJSON        `json:"library,omitempty"` // frames inside of libraries
	Also    []string           `json:"also,omitempty"`    // other lines whose ops became part of this one's: "model.py:4"
}

// FrameJSON is a place in a library that a line's ops are in.
type FrameJSON struct {
	File     string `json:"file"`
	Line     int    `json:"line"`
	Function string `json:"function"`
	TimeNs   int64  `json:"time_ns"`
}

func figures(a Amount) Figures { return Figures{a.TimeNs, a.FLOP, a.Read, a.Written, a.Sent} }

// JSON is l as data.
func (l *Listing) JSON(file, target, level string) Report {
	r := Report{File: file, Target: target, By: l.By, Level: level, Functions: []FunctionReport{}}
	if l.Sources.Trace != nil {
		r.Trace = l.Sources.Trace.Name
	}
	for _, f := range l.Functions {
		x := FunctionReport{Name: f.Name, Total: figures(f.Total), Rows: []RowJSON{}}
		if f.Held != nil {
			x.Peak, x.Given = &f.Peak, &f.Given
		}
		rows := f.Rows(l.By, l.Sources)
		if l.Top > 0 && len(rows) > l.Top {
			x.LeftOut = len(rows) - l.Top
			rows = rows[:l.Top]
		}
		for _, row := range rows {
			x.Rows = append(x.Rows, l.row(f, row))
		}
		r.Functions = append(r.Functions, x)
	}
	return r
}

func (l *Listing) row(f *Function, r *Row) RowJSON {
	out := RowJSON{
		File: r.Name(), Line: r.Line, Function: r.Function, Path: r.Path, Class: r.Class, Figures: figures(r.Amount),
		Phases: map[string]Figures{}, Ops: r.Ops, Kernels: r.Steps, Shared: r.Shared, Held: r.Held,
	}
	if l.By == ByLine {
		out.Text, out.Also = r.File.Text(r.Line), r.Also(l.Sources)
		for _, x := range r.Library(l.Sources) {
			out.Library = append(out.Library, FrameJSON{l.Sources.File(x.Frame.File).Path, x.Frame.Line, x.Frame.Function, x.TimeNs})
		}
	}
	if f.Total.TimeNs > 0 {
		out.Share = float64(r.TimeNs) / float64(f.Total.TimeNs)
	}
	for p, a := range r.Phases {
		if a != (Amount{}) {
			out.Phases[Phase(p).String()] = figures(a)
		}
	}
	return out
}

// Also are the other lines whose ops became part of those of r without adding to what they cost, "model.py:4", in order.
func (r *Row) Also(s *Sources) []string {
	type at struct {
		file *File
		line int
	}
	seen := map[at]bool{{r.File, r.Line}: true}
	var places []at
	for _, x := range r.Shares {
		for _, l := range x.Also {
			p := s.Place(l)
			k := at{p.File, p.Frame.Line}
			if p.File != nil && p.File.Own && !seen[k] {
				seen[k] = true
				places = append(places, k)
			}
		}
	}
	slices.SortFunc(places, func(a, b at) int { return cmp.Or(cmp.Compare(a.file.Path, b.file.Path), cmp.Compare(a.line, b.line)) })
	var out []string
	for _, p := range places {
		out = append(out, fmt.Sprintf("%s:%d", p.file.Path, p.line))
	}
	return out
}

// Inside is a place in a library and what is due to it.
type Inside struct {
	Frame loc.Frame
	Amount
}

// Library is where in libraries the ops of a line are, by the innermost frame, the longest first; none for what is in the line itself.
func (r *Row) Library(s *Sources) []Inside {
	type at struct {
		file string
		line int
	}
	by := map[at]*Inside{}
	for _, x := range r.Shares {
		p := s.Place(x.Loc)
		if len(p.Trace.Frames) == 0 || p.Trace.Frames[0] == p.Frame {
			continue
		}
		in := p.Trace.Frames[0]
		k := at{in.File, in.Line}
		if by[k] == nil {
			by[k] = &Inside{Frame: in}
		}
		by[k].Amount = by[k].Plus(x.Amount)
	}
	var out []Inside
	for _, i := range by {
		out = append(out, *i)
	}
	slices.SortFunc(out, func(a, b Inside) int {
		return cmp.Or(cmp.Compare(b.TimeNs, a.TimeNs), cmp.Compare(a.Frame.File, b.Frame.File), cmp.Compare(a.Frame.Line, b.Frame.Line))
	})
	return out
}
