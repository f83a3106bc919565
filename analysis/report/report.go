// Package report makes the data of the panels: the movement graph, the
// roofline, the memory plan, the pieces that the devices of a mesh have and the
// timeline of one of them, and the difference of two versions. It is plain
// data, the same for a page in a file, for an editor's web view and for one in
// a browser; package page draws it.
//
// Numbers are exact integers with their unit in the field's name, as in the
// JSON of dmir cost, and null where they depend on an unbound symbol or are not
// known; the label beside a number is always there, and is the formula where
// the number is null ("4*n B", "?" where nothing is known).
package report

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"dmir/analysis/attribution"
	"dmir/analysis/cost"
	"dmir/analysis/machine"
	"dmir/analysis/program"
	"dmir/analysis/units"
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// Options are what Build needs beside the program.
type Options struct {
	Old       *program.Program // the version that a diff compares with; nil elsewhere
	OldName   string           // what to call it; "" is the path of its text
	Gate      bool             // a diff lists what is beyond the old version and beyond budgets
	Tolerance float64          // of the gate: how much more than before is allowed, as a share of it
	AsWritten bool             // the gate compares the versions as written, not as compiled
	Context   context.Context  // ends what takes long, the gate's plans; nil: nothing does
	Undivided bool             // the figures are of the undivided function, not of each device
	Both      bool             // the panel of each device has that of the undivided function as well

	// Patterns gives the pictures of the sparse tensors of a function of the program; nil: there are none.
	Patterns func(fn *ir.Func) []PatternAt

	// Sources are the files that the program was traced from; nil: what its locations say of them.
	Sources *attribution.Sources
}

// ErrKind is that there is no panel of a kind, or not from what was given.
var ErrKind = errors.New("no such panel")

// kindError is an ErrKind in its own words.
type kindError string

func (e kindError) Error() string { return string(e) }

func (kindError) Is(target error) bool { return target == ErrKind }

// FunctionError is that a program has no function to show.
type FunctionError struct {
	Name  string   // that was requested, "" for any
	Known []string // the functions there are
}

func (e *FunctionError) Error() string {
	switch {
	case len(e.Known) == 0:
		return "there is no function with a body"
	case len(e.Known) > 8:
		return fmt.Sprintf("there is no function @%s with a body among %d", e.Name, len(e.Known))
	}
	return fmt.Sprintf("there is no function @%s with a body; there are @%s", e.Name, strings.Join(e.Known, ", @"))
}

// Build is the data of a panel of the kind about a function of p (its name
// without "@"). Where function is "" it is @main, else the first that is not
// private, else the first; for a diff it is all of them. The data holds on to
// nothing of p. Errors are ErrKind and *FunctionError.
func Build(p *program.Program, kind, function string, o Options) (Data, error) {
	d := Data{Kind: kind, File: p.Src.Path, Functions: []Function{}, Target: TargetOf(p.Target)}
	if kind == KindDiff {
		if o.Old == nil {
			return Data{}, kindError("a diff needs a version to compare with")
		}
		return buildDiff(d, p, function, o)
	}
	if !slices.Contains(Kinds, kind) {
		return Data{}, kindError(fmt.Sprintf("there is no panel %q; there are %s, %s", kind, strings.Join(Kinds, ", "), KindDiff))
	}
	f, err := choose(p, function)
	if err != nil {
		return Data{}, err
	}
	ofDevices := slices.Contains(deviceKinds, kind)
	if ofDevices && f.Mesh() == nil {
		return Data{}, kindError(fmt.Sprintf("@%s runs on one device and has no %s; divide it over a mesh, for example as dmir plan proposes", f.Func.Name, kind))
	}
	if kind == KindPattern && !hasPatterns(f) {
		return Data{}, kindError(fmt.Sprintf("@%s has no sparse argument, and packs no sparse constant", f.Func.Name))
	}
	b := builder{p: p, f: f, undivided: o.Undivided && !ofDevices}
	d.Function = f.Func.Name
	d.Title = "@" + f.Func.Name + " on " + p.Target.Title
	if d.Devices = b.devices(); d.Devices != nil && !ofDevices {
		d.Title += ", " + d.Devices.Label
	}
	shown := f
	if !b.undivided {
		shown = f.PerDevice()
		if divided, _ := f.Divide(); divided != nil && !ofDevices {
			b.f = divided.Device
		}
	}
	b.total = shown.Time(p.Target)
	d.Groups = b.group(shown, o.Sources)
	d.Totals = totals(shown, p.Target)
	d.Unbound = f.Unbound()
	d.Functions = b.functions(kind)
	if o.Both && d.Devices != nil && d.Devices.Each && !ofDevices {
		whole, err := Build(p, kind, function, Options{Undivided: true, Sources: o.Sources, Patterns: o.Patterns})
		if err != nil {
			return Data{}, err
		}
		d.Undivided = &whole
	}
	switch kind {
	case KindGraph:
		d.Graph = b.graph()
	case KindRoofline:
		d.Roofline = b.roofline()
	case KindMemory:
		d.Memory = b.memory()
	case KindMesh:
		d.Mesh = b.mesh()
	case KindTimeline:
		d.Timeline = b.timeline()
	case KindPattern:
		if o.Patterns != nil {
			d.Patterns = b.patterns(o.Patterns(f.Func))
		}
	}
	return d, nil
}

// KindsOf are those of Kinds that there are of the function that Build takes for a name: those
// that need no mesh and no sparse tensor, where the program has no such function.
func KindsOf(p *program.Program, function string) []string {
	f, err := choose(p, function)
	return slices.DeleteFunc(slices.Clone(Kinds), func(kind string) bool {
		return slices.Contains(deviceKinds, kind) && (err != nil || f.Mesh() == nil) || kind == KindPattern && (err != nil || !hasPatterns(f))
	})
}

