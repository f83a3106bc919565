package driver

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"dmir/analysis/program"
	"dmir/compile/interp"
	"dmir/dialect/types"
	"dmir/gpu/artifact"
	"dmir/syntax/source"
)

// A compiled program shares the elements of a constant with the module that it
// was compiled from.
func TestConstantIsShared(t *testing.T) {
	p := loaded(t, "x.dmir", `func.func @f(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %c = dm.constant dense<"0x0000803F000000400000404000008040"> : tensor<2x2xf32>
  %y = dm.add %x, %c : tensor<2x2xf32>
  return %y : tensor<2x2xf32>
}
`)
	m, fn := p.Modules[0], p.Modules[0].Funcs[0]
	literal := fn.Body.Ops[0].Attr("value").(*types.Dense)
	built, err := Build(t.Context(), m, fn, BuildOptions{Machine: machineFor("sm_90a")})
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(built.Buffers, func(b artifact.Buffer) bool { return b.Kind == artifact.Constant })
	if at < 0 || &built.Buffers[at].Data[0] != &literal.Bytes()[0] {
		t.Error("the program has no constant, or a copy of it")
	}
}

// BenchmarkLargeConstant is a program with a constant of 16 MB, written as the
// bytes of its elements: the text becomes ops, and those run and compile.
func BenchmarkLargeConstant(b *testing.B) {
	const elements, typ = 4 << 20, "tensor<2048x2048xf32>"
	var digits strings.Builder
	for i := range elements {
		fmt.Fprintf(&digits, "%06X3F", i)
	}
	text := fmt.Sprintf("func.func @f(%%x: %s) -> %s {\n  %%c = dm.constant dense<\"0x%s\"> : %s\n  %%y = dm.add %%x, %%c : %s\n  return %%y : %s\n}\n",
		typ, typ, digits.String(), typ, typ, typ)
	p := loaded(b, "x.dmir", text)
	m, fn := p.Modules[0], p.Modules[0].Funcs[0]
	args, err := interp.Inputs(b.Context(), fn, nil, 0, nil)
	if err != nil {
		b.Fatal(err)
	}
	for _, part := range []struct {
		name string
		do   func() error
	}{
		{"load", func() error { program.Load(source.New("x.dmir", text), program.Options{}); return nil }},
		{"run", func() error {
			_, err := interp.Run(b.Context(), m, fn, args, interp.Options{Threads: 1})
			return err
		}},
		{"compile", func() error {
			_, err := Build(b.Context(), m, fn, BuildOptions{Machine: machineFor("sm_90a")})
			return err
		}},
	} {
		b.Run(part.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := part.do(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
