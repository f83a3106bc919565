package feature

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"dmir/analysis/cost"
	"dmir/analysis/units"
	"dmir/dialect/dim"
)

// Label is a cost for the margin of a line: "34.7µs 50MB". No figure has a space
// in it, so that no editor breaks a line there.
type Label struct {
	Time  string // "34.7µs", "" where none is taken or known
	Bytes string // "50MB", or what it depends on, "f(n)"
	Mark  string // between the two, a mark below, or ""
}

// The marks of labels: what a device has seen, and what is not of this text.
const (
	MarkMeasured = "•" // Time is measured
	MarkCounted  = "=" // Bytes are counted, as predicted
	MarkDiffers  = "≠" // Bytes are counted, others than predicted
	MarkStale    = "≈" // both are of the text without the error that it has now
)

// The widths of a label and its parts, in characters.
const (
	LabelWidth = timeWidth + 1 + bytesWidth
	timeWidth  = 6
	bytesWidth = 5
)

// String is the label without padding.
func (l Label) String() string {
	mark := l.Mark
	if mark == "" && l.Time != "" && l.Bytes != "" {
		mark = " "
	}
	return l.Time + mark + l.Bytes
}

// Column is the label with its parts at the same place in each line.
func (l Label) Column() string {
	if utf8.RuneCountInString(l.Bytes) > bytesWidth {
		return fmt.Sprintf("%*s", LabelWidth, l)
	}
	return fmt.Sprintf("%*s%1s%*s", timeWidth, l.Time, l.Mark, bytesWidth, l.Bytes)
}

func (l *Label) measured(ns float64) { l.Time, l.Mark = shortTime(ns), MarkMeasured }

func labelOf(t cost.Time, moved dim.Dim) Label {
	var l Label
	if t.Known && t.Ns > 0 {
		l.Time = shortTime(t.Ns)
	}
	if n, ok := moved.Int(); ok {
		l.Bytes = shortBytes(n)
	} else {
		l.Bytes = shortFormula(moved)
	}
	return l
}

// shortTime is a duration with three digits: "34.7µs".
func shortTime(ns float64) string {
	s := strings.ReplaceAll(units.Time(ns), " ", "")
	if utf8.RuneCountInString(s) > timeWidth { // centuries
		return fmt.Sprintf("%.0es", ns/1e9)
	}
	return s
}

// shortBytes is a size with two digits, or with three before the unit: "5.2kB",
// "50MB", "503MB".
func shortBytes(n int64) string {
	if n < 1000 {
		return fmt.Sprintf("%dB", n)
	}
	x := float64(n)
	for _, prefix := range "kMGTPE" {
		switch x /= 1000; {
		case x < 9.95:
			return fmt.Sprintf("%.1f%cB", x, prefix)
		case x < 999.5:
			return fmt.Sprintf("%.0f%cB", x, prefix)
		}
	}
	return "?"
}

// shortFormula is a size that depends on unbound symbols, or what it depends on
// where the formula is long.
func shortFormula(d dim.Dim) string {
	free := d.Symbols()
	for _, s := range []string{units.DimBytes(d), "f(" + strings.Join(free, ",") + ")"} {
		if s = strings.ReplaceAll(s, " ", "\u00a0"); utf8.RuneCountInString(s) <= LabelWidth {
			return s
		}
	}
	return fmt.Sprintf("f(%d sizes)", len(free))
}
