package feature

import (
	"strings"
	"testing"

	"dmir/analysis/machine"
	"dmir/analysis/program"
	"dmir/dialect/types"
	"dmir/syntax/source"
)

// On a processor what waits for the memory, or the memory for it, stands before what runs beside it.
func TestTimeTermsOfProcessor(t *testing.T) {
	m := &machine.Machine{
		Name: "box", Title: "box", CPU: true, Arch: "x86-64-v4", SMs: 4, Bandwidth: 10e9, Launch: 1e-6,
		TensorCore: map[types.Elem]float64{types.F32: 400e9}, Vector: map[types.Elem]float64{types.F32: 400e9},
		Processor: machine.Processor{
			Caches:   []machine.Cache{{Name: "L2", Size: 1 << 30, Bandwidth: 200e9}},
			Ops:      map[types.Elem]map[string]float64{types.F32: {"exp": 10e9, "transpose": 2e9}},
			Products: map[types.Elem]machine.ProductRates{types.F32: {Sums: 400e9, Results: 100e9}},
		},
	}
	const x = "tensor<512x512xf32>"
	for text, want := range map[string]string{
		"dm.exp %x : " + x: "max(262 kFLOP / 10.0 GFLOP/s of exp, 2.10 MB / 200 GB/s in L2) + 1.00 µs launch",
		"dm.transpose %x, dims = [1, 0] : (" + x + ") -> " + x:            "max(262 k elements / 2.00 G/s of transpose, 2.10 MB / 200 GB/s in L2) + 1.00 µs launch",
		"dm.softmax %x, dim = 1 : " + x:                                   "1.05 MFLOP / 400 GFLOP/s + 2.10 MB / 200 GB/s in L2 + 1.00 µs launch",
		"dm.einsum \"mk,kn->mn\" %x, %x : (" + x + ", " + x + ") -> " + x: " tail + 2.10 MB / 200 GB/s in L2 + 1.00 µs launch",
	} {
		p := program.Load(source.New("in.dmir", "func.func @f(%x: "+x+") -> "+x+" {\n  %y = "+text+"\n  return %y : "+x+"\n}\n"), program.Options{Target: m})
		if p.HasErrors() {
			t.Fatal(p.Diags)
		}
		terms, ok := p.Funcs[0].Entries[0].TimeTerms(m)
		if got := timeTerms(terms, m); !ok || !strings.Contains(got, want) {
			t.Errorf("%s:\ngot  %s\nwant %s", text, got, want)
		}
	}
}
