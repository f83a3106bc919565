package program

import (
	"fmt"
	"strings"
	"testing"

	"dmir/syntax/parse"
	"dmir/syntax/source"
)

// long is a program of n ops in functions of size ops.
func long(n, size int) string {
	var b strings.Builder
	const t, w = "tensor<8x512x1024xf16>", "tensor<1024xf16>"
	for done := 0; done < n; done += size {
		fmt.Fprintf(&b, "func.func @f%d(%%v0: %s, %%w: %s) -> %s {\n", done, t, w, t)
		for i := 1; i <= size; i++ {
			fmt.Fprintf(&b, "  %%v%d = \"dm.add\"(%%v%d, %%w) : (%s, %s) -> %s loc(\"model/layer.py\":%d:17)\n", i, i-1, t, w, t, i)
		}
		fmt.Fprintf(&b, "  return %%v%d : %s\n}\n", size, t)
	}
	return b.String()
}

// BenchmarkSpliceSharding is the edit of an axis in the type of one of 1,000 ops, and of
// another part of the same type.
func BenchmarkSpliceSharding(b *testing.B) {
	const t = "tensor<8x512x1024xf16, #dm.at<split = @pod[{data}, {}, {model}]>>"
	var text strings.Builder
	fmt.Fprintf(&text, "dm.mesh @pod {data = 8, model = 4, pipe = 2}\nfunc.func @f(%%v0: %s) -> %s {\n", t, t)
	for i := range 1000 {
		fmt.Fprintf(&text, "  %%v%d = dm.relu %%v%d : %s\n", i+1, i, t)
	}
	fmt.Fprintf(&text, "  return %%v1000 : %s\n}\n", t)
	for _, edit := range []struct{ name, old, new string }{{"axis", "{data}", "{pipe}"}, {"shape", "8x512", "9x512"}} {
		b.Run(edit.name, func(b *testing.B) {
			src := source.New("x.dmir", text.String())
			p := Load(src, Options{})
			at := strings.Index(text.String(), "%v500 = ")
			at += strings.Index(text.String()[at:], edit.old)
			old, in := edit.old, edit.new
			b.ResetTimer()
			for range b.N {
				next := src.Edit(at, at+len(old), in)
				if !p.Splice(next, parse.Change{Start: at, End: at + len(old), Length: len(in)}) {
					b.Fatal("the change was not followed")
				}
				src, old, in = next, in, old
			}
		})
	}
}

// BenchmarkLoad is the analysis of a text of 100,000 ops.
func BenchmarkLoad(b *testing.B) {
	for _, size := range []int{100, 100_000} {
		b.Run(fmt.Sprintf("functions of %d", size), func(b *testing.B) {
			src := source.New("x.dmir", long(100_000, size))
			b.ReportAllocs()
			for range b.N {
				if p := Load(src, Options{}); p.HasErrors() {
					b.Fatal(p.Diags[0].Message)
				}
			}
		})
	}
}

// BenchmarkSplice is one keystroke and the analysis that follows it, in a
// program of 100,000 ops.
func BenchmarkSplice(b *testing.B) {
	for _, shape := range []struct {
		name string
		size int
	}{{"one function", 100_000}, {"functions of 100", 100}} {
		text := long(100_000, shape.size)
		for _, edit := range []struct{ name, at, old, new string }{
			{"comment", "\"dm.add\"(%v49, %w)", "\"", "  \""},
			{"attribute", "\"model/layer.py\":57:17", "\"model", "\"xmodel"},
			{"rename", "%v50 = ", "%v50", "%v50x"},
			{"type", "%v49, %w) : (tensor<8x", "tensor<8x", "tensor<9x"},
			{"line", "  %v50 = ", "", "\n"},
		} {
			b.Run(shape.name+"/"+edit.name, func(b *testing.B) {
				src := source.New("x.dmir", text)
				p := Load(src, Options{})
				at := len(text)/2 + strings.Index(text[len(text)/2:], edit.at)
				if shape.size == 100_000 {
					at = strings.Index(text, strings.NewReplacer("49", "50049", "50 ", "50050 ", "57:", "50057:").Replace(edit.at))
				}
				at += strings.Index(text[at:], edit.old)
				old, in := edit.old, edit.new
				if at < 0 {
					b.Fatal("no such place")
				}
				b.ResetTimer()
				for range b.N {
					next := src.Edit(at, at+len(old), in)
					if !p.Splice(next, parse.Change{Start: at, End: at + len(old), Length: len(in)}) {
						b.Fatal("the change was not followed")
					}
					src, old, in = next, in, old
				}
			})
		}
	}
}
