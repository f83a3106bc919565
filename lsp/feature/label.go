package feature

import (
	"fmt"
	"math"
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
	Sent  string // "98kB" that a device sends to others, or ""
}

// The marks of labels: what a device has seen, and what is not of this text.
const (
	MarkMeasured = "•" // Time is measured
	MarkCounted  = "=" // Bytes are counted, as predicted
	MarkDiffers  = "≠" // Bytes are counted, others than predicted
	MarkStale    = "≈" // both are of the text, or by the dmir.toml, without the error that it has now
)

// The widths of a label and its parts, in characters.
const (
	LabelWidth = timeWidth + 1 + bytesWidth
	timeWidth  = units.ShortTimeWidth
	bytesWidth = units.ShortBytesWidth
)

// String is the label without padding. Where there is no place for both, it has the
// time alone.
func (l Label) String() string {
	l = l.fitting()
	mark := l.Mark
	if mark == "" && l.Time != "" && l.Bytes != "" {
		mark = " "
	}
	text := l.Time + mark + l.Bytes
	if l.Sent != "" {
		text += " ↑" + l.Sent
	}
	return text
}

// Column is the label with its parts at the same place in each line.
func (l Label) Column() string {
	l = l.fitting()
	if utf8.RuneCountInString(l.Bytes) > bytesWidth {
		return fmt.Sprintf("%*s", LabelWidth, l)
	}
	return fmt.Sprintf("%*s%1s%*s", timeWidth, l.Time, l.Mark, bytesWidth, l.Bytes)
}

func (l Label) fitting() Label {
	if l.Time != "" && utf8.RuneCountInString(l.Bytes) > bytesWidth {
		l.Bytes = ""
	}
	return l
}

func (l *Label) measured(ns float64) { l.Time, l.Mark = units.ShortTime(ns), MarkMeasured }

func labelOf(t cost.Time, moved dim.Dim) Label {
	var l Label
	if t.Known && t.Ns > 0 {
		l.Time = units.ShortTime(t.Ns)
	}
	if n, ok := moved.Int(); ok {
		l.Bytes = units.ShortBytes(n)
	} else {
		l.Bytes = shortFormula(moved)
	}
	return l
}

// shortFormula is a size that depends on unbound symbols, or what it depends on
// where the formula is long. A mark has its place before it.
func shortFormula(d dim.Dim) string {
	if d.Overflow() {
		return ">" + units.ShortBytes(math.MaxInt64)
	}
	free := d.Symbols()
	for _, s := range []string{units.DimBytes(d), "f(" + strings.Join(free, ",") + ")"} {
		if s = strings.ReplaceAll(s, " ", "\u00a0"); utf8.RuneCountInString(s) < LabelWidth {
			return s
		}
	}
	return fmt.Sprintf("f(%d sizes)", len(free))
}
