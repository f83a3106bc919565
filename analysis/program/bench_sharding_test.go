package program

import (
	"fmt"
	"strings"
	"testing"

	"dmir/dialect/shard"
	"dmir/syntax/parse"
	"dmir/syntax/source"
)

// layers is a function of n ops, layers of two products each, whose first argument is divided
// over data and whose weights are divided over model.
func layers(n int) string {
	const x, w = "tensor<64x512xf16>", "tensor<512x512xf16>"
	at := func(t, split string) string {
		return strings.TrimSuffix(t, ">") + ", #dm.at<split = @pod" + split + ">>"
	}
	var b strings.Builder
	b.WriteString("dm.mesh @pod {data = 4, model = 4}\n")
	fmt.Fprintf(&b, "func.func @f(%%x: %s, %%a: %s, %%b: %s) -> %s {\n", at(x, "[{data}, {}]"), at(w, "[{}, {model}]"), at(w, "[{model}, {}]"), x)
	fmt.Fprintf(&b, "  %%v0 = dm.relu %%x : (%s) -> %s\n", at(x, "[{data}, {}]"), x)
	fmt.Fprintf(&b, "  %%u = dm.relu %%v0 : (%s) -> %s\n", x, x)
	v := 0
	for i := 1; i < n; i += 4 {
		fmt.Fprintf(&b, "  %%h%d = dm.matmul %%v%d, %%a : (%s, %s) -> %s\n", i, v, x, at(w, "[{}, {model}]"), x)
		fmt.Fprintf(&b, "  %%r%d = dm.relu %%h%d : %s\n", i, i, x)
		fmt.Fprintf(&b, "  %%y%d = dm.matmul %%r%d, %%b : (%s, %s) -> %s\n", i, i, x, at(w, "[{model}, {}]"), x)
		fmt.Fprintf(&b, "  %%v%d = dm.add %%y%d, %%v%d : %s\n", i, i, v, x)
		v = i
	}
	fmt.Fprintf(&b, "  return %%v%d : %s\n}\n", v, x)
	return b.String()
}

// BenchmarkSharding is an edit of a sharding in a program of 1,000 ops, and what follows: the
// analysis, the sharding of every value, and the cost of what a device runs.
func BenchmarkSharding(b *testing.B) {
	text := layers(1000)
	for _, stage := range []string{"edit", "edit and shardings", "edit and divided cost"} {
		b.Run(stage, func(b *testing.B) {
			src := source.New("x.dmir", text)
			p := Load(src, Options{})
			if p.HasErrors() {
				b.Fatal(p.Diags[0].Message)
			}
			head := strings.Index(text, "%u = dm.relu")
			at := head + strings.Index(text[head:], "-> ") + len("-> tensor<64x512xf16")
			old, in := "", ", #dm.at<split = @pod[{data}, {}]>"
			memo := &shard.Memo{}
			b.ResetTimer()
			for range b.N {
				next := src.Edit(at, at+len(old), in)
				if !p.Splice(next, parse.Change{Start: at, End: at + len(old), Length: len(in)}) {
					b.Fatal("the change was not followed")
				}
				src, old, in = next, in, old
				f := p.Funcs[0]
				switch stage {
				case "edit and shardings":
					if v, _ := memo.Propagate(p.Modules[0], f.Func); v == nil {
						b.Fatal("nothing is divided")
					}
				case "edit and divided cost":
					if d, problem := f.Divide(); d == nil {
						b.Fatal(problem)
					}
				}
			}
		})
	}
}
