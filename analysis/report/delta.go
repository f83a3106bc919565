package report

import (
	"fmt"
	"math"
	"strings"

	"dmir/analysis/cost"
	"dmir/analysis/program"
	"dmir/analysis/units"
	"dmir/dialect/dim"
)

// side is one version's quantity.
type side struct {
	there bool // the version has what it is a quantity of
	known bool
	d     dim.Dim
	label string
}

func funcSide(f *cost.Func, show func(dim.Dim) string, get func(*cost.Func) dim.Dim) side {
	if f == nil {
		return side{}
	}
	d := get(f)
	return side{true, true, d, show(d)}
}

// sentSide is what a device sends.
func sentSide(f *cost.Func) side {
	if f == nil {
		return side{}
	}
	sent, known := f.Sent()
	d := dim.Const(cost.TotalSent(sent))
	return side{true, known, d, bytesLabel(d)}
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
