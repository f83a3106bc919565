package driver

import (
	"fmt"
	"strings"
	"testing"

	"dmir/analysis/program"
	"dmir/compile/interp"
	"dmir/syntax/source"
)

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
