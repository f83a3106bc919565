// Package source holds the text of a file and translates between byte offsets
// and the line and column conventions of terminals (1-based, byte columns
// counted in runes for people) and editors (0-based, UTF-8 or UTF-16 units).
// It is the only place that does so.
package source

import (
	"strings"
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

// Pos is a 0-based line and a 0-based column in the unit that the caller chose.
type Pos struct{ Line, Col int }

// Encoding is the unit in which an editor counts columns.
type Encoding int

// The two column units that the language server negotiates.
const (
	UTF16 Encoding = iota
	UTF8
)

// File is an immutable text with a name. It is safe for concurrent use.
//
// The text is held in pieces, so that Edit gives the next version at the cost
// of the piece that changes, however long the text is.
type File struct {
	Path string // as shown to people

	pieces []*piece
	starts []int // offset of each piece, and last the length of the text
	lines  []int // lines that begin before each piece, and last their number
	whole  whole
}

// New returns a File over text.
func New(path, text string) *File {
	f := &File{Path: path, pieces: cut(nil, text)}
	f.count()
	f.whole.is(text)
	return f
}

// Edit is the File with [start, end), clamped to the text, replaced by text.
func (f *File) Edit(start, end int, text string) *File {
	start = min(max(start, 0), f.Len())
	end = min(max(end, start), f.Len())
	// The pieces that change, with a neighbour where the change touches it: the
	// line ends and runes at their outer ends are then as they were.
	lo, hi := f.piece(start), f.piece(end)
	if start == f.starts[lo] && lo > 0 {
		lo--
	}
	if end == f.starts[hi+1] && hi+1 < len(f.pieces) {
		hi++
	}
	var b strings.Builder
	b.Grow(f.starts[hi+1] - f.starts[lo] - (end - start) + len(text))
	for i := lo; i <= hi; i++ {
		p := f.pieces[i].text
		at := f.starts[i]
		b.WriteString(p[:min(max(start-at, 0), len(p))])
		if i == f.piece(start) {
			b.WriteString(text)
		}
		b.WriteString(p[min(max(end-at, 0), len(p)):])
	}
	next := &File{Path: f.Path, pieces: make([]*piece, 0, len(f.pieces)+2)}
	next.pieces = append(next.pieces, f.pieces[:lo]...)
	next.pieces = cut(next.pieces, b.String())
	next.pieces = append(next.pieces, f.pieces[hi+1:]...)
	next.count()
	return next
}

// Len is the length of the text in bytes.
func (f *File) Len() int { return f.starts[len(f.pieces)] }

// Text is the whole text. After an Edit it is put together when it is first
// asked for; Slice is cheaper for a part.
func (f *File) Text() string {
	return f.whole.get(func() string {
		var b strings.Builder
		b.Grow(f.Len())
		for _, p := range f.pieces {
			b.WriteString(p.text)
		}
		return b.String()
	})
}

// Slice is the text of s, clamped to the file.
func (f *File) Slice(s Span) string {
	lo, hi := min(max(s.Start, 0), f.Len()), min(max(s.End, 0), f.Len())
	if lo >= hi {
		return ""
	}
	if text, ok := f.whole.known(); ok {
		return text[lo:hi]
	}
	i := f.piece(lo)
	if hi <= f.starts[i+1] {
		return f.pieces[i].text[lo-f.starts[i] : hi-f.starts[i]]
	}
	var b strings.Builder
	b.Grow(hi - lo)
	for ; lo < hi; i++ {
		end := min(hi, f.starts[i+1])
		b.WriteString(f.pieces[i].text[lo-f.starts[i] : end-f.starts[i]])
		lo = end
	}
	return b.String()
}

// Lines is the number of lines; a trailing newline opens an empty last line.
func (f *File) Lines() int { return f.lines[len(f.pieces)] + 1 }

// Indent is the white space at the start of the line of off.
func (f *File) Indent(off int) string {
	line := f.Line(f.Pos(off).Line)
	return line[:len(line)-len(strings.TrimLeft(line, " \t"))]
}

// Line is the text of the 0-based line n, without its line end.
func (f *File) Line(n int) string {
	if n < 0 || n >= f.Lines() {
		return ""
	}
	end := f.Len()
	if n+1 < f.Lines() {
		end = f.LineStart(n + 1)
	}
	return strings.TrimSuffix(strings.TrimSuffix(f.Slice(Span{f.LineStart(n), end}), "\n"), "\r")
}

// Pos is the 0-based line and byte column of off, clamped to the file.
func (f *File) Pos(off int) Pos {
	off = min(max(off, 0), f.Len())
	l := f.lineOf(off)
	return Pos{l, off - f.LineStart(l)}
}

// Human is the 1-based line and 1-based column, in runes, of off: what
// terminals and people count.
func (f *File) Human(off int) (line, col int) {
	p := f.Pos(off)
	start := f.LineStart(p.Line)
	runes, _ := f.measure(start, start+p.Col)
	return p.Line + 1, runes + 1
}

// Encode is the position of off in the editor's unit.
func (f *File) Encode(off int, enc Encoding) Pos {
	if f.Slice(Span{off - 1, off + 1}) == "\r\n" {
		off-- // editors know no place between the two
	}
	p := f.Pos(off)
	if enc == UTF8 {
		return p
	}
	start := f.LineStart(p.Line)
	_, p.Col = f.measure(start, start+p.Col)
	return p
}

// Offset is the byte offset of an editor's position. Positions past the end of
// a line or of the file are clamped to it, as the LSP specification asks; a
// position inside a surrogate pair or a multi-byte rune goes to its start.
func (f *File) Offset(p Pos, enc Encoding) int {
	switch {
	case p.Line < 0:
		return 0
	case p.Line >= f.Lines():
		return f.Len()
	}
	start, line := f.LineStart(p.Line), f.Line(p.Line)
	if enc == UTF8 {
		col := min(max(p.Col, 0), len(line))
		for col > 0 && col < len(line) && !utf8.RuneStart(line[col]) {
			col--
		}
		return start + col
	}
	units := 0
	for i, r := range line {
		n := 1
		if r >= 0x10000 {
			n = 2
		}
		if units+n > p.Col {
			return start + i
		}
		units += n
	}
	return start + len(line)
}
