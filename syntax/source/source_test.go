package source

import (
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"
)

func TestPositions(t *testing.T) {
	f := New("x.dmir", "ab\nä€𝄞z\r\n\nlast")
	cases := []struct {
		off         int
		pos         Pos // bytes
		utf16       int // column
		line, human int
	}{
		{-5, Pos{0, 0}, 0, 1, 1},
		{0, Pos{0, 0}, 0, 1, 1},
		{2, Pos{0, 2}, 2, 1, 3},
		{3, Pos{1, 0}, 0, 2, 1},
		{5, Pos{1, 2}, 1, 2, 2},
		{8, Pos{1, 5}, 2, 2, 3},
		{12, Pos{1, 9}, 4, 2, 4},
		{13, Pos{1, 10}, 5, 2, 5},
		{15, Pos{2, 0}, 0, 3, 1},
		{16, Pos{3, 0}, 0, 4, 1},
		{20, Pos{3, 4}, 4, 4, 5},
		{99, Pos{3, 4}, 4, 4, 5},
	}
	for _, c := range cases {
		if got := f.Pos(c.off); got != c.pos {
			t.Errorf("Pos(%d) = %v, want %v", c.off, got, c.pos)
		}
		if got := f.Encode(c.off, UTF8); got != c.pos {
			t.Errorf("Encode(%d, UTF8) = %v, want %v", c.off, got, c.pos)
		}
		if got, want := f.Encode(c.off, UTF16), (Pos{c.pos.Line, c.utf16}); got != want {
			t.Errorf("Encode(%d, UTF16) = %v, want %v", c.off, got, want)
		}
		if line, col := f.Human(c.off); line != c.line || col != c.human {
			t.Errorf("Human(%d) = %d:%d, want %d:%d", c.off, line, col, c.line, c.human)
		}
	}
}

func TestOffsetClamps(t *testing.T) {
	f := New("x", "ab\nä€𝄞z\r\nend")
	cases := []struct {
		pos  Pos
		enc  Encoding
		want int
	}{
		{Pos{-1, 4}, UTF16, 0},
		{Pos{9, 0}, UTF16, f.Len()},
		{Pos{0, 99}, UTF16, 2},
		{Pos{0, -3}, UTF8, 0},
		{Pos{1, 3}, UTF16, 8},   // inside of the surrogate pair of 𝄞
		{Pos{1, 1}, UTF8, 3},    // inside of ä
		{Pos{1, 99}, UTF16, 13}, // before the carriage return
		{Pos{1, 99}, UTF8, 13},
		{Pos{2, 2}, UTF16, 17},
	}
	for _, c := range cases {
		if got := f.Offset(c.pos, c.enc); got != c.want {
			t.Errorf("Offset(%v, %d) = %d, want %d", c.pos, c.enc, got, c.want)
		}
	}
}

func TestLines(t *testing.T) {
	f := New("x", "one\r\ntwo\rthree\n\nfive\r")
	want := []string{"one", "two", "three", "", "five", ""}
	if f.Lines() != len(want) {
		t.Fatalf("%d lines, want %d", f.Lines(), len(want))
	}
	for i, w := range want {
		if got := f.Line(i); got != w {
			t.Errorf("line %d is %q, want %q", i, got, w)
		}
		if start := f.LineStart(i); !strings.HasPrefix(f.Text()[start:], w) || f.Pos(start) != (Pos{i, 0}) {
			t.Errorf("line %d starts at %d", i, start)
		}
	}
	if f.Line(-1) != "" || f.Line(99) != "" || f.LineStart(-1) != 0 || f.LineStart(99) != f.Len() {
		t.Error("lines outside of the file are not clamped")
	}
	if got := f.Slice(Span{-4, 3}); got != "one" {
		t.Errorf("Slice clamps to %q", got)
	}
	if got := f.Slice(Span{9, 3}); got != "" {
		t.Errorf("an inverted span is %q", got)
	}
}

// FuzzRoundTrip: every offset at the start of a rune survives the way to an
// editor and back.
// What reaches into a line end ends with the line's text for an editor.
func TestEncodeInLineEnd(t *testing.T) {
	f := New("x", "ab\r\nc\n")
	for _, enc := range []Encoding{UTF8, UTF16} {
		for off, want := range map[int]Pos{2: {0, 2}, 3: {0, 2}, 4: {1, 0}, 5: {1, 1}, 6: {2, 0}} {
			if got := f.Encode(off, enc); got != want {
				t.Errorf("%d is %v, want %v", off, got, want)
			}
		}
	}
}

func FuzzRoundTrip(f *testing.F) {
	f.Add("ab\nä€𝄞z\r\nend\rx")
	f.Add("\xff\xf0\x9d")
	f.Fuzz(func(t *testing.T, text string) {
		file := New("x", text)
		for off := 0; off <= len(text); off++ {
			if off < len(text) && (!utf8.RuneStart(text[off]) || text[off] == '\n' && off > 0 && text[off-1] == '\r') {
				continue
			}
			for _, enc := range []Encoding{UTF16, UTF8} {
				if got := file.Offset(file.Encode(off, enc), enc); got != off && utf8.ValidString(text) {
					t.Fatalf("%d comes back as %d in encoding %d of %q", off, got, enc, text)
				}
			}
		}
	})
}

// TestColumnsOfLongLines holds that columns far into a long line are those that
// counting from its start gives.
func TestColumnsOfLongLines(t *testing.T) {
	for _, piece := range []string{"abc", "é", "a𝔻", "\xff\x80\x80\x80\x80", "\xf0\x9d\x94"} {
		line := strings.Repeat(piece, 5000)
		text := "first\n" + line + "\n" + line
		f := New("a.dmir", text)
		for off := 6; off <= 6+len(line); off += 97 {
			head := text[6:off]
			if _, col := f.Human(off); col != utf8.RuneCountInString(head)+1 {
				t.Fatalf("%q: offset %d is column %d, want %d", piece, off, col, utf8.RuneCountInString(head)+1)
			}
			want := len(utf16.Encode([]rune(head)))
			if got := f.Encode(off, UTF16); got.Line != 1 || got.Col != want {
				t.Fatalf("%q: offset %d is at %v, want column %d", piece, off, got, want)
			}
		}
	}
}
