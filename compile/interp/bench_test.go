package interp

import (
	"context"
	"os"
	"strings"
	"testing"

	"dmir/dialect/ir"
)

func example(t testing.TB, name string) (*ir.Module, *ir.Func) {
	t.Helper()
	text, err := os.ReadFile("../../examples/" + name)
	if err != nil {
		t.Fatal(err)
	}
	m := read(t, string(text))
	return m, m.Funcs[0]
}

// BenchmarkBertEncoder runs the whole example, inputs not counted.
func BenchmarkBertEncoder(b *testing.B) {
	for _, name := range []string{"bert_encoder.dmir", "bert_encoder_fused.dmir"} {
		b.Run(name, func(b *testing.B) {
			m, fn := example(b, name)
			args, err := Inputs(b.Context(), fn, nil, 1, nil)
			if err != nil {
				b.Fatal(err)
			}
			var last *Result
			for b.Loop() {
				if last, err = Run(context.Background(), m, fn, args, Options{}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(last.Peak)/1e9, "GB-peak")
		})
	}
}

// BenchmarkSoftmax is memory-bound on a GPU; here the exponentials take the time.
func BenchmarkSoftmax(b *testing.B) {
	rowBench(b, "dm.softmax %x : tensor<4096x1024xf32>")
}

// BenchmarkAdd broadcasts a row.
func BenchmarkAdd(b *testing.B) {
	rowBench(b, "dm.add %x, %r : (tensor<4096x1024xf32>, tensor<1024xf32>) -> tensor<4096x1024xf32>")
}

// BenchmarkTranspose moves every element to another row.
func BenchmarkTranspose(b *testing.B) {
	rowBench(b, "dm.transpose %x, dims = [1, 0] : (tensor<4096x1024xf32>) -> tensor<1024x4096xf32>")
}

// rowBench reports the bytes of the large operand and of the result, read and
// written once, over the time.
func rowBench(b *testing.B, line string) {
	result := line[strings.LastIndex(line, "tensor<"):]
	m := read(b, "func.func @f(%x: tensor<4096x1024xf32>, %r: tensor<1024xf32>) -> "+result+" {\n  %y = "+line+"\n  return %y : "+result+"\n}")
	args, err := Inputs(b.Context(), m.Funcs[0], nil, 1, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(2 * args[0].Bytes())
	for b.Loop() {
		if _, err := Run(context.Background(), m, m.Funcs[0], args, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
