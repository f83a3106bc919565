package report

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"

	"dmir/analysis/cost"
	"dmir/analysis/diff"
	"dmir/analysis/machine"
	"dmir/analysis/program"
	"dmir/analysis/units"
	"dmir/dialect/dim"
)

func buildDiff(d Data, p *program.Program, function string, o Options) (Data, error) {
	old := o.Old
	b := differ{old: old, new: p}
	out := &Diff{Old: cmp.Or(o.OldName, old.Src.Path), New: p.Src.Path, Same: true, Functions: []FunctionDiff{}}
	function = strings.TrimPrefix(function, "@")
	d.Title = "What changed, on " + p.Target.Title
	var known []string
	var all, shown []*cost.Func // of the new version
	var gated []diff.Func
	for _, f := range diff.Programs(old, p) {
		x := b.function(f)
		known = append(known, x.Name)
		if f.New != nil {
			all = append(all, f.New)
			x := (&builder{p: p}).function(f.New)
			d.Functions = append(d.Functions, x)
		}
		if function != "" && function != x.Name {
			continue
		}
		gated = append(gated, f)
		if f.New != nil {
			shown = append(shown, f.New)
		}
		out.Same = out.Same && x.Status == StatusSame
		out.Functions = append(out.Functions, x)
	}
	if function != "" {
		if len(out.Functions) == 0 {
			return Data{}, &FunctionError{function, known}
		}
		d.Function = function
		d.Title = "What changed in @" + function + ", on " + p.Target.Title
	} else {
		shown = all
	}
	if o.Gate {
		out.Breaches = breaches(p, gated, o.Tolerance)
	}
	d.Diff = out
	d.Totals = sumTotals(shown, p.Target)
	return d, nil
}

// breaches is what diff.Gate says.
func breaches(p *program.Program, fs []diff.Func, tolerance float64) []Breach {
	out := []Breach{}
	for _, x := range diff.Gate(p, fs, tolerance) {
		out = append(out, Breach{
			Function: x.Func.Func.Name, Place: place(p.Src, FunctionSpan(x.Func.Func)),
			Grown: x.Grown, Open: x.Open, Message: x.Message,
		})
	}
	return out
}

// sumTotals is the sums of several functions; the peak is the highest.
func sumTotals(fs []*cost.Func, m *machine.Machine) Totals {
	if len(fs) == 1 {
		return totals(fs[0], m)
	}
	var sum Totals
	var flop, read, written, minimum dim.Dim
	t := cost.Time{Known: true}
	peak := int64(0)
	known := true
	for _, f := range fs {
		x := totals(f, m)
		flop, read, written, minimum = flop.Add(f.FLOP), read.Add(f.Read), written.Add(f.Written), minimum.Add(f.Minimum)
		ft := f.Time(m)
		t.Ns, t.Known = t.Ns+ft.Ns, t.Known && ft.Known
		sum.Ops, sum.UnknownOps = sum.Ops+x.Ops, sum.UnknownOps+x.UnknownOps
		if x.Peak == nil {
			known = false
		} else {
			peak = max(peak, *x.Peak)
		}
	}
	waste := read.Add(written).Sub(minimum)
	sum.Cost = costOf(flop, read, written, t)
	sum.Minimum, sum.MinimumLabel = number(minimum), bytesLabel(minimum)
	sum.Waste, sum.WasteLabel = number(waste), bytesLabel(waste)
	if sum.PeakLabel = unknownLabel; known {
		sum.Peak, sum.PeakLabel = &peak, units.Bytes(peak)
	}
	return sum
}

type differ struct{ old, new *program.Program }

// side is one version's quantity.
type side struct {
	there bool // the version has what it is a quantity of
	known bool
	d     dim.Dim
	label string
}

