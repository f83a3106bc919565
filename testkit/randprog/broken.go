package randprog

import (
	"math/rand/v2"
	"strings"

	"dmir/syntax/lex"
	"dmir/syntax/source"
)

// strange are tokens for places where they are not expected.
var strange = strings.Fields(`{ } ( ) < > , : = -> 0 -1 1 2 4 9223372036854775807 1e400 -0.0 f32 i1 bf16 f8E4M3FN
	tensor<4xf32> tensor<f32> tensor<?xf32> tensor<0x3xf32> tensor<nxf32> %x %y %0 @f "" "a,b->c" "->" [] [0] [-1] [1,0]
	dm.add dm.yield return ^bb0 dm.kernel call {a=1} !t #a "dm.add" loc(unknown) none index dim true`)

// Broken returns the text of a program with one to four changes: a token removed,
// repeated or replaced, often by one of its kind, or a range removed.
// The same seed changes the same text in the same way. The result is
// mostly like a program, and sometimes valid.
func Broken(seed uint64, text string) string {
	r := rand.New(rand.NewPCG(seed, 4))
	toks := lex.Tokens(text, source.Span{End: len(text)})
	if len(toks) == 0 {
		return text
	}
	word := func(i int) string { return text[toks[i].Start:toks[i].End] }
	changed := map[int]bool{}
	for range 1 + r.IntN(4) {
		changed[r.IntN(len(toks))] = true
	}
	var out strings.Builder
	end, lost := 0, 0
	for i, t := range toks {
		gap := text[end:t.Start]
		end = t.End
		if lost > 0 {
			lost--
			continue
		}
		out.WriteString(gap)
		w := word(i)
		if changed[i] {
			switch r.IntN(8) {
			case 0:
				w = ""
			case 1:
				w += " " + w
			case 2, 3, 4:
				w = alike(r, w, len(toks), word)
			case 5:
				w = strange[r.IntN(len(strange))]
			case 6:
				w += " " + strange[r.IntN(len(strange))]
			default:
				lost = r.IntN(12)
			}
		}
		out.WriteString(w)
	}
	out.WriteString(text[end:])
	return out.String()
}

// alike is another of n words with the first letter of w, or with a digit like w; w
// itself if a few draws find none.
func alike(r *rand.Rand, w string, n int, word func(int) string) string {
	digit := func(c byte) bool { return '0' <= c && c <= '9' }
	for range 20 {
		if o := word(r.IntN(n)); o != w && (o[0] == w[0] || digit(o[0]) && digit(w[0])) {
			return o
		}
	}
	return w
}
