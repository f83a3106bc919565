package source

import (
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"
)

// pieceSize is the length of a fresh piece in bytes; editing makes pieces of up
// to twice that.
const pieceSize = 32 << 10

// piece is a part of a text that versions of the text share. Its ends lie
// neither inside of a rune nor between "\r" and "\n".
type piece struct {
	text  string
	lines []int32 // where lines begin in it: behind each line end

	once   sync.Once
	length length
}

// length is a length in units other than bytes.
type length struct{ runes, units int }

func newPiece(text string) *piece {
	p := &piece{text: text}
	if strings.IndexByte(text, '\r') >= 0 {
		for i := 0; i < len(text); i++ {
			// A "\r" alone ends a line too: editors count so.
			if text[i] == '\n' || text[i] == '\r' && (i+1 == len(text) || text[i+1] != '\n') {
				p.lines = append(p.lines, int32(i+1))
			}
		}
		return p
	}
	p.lines = make([]int32, 0, strings.Count(text, "\n"))
	for i := 0; ; {
		n := strings.IndexByte(text[i:], '\n')
		if n < 0 {
			return p
		}
		i += n + 1
		p.lines = append(p.lines, int32(i))
	}
}

// cut appends the pieces of text to to.
func cut(to []*piece, text string) []*piece {
	for len(text) > 2*pieceSize {
		n := pieceSize
		for back := 0; back < utf8.UTFMax-1 && !utf8.RuneStart(text[n]); back++ {
			n--
		}
		if text[n] == '\n' {
			n++
		}
		to = append(to, newPiece(text[:n]))
		text = text[n:]
	}
	if len(text) > 0 || len(to) == 0 {
		to = append(to, newPiece(text))
	}
	return to
}

// count sums up where the pieces and their lines begin.
func (f *File) count() {
	n := len(f.pieces)
	sums := make([]int, 2*(n+1))
	f.starts, f.lines = sums[:n+1], sums[n+1:]
	for i, p := range f.pieces {
		f.starts[i+1] = f.starts[i] + len(p.text)
		f.lines[i+1] = f.lines[i] + len(p.lines)
	}
}

// piece is the number of the piece that holds off; the end of the text lies in
// the last.
func (f *File) piece(off int) int {
	return min(sort.SearchInts(f.starts, off+1)-1, len(f.pieces)-1)
}

// lineOf is the line that off is on.
func (f *File) lineOf(off int) int {
	i := f.piece(off)
	in := int32(off - f.starts[i])
	p := f.pieces[i]
	return f.lines[i] + sort.Search(len(p.lines), func(j int) bool { return p.lines[j] > in })
}

// LineStart is the offset of the first byte of the 0-based line n, clamped.
func (f *File) LineStart(n int) int {
	switch {
	case n <= 0:
		return 0
	case n >= f.Lines():
		return f.Len()
	}
	i := sort.SearchInts(f.lines, n) - 1
	return f.starts[i] + int(f.pieces[i].lines[n-1-f.lines[i]])
}

// measure is the number of runes and of UTF-16 units in [start, end).
func (f *File) measure(start, end int) (runes, units int) {
	for i := f.piece(start); start < end; i++ {
		p, at := f.pieces[i], f.starts[i]
		stop := min(end, f.starts[i+1])
		var n length
		if start == at && stop == f.starts[i+1] {
			p.once.Do(func() { p.length = lengthOf(p.text) })
			n = p.length
		} else {
			n = lengthOf(p.text[start-at : stop-at])
		}
		runes, units = runes+n.runes, units+n.units
		start = stop
	}
	return runes, units
}

func lengthOf(s string) length {
	if n := utf8.RuneCountInString(s); n == len(s) { // bytes of ASCII, as most pieces are, or of no rune
		return length{n, n}
	}
	var n length
	for _, r := range s {
		n.runes++
		n.units++
		if r >= 0x10000 {
			n.units++
		}
	}
	return n
}

// whole is a text in one piece, joined on first use.
type whole struct {
	once sync.Once
	text atomic.Pointer[string]
}

func (w *whole) is(text string) { w.text.Store(&text) }

func (w *whole) known() (string, bool) {
	if t := w.text.Load(); t != nil {
		return *t, true
	}
	return "", false
}

func (w *whole) get(join func() string) string {
	if t, ok := w.known(); ok {
		return t
	}
	w.once.Do(func() {
		if _, ok := w.known(); !ok {
			w.is(join())
		}
	})
	return *w.text.Load()
}