func (b *differ) function(f diff.Func) FunctionDiff {
	out := FunctionDiff{Status: StatusSame, Ops: []OpDiff{}}
	switch {
	case f.Old == nil:
		out.Status = StatusAdded
	case f.New == nil:
		out.Status = StatusRemoved
	}
	if f.Old != nil {
		out.Name, out.OldPlace = f.Old.Func.Name, place(b.old.Src, FunctionSpan(f.Old.Func))
	}
	if f.New != nil {
		if out.Name != "" && out.Name != f.New.Func.Name {
			out.OldName = out.Name
		}
		out.Name, out.Place = f.New.Func.Name, place(b.new.Src, FunctionSpan(f.New.Func))
	}
	of := func(show func(dim.Dim) string, get func(*cost.Func) dim.Dim) Delta {
		return delta(funcSide(f.Old, show, get), funcSide(f.New, show, get), show)
	}
	out.FLOP = of(flopLabel, func(f *cost.Func) dim.Dim { return f.FLOP })
	out.Read = of(bytesLabel, func(f *cost.Func) dim.Dim { return f.Read })
	out.Written = of(bytesLabel, func(f *cost.Func) dim.Dim { return f.Written })
	out.Moved = of(bytesLabel, (*cost.Func).Moved)
	out.Minimum = of(bytesLabel, func(f *cost.Func) dim.Dim { return f.Minimum })
	out.Waste = of(bytesLabel, (*cost.Func).Waste)
	out.Peak = delta(peakSide(f.Old), peakSide(f.New), bytesLabel)
	out.Time = timeDelta(funcTime(f.Old, b.old), funcTime(f.New, b.new))
	for _, o := range f.Ops {
		if x := b.op(o); x.Status != StatusSame {
			out.Ops = append(out.Ops, x)
		} else {
			out.SameOps++
		}
	}
	if out.Status == StatusSame {
		for _, d := range []Delta{out.FLOP, out.Read, out.Written, out.Minimum, out.Peak, out.Time} {
			if d.changed() {
				out.Status = StatusChanged
			}
		}
		if len(out.Ops) > 0 || out.OldName != "" {
			out.Status = StatusChanged
		}
	}
	return out
}

func (b *differ) op(o diff.Op) OpDiff {
	out := OpDiff{Status: StatusSame, Depth: o.Depth}
	switch {
	case o.Old == nil:
		out.Status = StatusAdded
	case o.New == nil:
		out.Status = StatusRemoved
	case o.Changed():
		out.Status = StatusChanged
	}
	if e := o.Old; e != nil {
		out.OldPlace = opPlace(b.old.Src, e.Op)
		out.Op, out.Result, out.Class = e.Op.Name, e.Results(), className(e)
	}
	if e := o.New; e != nil {
		if o.Old != nil && e.Op.Name != out.Op {
			out.OldOp = out.Op
		}
		if o.Old != nil && e.Results() != out.Result {
			out.OldResult = out.Result
		}
		out.Place = opPlace(b.new.Src, e.Op)
		out.Op, out.Result, out.Class = e.Op.Name, e.Results(), className(e)
	}
	if k := o.Kernel; k != nil {
		if out.Note = "into kernel at line "; o.Old == nil {
			out.Note = "from kernel at line "
		}
		out.Note += strconv.Itoa(k.Line)
	}
	of := func(show func(dim.Dim) string, get func(*cost.Entry) dim.Dim) Delta {
		return delta(entrySide(o.Old, show, get), entrySide(o.New, show, get), show)
	}
	out.FLOP = of(flopLabel, func(e *cost.Entry) dim.Dim { return e.FLOP })
	out.Read = of(bytesLabel, func(e *cost.Entry) dim.Dim { return e.Read })
	out.Written = of(bytesLabel, func(e *cost.Entry) dim.Dim { return e.Written })
	out.Moved = of(bytesLabel, (*cost.Entry).Moved)
	out.Time = timeDelta(entryTime(o.Old, b.old), entryTime(o.New, b.new))
	if out.Status == StatusSame && out.Time.changed() {
		out.Status = StatusChanged
	}
	return out
}

func funcSide(f *cost.Func, show func(dim.Dim) string, get func(*cost.Func) dim.Dim) side {
	if f == nil {
		return side{}
	}
	d := get(f)
	return side{true, true, d, show(d)}
}

func peakSide(f *cost.Func) side {
	if f == nil {
		return side{}
	}
	_, label := peak(f)
	return side{true, len(f.Peaks()) == 1, f.Peak(), label}
}

func entrySide(e *cost.Entry, show func(dim.Dim) string, get func(*cost.Entry) dim.Dim) side {
	switch {
	case e == nil:
		return side{}
	case !e.Known:
		return side{there: true, label: unknownLabel}
	}
	d := get(e)
	return side{true, true, d, show(d)}
}

