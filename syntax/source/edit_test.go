package source

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// TestEditEqualsNew edits texts at random: every version is what New makes of
// its text, in every unit, and the versions before it stay what they were.
func TestEditEqualsNew(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	bits := []string{"", "a", "\n", "\r", "\r\n", "é", "𝄞", "%x = dm.add\n", strings.Repeat("long ", 900), strings.Repeat("line\r\n", 9000), strings.Repeat("𝄞", pieceSize/2)}
	f := New("x", "")
	text := ""
	for range 400 {
		lo := r.IntN(len(text) + 1)
		hi := min(len(text), lo+r.IntN(1+r.IntN(1+r.IntN(80_000))))
		for lo > 0 && lo < len(text) && text[lo]&0xC0 == 0x80 {
			lo--
		}
		for hi < len(text) && text[hi]&0xC0 == 0x80 {
			hi++
		}
		in := bits[r.IntN(len(bits))]
		before := f
		f = f.Edit(lo, hi, in)
		if before.Text() != text {
			t.Fatal("the version before has changed")
		}
		text = text[:lo] + in + text[hi:]
		same(t, f, New("x", text), r)
	}
}

func same(t *testing.T, got, want *File, r *rand.Rand) {
	t.Helper()
	lo := r.IntN(want.Len() + 1)
	span := Span{lo, lo + r.IntN(100_000)}
	if got.Len() != want.Len() || got.Lines() != want.Lines() || got.Slice(span) != want.Slice(span) || r.IntN(8) == 0 && got.Text() != want.Text() {
		t.Fatalf("the texts differ: %d bytes and %d lines, want %d and %d", got.Len(), got.Lines(), want.Len(), want.Lines())
	}
	for range 20 {
		off := r.IntN(want.Len() + 1)
		for _, enc := range []Encoding{UTF8, UTF16} {
			p := want.Encode(off, enc)
			if g := got.Encode(off, enc); g != p {
				t.Fatalf("offset %d is at %v, want %v", off, g, p)
			}
			if g, w := got.Offset(p, enc), want.Offset(p, enc); g != w {
				t.Fatalf("%v is at offset %d, want %d", p, g, w)
			}
		}
		n := r.IntN(want.Lines())
		if got.Line(n) != want.Line(n) || got.LineStart(n) != want.LineStart(n) {
			t.Fatalf("line %d differs", n)
		}
	}
}
