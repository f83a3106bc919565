package format_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"dmir/syntax/format"
	"dmir/syntax/parse"
	"dmir/syntax/source"
)

// TestSpacing holds that the layout does not depend on how wide blanks and
// indentation were.
func TestSpacing(t *testing.T) {
	for i, src := range corpusFiles(t) {
		r := rand.New(rand.NewPCG(1, uint64(i)))
		text := strings.ReplaceAll(src.Text(), "\r\n", "\n")
		other := format.Respace(text, func() string { return strings.Repeat(" ", 1+r.IntN(3)) })
		if d := format.Diff(src.Path, formatted(text), formatted(other)); d != "" {
			t.Errorf("the layout depends on the width of blanks:\n%s", d)
		}
	}
}

// TestNoise damages the corpus files a little and holds that formatting stays
// harmless and idempotent on what results.
func TestNoise(t *testing.T) {
	rounds := 4
	if testing.Short() {
		rounds = 1
	}
	for i, src := range corpusFiles(t) {
		if src.Len() > 16<<10 {
			continue
		}
		for round := range rounds {
			r := rand.New(rand.NewPCG(uint64(round), uint64(i)))
			text := damage(src.Text(), r)
			t.Run(fmt.Sprintf("%s/%d", src.Path, round), func(t *testing.T) { hold(t, text) })
		}
	}
}

// damage makes one to four small changes at places where tokens begin.
func damage(text string, r *rand.Rand) string {
	extra := []string{"{", "}", "(", ")", "<", ">", "[", "]", "\"", "\n", "\n\n\n", "//", "%x", "^bb9:", ":", "=", "->", "#a<", "!t", "\n// -----\n", "{-#", "\t", "\r\n", "é"}
	for range 1 + r.IntN(4) {
		at := r.IntN(len(text) + 1)
		for at > 0 && at < len(text) && !strings.ContainsRune(" \n(){}<>[],:=%\"", rune(text[at])) {
			at--
		}
		end := min(len(text), at+r.IntN(12))
		switch r.IntN(4) {
		case 0: // lose a stretch
			text = text[:at] + text[end:]
		case 1: // write it twice
			text = text[:end] + text[at:]
		case 2: // lose a line end
			if i := strings.IndexByte(text[at:], '\n'); i >= 0 {
				text = text[:at+i] + " " + text[at+i+1:]
			}
		default:
			text = text[:at] + extra[r.IntN(len(extra))] + text[at:]
		}
	}
	return text
}

func TestDeep(t *testing.T) {
	const n = 20_000
	for _, c := range []struct{ name, text string }{
		{"regions", strings.Repeat("\"a.b\"() ({\n", n) + strings.Repeat("}) : () -> ()\n", n)},
		{"lists", "#a = " + strings.Repeat("[\n", n) + strings.Repeat("]\n", n)},
		{"open", strings.Repeat("x.y {", n)},
		{"angles", "x.y " + strings.Repeat("a<b ", n) + strings.Repeat(")", n)},
		{"bodies", "x.y " + strings.Repeat("#a<", n)},
		{"wide", "x.y" + strings.Repeat(" %abc", 200_000)},
		{"comments", strings.Repeat("// a\n", 200_000)},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := formatted(c.text)
			if len(out) > 300*len(c.text) {
				t.Errorf("%d bytes became %d", len(c.text), len(out))
			}
			if visible(out) != visible(c.text) {
				t.Error("formatting changes more than white space")
			}
		})
	}
}

func BenchmarkFile(b *testing.B) {
	var text strings.Builder
	text.WriteString("func.func @f(%x: tensor<8x512xf16>) -> tensor<8x512xf16> {\n")
	for i := range 100_000 {
		fmt.Fprintf(&text, "  %%%d = dm.add %%x, %%x {k = %d : i64} : (tensor<8x512xf16>, tensor<8x512xf16>) -> tensor<8x512xf16>\n", i, i)
	}
	text.WriteString("  return %x : tensor<8x512xf16>\n}\n")
	f := parse.File(source.New("bench.mlir", text.String()))
	b.SetBytes(int64(text.Len()))
	for b.Loop() {
		format.File(f)
	}
}