// delta compares two quantities; show prints one.
func delta(old, new side, show func(dim.Dim) string) Delta {
	out := Delta{OldLabel: old.label, NewLabel: new.label}
	if old.there && old.known {
		out.Old = number(old.d)
	}
	if new.there && new.known {
		out.New = number(new.d)
	}
	switch {
	case !old.there && !new.there:
	case old.there && !old.known || new.there && !new.known:
		if old.there && new.there && old.label == new.label {
			out.ChangeLabel = "0"
		} else {
			out.ChangeLabel = unknownLabel
		}
	default:
		change := new.d.Sub(old.d)
		if new.d.Equal(old.d) {
			change = dim.Dim{} // also where 64 bits do not count either
		}
		out.Change = number(change)
		out.ChangeLabel = signed(change, show)
		if out.Change != nil && out.Old != nil {
			out.PercentLabel = percent(float64(*out.Change), float64(*out.Old))
		}
	}
	return out
}

// changed reports whether the two are, or may be, different.
func (d Delta) changed() bool { return d.ChangeLabel != "0" && d.ChangeLabel != "" }

// signed is the label of a change: "0", "+33.6 MB", "−33.6 MB", "−(4*m + 4*n) B";
// without a sign of its own where that depends on the symbols.
func signed(change dim.Dim, show func(dim.Dim) string) string {
	var zero dim.Dim
	switch {
	case change.IsZero():
		return "0"
	case change.AtLeast(zero):
		return "+" + bracket(change, show)
	case zero.AtLeast(change):
		return "−" + bracket(change.Scale(-1), show)
	}
	return show(change)
}

// bracket is the label of d, a sum in parentheses.
func bracket(d dim.Dim, show func(dim.Dim) string) string {
	label := show(d)
	if unit := strings.LastIndex(label, " "); unit > 0 && strings.Contains(label, " + ") && !strings.HasSuffix(label, "…") {
		return "(" + label[:unit] + ")" + label[unit:]
	}
	return label
}

func percent(change, old float64) string {
	switch p := units.Percent(math.Abs(change), old); {
	case change == 0 || old == 0:
		return ""
	case change < 0:
		return "−" + p
	default:
		return "+" + p
	}
}

func funcTime(f *cost.Func, p *program.Program) *cost.Time {
	if f == nil {
		return nil
	}
	t := f.Time(p.Target)
	return &t
}

func entryTime(e *cost.Entry, p *program.Program) *cost.Time {
	if e == nil {
		return nil
	}
	t := e.Time(p.Target)
	return &t
}

// timeDelta compares two times, nil where a version has none.
func timeDelta(old, new *cost.Time) Delta {
	var out Delta
	var before, after float64
	out.Old, out.OldLabel, before = timeSide(old)
	out.New, out.NewLabel, after = timeSide(new)
	switch {
	case old == nil && new == nil:
	case old != nil && !old.Known || new != nil && !new.Known:
		if out.ChangeLabel = unknownLabel; out.OldLabel == out.NewLabel {
			out.ChangeLabel = "0"
		}
	default:
		change := int64(math.Round(after)) - int64(math.Round(before))
		out.Change = &change
		switch {
		case after > before:
			out.ChangeLabel = "+" + units.Time(after-before)
		case after < before:
			out.ChangeLabel = "−" + units.Time(before-after)
		default:
			out.ChangeLabel = "0"
		}
		if old != nil {
			out.PercentLabel = percent(after-before, before)
		}
	}
	return out
}

func timeSide(t *cost.Time) (ns *int64, label string, exact float64) {
	if t == nil {
		return nil, "", 0
	}
	if t.Known {
		n := int64(math.Round(t.Ns))
		ns = &n
	}
	return ns, timeLabel(*t), t.Ns
}

// String is the change in a few words: "117 MB → 50.3 MB (−67.1 MB, −57.1 %)".
func (d Delta) String() string {
	switch {
	case d.OldLabel == "":
		return d.NewLabel
	case d.NewLabel == "":
		return d.OldLabel + " → none"
	case !d.changed():
		return d.NewLabel
	case d.PercentLabel == "":
		return fmt.Sprintf("%s → %s (%s)", d.OldLabel, d.NewLabel, d.ChangeLabel)
	}
	return fmt.Sprintf("%s → %s (%s, %s)", d.OldLabel, d.NewLabel, d.ChangeLabel, d.PercentLabel)
}
