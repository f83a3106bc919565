package report

import (
	"cmp"
	"context"
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
		out.Breaches = breaches(o.Context, diff.Gate{Old: old, New: p, Tolerance: o.Tolerance, Written: o.AsWritten}, gated)
	}
	d.Diff = out
	d.Totals = sumTotals(shown, p.Target)
	return d, nil
}

// NoDiff is the data of a comparison of p that cannot be made, for a reason.
func NoDiff(p *program.Program, function, reason string) Data {
	d := Data{Kind: KindDiff, Title: "What changed, on " + p.Target.Title, File: p.Src.Path, Function: strings.TrimPrefix(function, "@"), Target: TargetOf(p.Target)}
	d.Functions = Functions(p)
	d.Diff = &Diff{Functions: []FunctionDiff{}, Reason: reason}
	return d
}

// breaches are those of g.
func breaches(ctx context.Context, g diff.Gate, fs []diff.Func) []Breach {
	out := []Breach{}
	if ctx == nil {
		ctx = context.Background()
	}
	p := g.New
	for _, x := range g.Breaches(ctx, fs) {
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
		flop, read, written, minimum = flop.Add(f.FLOP), read.Add(f.Read), written.Add(f.Written), minimum.Add(f.Minimum())
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
	out.Minimum = of(bytesLabel, func(f *cost.Func) dim.Dim { return f.Minimum() })
	out.Waste = of(bytesLabel, (*cost.Func).Waste)
	out.Peak = delta(peakSide(f.Old), peakSide(f.New), bytesLabel)
	out.Sent = delta(sentSide(f.Old), sentSide(f.New), bytesLabel)
	out.Time = timeDelta(funcTime(f.Old, b.old), funcTime(f.New, b.new))
	for _, o := range f.Ops {
		if x := b.op(o); x.Status != StatusSame {
			out.Ops = append(out.Ops, x)
		} else {
			out.SameOps++
		}
	}
	if out.Status == StatusSame {
		for _, d := range []Delta{out.FLOP, out.Read, out.Written, out.Minimum, out.Peak, out.Sent, out.Time} {
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
	if k := o.Kernel; k != nil && o.New == nil {
		out.Status, out.Place = StatusFused, opPlace(b.new.Src, o.Inner.Op)
		out.Note = "into kernel at line " + strconv.Itoa(opPlace(b.new.Src, k.Op).Line)
	} else if k != nil {
		out.Status, out.OldPlace = StatusUnfused, opPlace(b.old.Src, o.Inner.Op)
		out.Note = "from kernel at line " + strconv.Itoa(opPlace(b.old.Src, k.Op).Line)
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