// Choose returns the function that Build takes for a name.
func Choose(p *program.Program, name string) (string, error) {
	f, err := choose(p, name)
	if err != nil {
		return "", err
	}
	return f.Func.Name, nil
}

// choose is the cost of the function that is meant.
func choose(p *program.Program, name string) (*cost.Func, error) {
	if name = strings.TrimPrefix(name, "@"); name != "" {
		if f := p.Func(name); f != nil {
			return f, nil
		}
	} else if f := p.Func("main"); f != nil {
		return f, nil
	} else if i := slices.IndexFunc(p.Funcs, func(f *cost.Func) bool { return !f.Func.Private }); i >= 0 {
		return p.Funcs[i], nil
	} else if len(p.Funcs) > 0 {
		return p.Funcs[0], nil
	}
	e := &FunctionError{Name: name}
	for _, f := range p.Funcs {
		e.Known = append(e.Known, f.Func.Name)
	}
	return nil, e
}

// builder makes the panels of one function.
type builder struct {
	p         *program.Program
	f         *cost.Func // what is shown: the function of the text, or what each device runs
	total     cost.Time
	undivided bool
	groups    groups
}

// devices is what of the devices of b's function the figures are of; nil where the text divides nothing.
func (b *builder) devices() *Devices {
	on, batches := b.f.Mesh(), b.f.Microbatches()
	if on == nil && batches < 2 {
		return nil
	}
	d := &Devices{Count: 1, Each: true}
	var parts []string
	if on != nil {
		d.Count = on.Devices()
		parts = append(parts, fmt.Sprintf("each of %d devices", d.Count))
	}
	if batches > 1 {
		parts = append(parts, fmt.Sprintf("in %d micro-batches", batches))
	}
	d.Label = strings.Join(parts, ", ")
	_, problem := b.f.Divide()
	if problem != nil {
		d.Reason = problem.Msg
	}
	if b.undivided || problem != nil {
		d.Each, d.Label = false, "undivided"
	}
	return d
}

// Functions are those of a program that a panel could show.
func Functions(p *program.Program) []Function { return (&builder{p: p}).functions("") }

// functions are those of which there is a panel of the kind, with the figures that it shows.
func (b *builder) functions(kind string) []Function {
	out := []Function{}
	for _, f := range b.p.Funcs {
		switch divided := f.Mesh() != nil; {
		case !divided && slices.Contains(deviceKinds, kind), kind == KindPattern && !hasPatterns(f):
		case !divided || b.undivided:
			out = append(out, b.function(f))
		case f.Tried():
			out = append(out, b.function(f.PerDevice()))
		default: // to divide all of them would take too long
			out = append(out, Function{Name: f.Func.Name, Place: place(b.p.Src, FunctionSpan(f.Func))})
		}
	}
	return out
}

func (b *builder) function(f *cost.Func) Function {
	return Function{
		Name: f.Func.Name, Place: place(b.p.Src, FunctionSpan(f.Func)),
		MovedLabel: bytesLabel(f.Moved()), TimeLabel: timeLabel(f.Time(b.p.Target)),
	}
}

// TargetOf is the data of a machine.
func TargetOf(m *machine.Machine) Target {
	t := Target{
		Name: m.Name, Title: m.Title, Memory: m.Memory, Peaks: []Peak{},
		Bandwidth: m.Bandwidth, BandwidthLabel: units.Bandwidth(m.Bandwidth),
		Reach: m.Reach(), ReachLabel: cost.Reached(m.Reach(), m.Bandwidth, units.Bandwidth),
	}
	if m.Memory > 0 {
		t.MemoryLabel = units.Bytes(m.Memory)
	}
	for _, u := range []struct {
		name  string
		rates map[types.Elem]float64
	}{{contractionUnit(m), m.TensorCore}, {unitVector, m.Vector}} {
		for e, rate := range maps.All(u.rates) {
			t.Peaks = append(t.Peaks, Peak{u.name, e.String(), rate, units.Rate(rate)})
		}
	}
	slices.SortFunc(t.Peaks, func(a, b Peak) int {
		return cmp.Or(cmp.Compare(b.Rate, a.Rate), cmp.Compare(a.Unit, b.Unit), cmp.Compare(a.Elem, b.Elem))
	})
	return t
}

// The names of the units.
const (
	unitTensor  = "tensor core"
	unitProduct = "contraction" // what processors compute contractions on, their vector units
	unitVector  = "vector"
)

// contractionUnit is what contractions run on where m has a rate of its own for them.
func contractionUnit(m *machine.Machine) string {
	if m.CPU {
		return unitProduct
	}
	return unitTensor
}

func totals(f *cost.Func, m *machine.Machine) Totals {
	t := Totals{
		Cost:         costOf(f.FLOP, f.Read, f.Written, f.Time(m)),
		MinimumLabel: bytesLabel(f.Minimum()), WasteLabel: bytesLabel(f.Waste()),
		UnknownOps: f.Unknown,
	}
	t.Minimum, t.Waste = number(f.Minimum()), number(f.Waste())
	t.Peak, t.PeakLabel = peak(f)
	if f.Unknown > 0 {
		t.Waste, t.WasteLabel = nil, unknownLabel
	}
	f.Walk(func(*cost.Entry) { t.Ops++ })
	return t
}

// peak is the largest number of bytes live at once.
func peak(f *cost.Func) (*int64, string) {
	switch len(f.Peaks()) {
	case 0:
		return nil, cost.PeakNotKnown
	case 1:
		return number(f.Peak()), bytesLabel(f.Peak())
	}
	return nil, cut(f.PeakFormula(), widestLabel) + " B"
}
