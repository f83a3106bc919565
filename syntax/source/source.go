// Package source holds the text of a file and translates between byte offsets
// and the line and column conventions of terminals (1-based, byte columns
// counted in runes for people) and editors (0-based, UTF-8 or UTF-16 units).
// It is the only place that does so.
package source

import (
	"sort"
	"strings"
	"sync"
	"unicode/utf8"
)

// ByteOrderMark is what some editors put in front of UTF-8. It is no part of
// the program: it is passed over by the parser and kept by the formatter.
const ByteOrderMark = "\ufeff"

// Span is a half-open range [Start, End) of byte offsets into a File's text.
type Span struct{ Start, End int }

// Len is the number of bytes covered.
func (s Span) Len() int { return s.End - s.Start }

// Contains reports whether off lies in the span; the end counts as inside so
// that a cursor just behind a name still touches it.
func (s Span) Contains(off int) bool { return s.Start <= off && off <= s.End }

// Pos is a 0-based line and a 0-based column in the unit the caller asked for.
type Pos struct{ Line, Col int }

// Encoding is the unit in which an editor counts columns.
type Encoding int

// The two column units that the language server negotiates.
const (
	UTF16 Encoding = iota
	UTF8
)

// File is an immutable text with a name. It is safe for concurrent use.
type File struct {
	Path string // as shown to people
	Text string

	once  sync.Once
	lines []int // offset of each line's first byte

	markOnce sync.Once
	marks    []mark
}

// New returns a File over text.
func New(path, text string) *File { return &File{Path: path, Text: text} }

func (f *File) lineTable() []int {
	f.once.Do(func() {
		f.lines = make([]int, 1, 1+strings.Count(f.Text, "\n"))
		for i := 0; i < len(f.Text); i++ {
			switch f.Text[i] {
			case '\n':
				f.lines = append(f.lines, i+1)
			case '\r': // alone it ends a line too: editors count so
				if i+1 == len(f.Text) || f.Text[i+1] != '\n' {
					f.lines = append(f.lines, i+1)
				}
			}
		}
	})
	return f.lines
}

// Lines is the number of lines; a trailing newline opens an empty last line.
func (f *File) Lines() int { return len(f.lineTable()) }

// Slice is the text of s, clamped to the file.
func (f *File) Slice(s Span) string {
	lo, hi := min(max(s.Start, 0), len(f.Text)), min(max(s.End, 0), len(f.Text))
	if lo >= hi {
		return ""
	}
	return f.Text[lo:hi]
}

// Line is the text of the 0-based line n, without its line end.
func (f *File) Line(n int) string {
	t := f.lineTable()
	if n < 0 || n >= len(t) {
		return ""
	}
	end := len(f.Text)
	if n+1 < len(t) {
		end = t[n+1]
	}
	return strings.TrimSuffix(strings.TrimSuffix(f.Text[t[n]:end], "\n"), "\r")
}

// LineStart is the offset of the first byte of the 0-based line n, clamped.
func (f *File) LineStart(n int) int {
	t := f.lineTable()
	switch {
	case n < 0:
		return 0
	case n >= len(t):
		return len(f.Text)
	}
	return t[n]
}

// Pos is the 0-based line and byte column of off, clamped to the file.
func (f *File) Pos(off int) Pos {
	off = min(max(off, 0), len(f.Text))
	t := f.lineTable()
	l := sort.SearchInts(t, off+1) - 1
	return Pos{l, off - t[l]}
}

// Human is the 1-based line and 1-based column, in runes, of off: what
// terminals and people count.
func (f *File) Human(off int) (line, col int) {
	p := f.Pos(off)
	start := f.LineStart(p.Line)
	runes, _ := f.count(start, start+p.Col)
	return p.Line + 1, runes + 1
}

// Encode is the position of off in the editor's unit.
func (f *File) Encode(off int, enc Encoding) Pos {
	p := f.Pos(off)
	if enc == UTF8 {
		return p
	}
	start := f.LineStart(p.Line)
	_, p.Col = f.count(start, start+p.Col)
	return p
}

// Offset is the byte offset of an editor's position. Positions past the end of
// a line or of the file are clamped to it, as the LSP specification asks; a
// position inside a surrogate pair or a multi-byte rune goes to its start.
func (f *File) Offset(p Pos, enc Encoding) int {
	t := f.lineTable()
	switch {
	case p.Line < 0:
		return 0
	case p.Line >= len(t):
		return len(f.Text)
	}
	line := f.Line(p.Line)
	if enc == UTF8 {
		col := min(max(p.Col, 0), len(line))
		for col > 0 && col < len(line) && !utf8.RuneStart(line[col]) {
			col--
		}
		return t[p.Line] + col
	}
	units := 0
	for i, r := range line {
		n := 1
		if r >= 0x10000 {
			n = 2
		}
		if units+n > p.Col {
			return t[p.Line] + i
		}
		units += n
	}
	return t[p.Line] + len(line)
}

// mark says how many runes and UTF-16 units stand before an offset, so that a
// column far into a line of megabytes need not be counted from its start.
type mark struct{ off, runes, units int }

// stride is the distance between marks: lines are rarely as long.
const stride = 4096

// count is the number of runes and of UTF-16 units in [start, end).
func (f *File) count(start, end int) (runes, units int) {
	if end-start < stride {
		return length(f.Text[start:end])
	}
	f.markOnce.Do(func() {
		f.marks = make([]mark, 1, 1+len(f.Text)/stride)
		for last := f.marks[0]; last.off+stride < len(f.Text); {
			next := last.off + stride
			for back := 0; back < utf8.UTFMax-1 && !utf8.RuneStart(f.Text[next]); back++ {
				next--
			}
			r, u := length(f.Text[last.off:next])
			last = mark{next, last.runes + r, last.units + u}
			f.marks = append(f.marks, last)
		}
	})
	before := func(off int) mark {
		m := f.marks[sort.Search(len(f.marks), func(i int) bool { return f.marks[i].off > off })-1]
		r, u := length(f.Text[m.off:off])
		return mark{off, m.runes + r, m.units + u}
	}
	from, to := before(start), before(end)
	return to.runes - from.runes, to.units - from.units
}

func length(s string) (runes, units int) {
	for _, r := range s {
		runes++
		units++
		if r >= 0x10000 {
			units++
		}
	}
	return runes, units
}
