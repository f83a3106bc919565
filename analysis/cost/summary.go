package cost

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"dmir/analysis/units"
	"dmir/base/escape"
	"dmir/dialect/dim"
	"dmir/syntax/diag"
)

// summary describes what the function could do without, and what is not known.
func (p *printer) summary() {
	f := p.f
	moved := f.Moved()
	fmt.Fprintln(p.w)
	p.field("moved", units.DimBytes(moved))
	if near, again := f.Rows(p.m); near > 0 {
		where := "L2"
		if p.m.CPU {
			where = "caches"
		}
		text := units.Bytes(near) + "  rows that are read by number, from " + where
		if again > 0 {
			text += ", and " + units.Bytes(again) + " of them from the memory again"
		}
		p.field("rows", text)
	}
	what := "its used arguments and its results"
	if f.HasData() {
		what = "its used arguments, its constants and its results"
	}
	p.field("minimum", units.DimBytes(f.Minimum())+"  "+what)
	p.field("waste", p.waste())
	peak := units.DimBytes(f.Peak())
	switch {
	case len(f.Peaks()) == 0:
		peak = PeakNotKnown
	case len(f.Peaks()) > 1:
		peak = f.PeakFormula() + " B"
	}
	p.field("peak", peak)
	for _, text := range f.counted() {
		p.field("counted", text)
	}
	p.devices()
	if text := f.Launches(p.m); text != "" {
		p.field("launches", text)
	}
	if n, ok := f.FLOP.Int(); ok {
		if b, ok := moved.Int(); ok && b > 0 && n > 0 {
			escape.Fprintf(p.w, "  intensity  %s\n", units.Intensity(float64(n)/float64(b)))
		}
	}
	if names := f.Unbound(); len(names) > 0 {
		named := slices.DeleteFunc(slices.Clone(names), func(s string) bool { return dim.Sym(s).IsUnnamed() })
		if len(named) < len(names) {
			escape.Fprintf(p.w, "  depends on sizes without a name; name them: ?xf32, #dm.at<dims = [n]>, or nnz = e of a format\n")
		}
		if shown := named[:min(len(named), 8)]; len(shown) > 0 {
			escape.Fprintf(p.w, "  depends on %s; give sizes with --bind %s\n", strings.Join(shown, ", "), strings.Join(bindings(shown), ","))
		}
	}
	if f.Unknown > 0 {
		escape.Fprintf(p.w, "  not counted: %s that dmir does not know\n", ops(f.Unknown))
	}
	if p.o.Measured != nil && p.o.Device != "" {
		escape.Fprintf(p.w, "  measured on %s", p.o.Device)
		if p.m != nil {
			escape.Fprintf(p.w, ", predicted for %s", p.m.Name)
		}
		fmt.Fprintln(p.w)
	}
}

// compiled describes the function as it is compiled.
func (p *printer) compiled(x Figures, why error) {
	if why != nil {
		p.field("compiled", "not known: "+why.Error())
		return
	}
	text := units.DimBytes(x.Moved) + " moved"
	if x.Time.Known && p.m != nil {
		text += ", " + units.Time(x.Time.Ns)
	}
	if len(x.Peaks) == 1 {
		text += ", " + units.DimBytes(x.Peaks[0]) + " of memory"
	}
	if x.Sent != nil && p.f.body != nil && (p.f.body.in.mesh != nil || x.Stages != nil) {
		text += ", " + units.Bytes(*x.Sent) + " sent"
	}
	if x.Stages == nil {
		p.field("compiled", text)
		return
	}
	axis := p.f.pipeline()
	p.field("compiled", fmt.Sprintf("in %s along %s; of each at most %s", diag.Count(len(x.Stages), "part"), axis, text))
	for i, s := range x.Stages {
		text := units.DimBytes(s.Moved) + " moved, " + units.DimBytes(s.Peaks[0]) + " of memory"
		if x.Time.Known {
			text = units.Time(s.BusyNs) + " of kernels, waits " + units.Time(s.WaitNs) + "; " + text
		}
		if s.Sent != nil {
			text += ", " + units.Bytes(*s.Sent) + " sent"
		}
		p.field(fmt.Sprintf("%s %d", axis, i), text)
	}
}

// devices describes the mesh and what its devices send to each other.
func (p *printer) devices() {
	f := p.f
	on := f.Mesh()
	if n := f.Microbatches(); n > 1 && (f.body == nil || f.body.in.mesh == nil) {
		p.field("batch", fmt.Sprintf("in %d micro-batches, one after the other", n))
		if _, problem := f.Divide(); problem != nil && on == nil {
			p.field("", "not cut, the figures are of the whole batch: "+problem.Msg)
		}
	}
	if on == nil {
		return
	}
	devices := fmt.Sprintf("%d  @%s: %s", on.Devices(), on.Name, on)
	switch axis := f.pipeline(); {
	case axis != "":
		devices += "; the figures are of one that runs all stages along " + axis
	case f.body.in.mesh != nil:
		devices += "; the figures are of each"
	}
	p.field("devices", devices)
	if f.body.in.mesh == nil {
		if _, problem := f.Divide(); problem != nil {
			p.field("", "not divided, the figures are of one device: "+problem.Msg)
		}
		return
	}
	sent, known := f.Sent()
	text := SentText(sent)
	if !known {
		text = "not known"
	}
	p.field("sent", text)
	if p.m == nil || len(sent) == 0 {
		return
	}
	switch o := f.Overlap(p.m); {
	case o.Known:
		p.field("exposed", fmt.Sprintf("%s of %s of communication, %s of the time", units.Time(o.ExposedNs), units.Time(o.Comm), units.Percent(o.ExposedNs, o.Ns)))
	case f.NoLinks(p.m) != nil:
		p.field("exposed", "not known: "+f.NoLinks(p.m).Error())
	}
}

// SentText is what a device sends by axes: "2.10 MB along data, 524 kB along model".
func SentText(sent []Sent) string {
	parts := make([]string, len(sent))
	for i, s := range sent {
		parts[i] = units.Bytes(s.Bytes) + " along " + s.Axes
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, ", ")
}

func (p *printer) waste() string {
	if p.f.Unknown > 0 {
		return "not known"
	}
	waste := p.f.Waste()
	text := units.DimBytes(waste)
	if w, ok := waste.Int(); ok {
		if n, ok := p.f.Moved().Int(); ok && n > 0 {
			text += "  " + units.Percent(float64(w), float64(n)) + " of what is moved"
		}
	}
	return text
}

// PeakNotKnown is the text for a function without Peaks.
const PeakNotKnown = "not known: too many unbound sizes"

// widestField is how many characters a line of a field has, where the terminal has no
// limit.
const widestField = 160

// field prints a figure behind its name, on several lines if it is a long formula.
func (p *printer) field(name, text string) {
	width := widestField
	if p.o.Width > 0 {
		width = max(p.o.Width-13, 40)
	}
	if utf8.RuneCountInString(text) <= width {
		escape.Fprintf(p.w, "  %-11s%s\n", name, text)
		return
	}
	for _, line := range units.Wrap(text, width) {
		escape.Fprintf(p.w, "  %-11s%s\n", name, line)
		name = ""
	}
}

func ops(n int) string {
	if n == 1 {
		return "1 op"
	}
	return fmt.Sprintf("%d ops", n)
}

func bindings(names []string) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = n + "=…"
	}
	return out
}
