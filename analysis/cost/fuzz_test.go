package cost_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dmir/analysis/cost"
	"dmir/analysis/machine"
	"dmir/analysis/program"
	"dmir/dialect/op"
	"dmir/syntax/source"
)

// Whatever the text, there is a cost, it can be drawn, and nothing panics.
func FuzzCost(f *testing.F) {
	for _, d := range op.All() {
		f.Add(d.Example)
	}
	paths, _ := filepath.Glob("../../examples/*.dmir")
	for _, p := range paths {
		text, err := os.ReadFile(p)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	for _, s := range []string{
		"", "\x00", "func.func @f() { return }", "func.func @f(%x: tensor<",
		"func.func @f(%x: tensor<9223372036854775807x9223372036854775807xf64>) -> tensor<9223372036854775807x9223372036854775807xf64> {\n  %0 = dm.exp %x : tensor<9223372036854775807x9223372036854775807xf64>\n  return %0 : tensor<9223372036854775807x9223372036854775807xf64>\n}",
		"func.func @f(%x: tensor<?x?xf32>) {\n  %0 = dm.add %x : tensor<?x?xf32>\n  %1 = dm.einsum %0, %x : (tensor<?xf32>) -> ()\n  dm.kernel {\n    dm.yield %9 : f32\n  }\n}",
		"func.func @f(%x: tensor<4xf32>) {\n  %a = dm.reshape %b : (tensor<4xf32>) -> tensor<4xf32>\n  %b = dm.reshape %a : (tensor<4xf32>) -> tensor<4xf32>\n  dm.kernel { dm.yield %a : tensor<4xf32> }\n  return %a : tensor<4xf32>\n}",
		"func.func @f() { call @g() : () -> () }\nfunc.func @g() { call @f() : () -> () }",
	} {
		f.Add(s)
	}
	h200, _ := machine.Lookup("h200")
	f.Fuzz(func(t *testing.T, text string) {
		p := program.Load(source.New("fuzz.dmir", text), program.Options{Target: h200})
		for _, fn := range p.Funcs {
			fn.Unbound()
			fn.Walk(func(e *cost.Entry) { e.Time(h200) })
			if _, errs := cost.ParseBudget(fn.Func); len(errs) > 3 {
				t.Fatal(errs)
			}
		}
		cost.JSON(h200, p.Funcs)
		if err := cost.Table(io.Discard, h200, p.Funcs, cost.TableOptions{Width: len(text) % 200}); err != nil {
			t.Fatal(err)
		}
	})
}

// chain is a function of n ops, every seventh of them a kernel.
func chain(n int) string {
	var b strings.Builder
	b.WriteString("func.func @chain(%0: tensor<8x512x1024xf16>, %b: tensor<1024xf16>) -> tensor<8x512x1024xf16> {\n")
	const t = "tensor<8x512x1024xf16>"
	for i := 1; i <= n; i++ {
		if i%7 == 0 {
			fmt.Fprintf(&b, "  %%%d = dm.kernel -> %s {\n    %%k = dm.relu %%%d : %s\n    dm.yield %%k : %s\n  }\n", i, t, i-1, t, t)
		} else {
			fmt.Fprintf(&b, "  %%%d = dm.add %%%d, %%b : (%s, tensor<1024xf16>) -> %s\n", i, i-1, t, t)
		}
	}
	fmt.Fprintf(&b, "  return %%%d : %s\n}\n", n, t)
	return b.String()
}

func BenchmarkModule(b *testing.B) {
	for _, n := range []int{10_000, 100_000} {
		b.Run(fmt.Sprint(n, "ops"), func(b *testing.B) {
			p := program.Load(source.New("chain.dmir", chain(n)), program.Options{})
			b.ReportAllocs()
			for b.Loop() {
				cost.Module(p.Modules[0], nil)
			}
		})
	}
}

func BenchmarkTable(b *testing.B) {
	p := program.Load(source.New("chain.dmir", chain(10_000)), program.Options{})
	for b.Loop() {
		if err := cost.Table(io.Discard, p.Target, p.Funcs, cost.TableOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}
