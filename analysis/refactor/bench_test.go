package refactor_test

import (
	"fmt"
	"strings"
	"testing"

	"dmir/analysis/program"
	"dmir/analysis/refactor"
	"dmir/syntax/source"
)

// long is one function of n ops.
func long(n int) string {
	var b strings.Builder
	b.WriteString("func.func @f(%v0: tensor<64x64xf32>) -> tensor<64x64xf32> {\n")
	for i := range n {
		fmt.Fprintf(&b, "  %%v%d = dm.add %%v%d, %%v0 : tensor<64x64xf32>\n", i+1, i)
	}
	fmt.Fprintf(&b, "  return %%v%d : tensor<64x64xf32>\n}\n", n)
	return b.String()
}

// BenchmarkActions lists what can be done at a cursor and with ten lines in the
// middle of a function: it must cost the same in 1,000 ops as in 100,000.
func BenchmarkActions(b *testing.B) {
	for _, n := range []int{1000, 100000} {
		text := long(n)
		p := load(b, text, nil)
		start := strings.Index(text, fmt.Sprintf("%%v%d = ", n/2))
		for _, span := range spans(text, start) {
			b.Run(fmt.Sprintf("ops=%d/bytes=%d", n, span.Len()), func(b *testing.B) {
				for b.Loop() {
					if len(refactor.Actions(p, span)) == 0 {
						b.Fatal("nothing is offered")
					}
				}
			})
		}
	}
}

// BenchmarkApply makes the edits of a fusion.
func BenchmarkApply(b *testing.B) {
	for _, n := range []int{1000, 100000} {
		text := long(n)
		p := load(b, text, nil)
		span := spans(text, strings.Index(text, fmt.Sprintf("%%v%d = ", n/2)))[1]
		b.Run(fmt.Sprintf("ops=%d", n), func(b *testing.B) { fuse(b, p, span) })
	}
}

func fuse(b *testing.B, p *program.Program, span source.Span) {
	for b.Loop() {
		if _, err := refactor.Apply(p, span, "fuse"); err != nil {
			b.Fatal(err)
		}
	}
}

func spans(text string, start int) []source.Span {
	end := start
	for range 10 {
		end += strings.IndexByte(text[end:], '\n') + 1
	}
	return []source.Span{{Start: start, End: start}, {Start: start, End: end}}
}
