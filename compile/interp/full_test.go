package interp

import (
	"context"
	"os"
	"testing"
	"time"

	"dmir/dialect/ir"
)

func example(t testing.TB, name string) (*ir.Module, *ir.Func) {
	t.Helper()
	text, err := os.ReadFile("../../examples/" + name)
	if err != nil {
		t.Skip("examples are not here: ", err)
	}
	m := read(t, string(text))
	return m, m.Funcs[0]
}

// BenchmarkBertEncoder runs the whole example, inputs not counted.
func BenchmarkBertEncoder(b *testing.B) {
	for _, name := range []string{"bert_encoder.dmir", "bert_encoder_fused.dmir"} {
		b.Run(name, func(b *testing.B) {
			m, fn := example(b, name)
			args, err := Inputs(fn, nil, 1, nil)
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
			for _, o := range last.Ops {
				if o.Depth == 0 {
					b.Logf("%8.1f ms  %s %s", float64(o.Ns)/1e6, o.Op.Name, name)
				}
			}
		})
	}
}

var _ = time.Now
