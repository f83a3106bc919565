package rates

import (
	"math"
	"strings"
	"testing"
	"time"

	"dmir/analysis/machine"
	"dmir/compile/driver"
	_ "dmir/compile/target/all"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/gpu/calibrate"
	"dmir/gpu/native"
	"dmir/testkit/need"
)

// host is this machine as it may have been measured.
func host() *machine.Machine {
	return Machine(&calibrate.Figures{
		Title: "a CPU", Threads: native.Threads(), Move: calibrate.Bandwidths{Both: 10e9, Read: 15e9}, Launch: 1e-6, Call: 1e-7, Grain: 1 << 16,
		Caches: []calibrate.Cache{{Level: 1, Size: 32 << 10, PerCore: true, Move: calibrate.Bandwidths{Both: 800e9, Read: 900e9}}, {Level: 3, Size: 32 << 20, Move: calibrate.Bandwidths{Both: 50e9, Read: 50e9}}},
		F32:    calibrate.Arithmetic{FMA: 1e12, Add: 5e11}, F64: calibrate.Arithmetic{FMA: 5e11, Add: 2e11},
	}, time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC))
}

// What is measured is a valid machine, which reads as it is written.
func TestMachine(t *testing.T) {
	m := host()
	again, err := machine.Parse(machine.LocalName, []byte(m.TOML()))
	if err != nil {
		t.Fatalf("%v\n%s", err, m.TOML())
	}
	if again.Source != "measured by dmir calibrate on 2026-11-25" || len(again.Caches) != 2 || again.Caches[0] != m.Caches[0] || again.SharedMemory != 32<<10 || again.L2 != 32<<20 {
		t.Errorf("got %+v", again)
	}
	if again.Rate(true, types.F32, "") != 1e12 || again.Rate(false, types.F32, "") != 5e11 || again.Rate(true, types.F64, "") != 5e11 {
		t.Errorf("rates of %+v", again)
	}
}

// The programs are valid, and have products and the ops that are slow.
func TestPrograms(t *testing.T) {
	for _, e := range Elems {
		seen := map[string]bool{}
		for _, b := range programs(host(), e) {
			if b.program.HasErrors() {
				t.Errorf("%s: %v\n%s", e, b.program.Diags, b.program.Src.Text())
			}
			for _, d := range b.ops {
				seen[d.Name] = true
			}
		}
		for _, name := range []string{"matmul", "exp", "gelu", "div", "softmax", "layer_norm"} {
			if !seen[name] {
				t.Errorf("%s is not measured on %s", name, e)
			}
		}
	}
}

func TestKeep(t *testing.T) {
	m := host()
	kernel := func(flop, bytes int64, µs float64) driver.Kernel {
		return driver.Kernel{FLOP: flop, ReadBytes: bytes, MeasuredNs: (µs + 1) * 1e3}
	}
	keep(m, types.F32, map[*op.Def]driver.Kernel{
		op.Lookup("dm.matmul"): kernel(8e6, 1e3, 100),
		op.Lookup("dm.add"):    kernel(1e5, 1e6, 10),
		op.Lookup("dm.sqrt"):   kernel(1e5, 1e6, 12),
		op.Lookup("dm.exp"):    kernel(1e5, 1e6, 50),
	})
	near := func(got, want float64) bool { return math.Abs(got-want) <= 1e-6*want }
	if !near(m.Rate(true, types.F32, ""), 80e9) || !near(m.OpRate("exp", types.F32), 2e9) || len(m.Ops[types.F32]) != 1 {
		t.Errorf("got %g, %v", m.Rate(true, types.F32, ""), m.Ops)
	}
	keep(m, types.F64, nil)
	if len(m.Ops) != 1 {
		t.Errorf("rates of nothing: %v", m.Ops)
	}
}

// The programs of samples are valid, with a line for each.
func TestSamples(t *testing.T) {
	for _, e := range Elems {
		for _, all := range [][]sample{opSamples(host(), e), productSamples(host(), e)} {
			text, lines := textOf(all, e)
			p := loadText(host(), text)
			if p.HasErrors() {
				t.Fatalf("%v\n%s", p.Diags, text)
			}
			for i, s := range all {
				if line := strings.Split(text, "\n")[lines[i]-1]; !strings.Contains(line, " = dm."+s.name+" ") {
					t.Errorf("%s is on line %d: %s", s.name, lines[i], line)
				}
				f := p.Funcs[0]
				got := 0
				for _, entry := range f.Entries {
					if x, ok := entry.Product(); ok && entry.Line() == lines[i] {
						x.Turned, s.product.Turned = false, false
						if got++; x != *s.product {
							t.Errorf("%v is %+v, want %+v", s.args, x, *s.product)
						}
					}
				}
				if s.product != nil && got == 0 {
					t.Errorf("%v is no product", s.args)
				}
			}
		}
	}
}

// An op has a rate where it takes longer than what it moves, a short row what is left, and what reduces rows its elements.
func TestKeepSamples(t *testing.T) {
	m := host()
	kernel := func(flop, bytes int64, µs float64) driver.Kernel {
		return driver.Kernel{FLOP: flop, ReadBytes: bytes, MeasuredNs: (µs + 1) * 1e3}
	}
	keepSamples(m, types.F32, []sample{
		{name: "transpose", results: []string{"tensor<100x100xf32>"}},
		{name: "select", results: []string{"tensor<100x100xf32>"}},
		{name: "argmax", whole: true, args: []string{"tensor<100x1000xf32>"}, results: []string{"tensor<100xi64>"}},
		{name: "reduce_window", taps: 9, results: []string{"tensor<1000xf32>"}},
		{name: "softmax", rows: 1000, results: []string{"tensor<1000x10xf32>"}},
	}, []int{2, 4, 6, 8, 10}, map[int]driver.Kernel{2: kernel(0, 80e3, 100), 4: kernel(0, 80e3, 0.08), 6: kernel(0, 0, 100), 8: kernel(0, 0, 9), 10: kernel(0, 0, 50)})
	near := func(got, want float64) bool { return math.Abs(got-want) <= 1e-6*want }
	rates := m.Ops[types.F32]
	if !near(rates["transpose"], 1e8) || rates["select"] != 0 || !near(rates["argmax"], 1e9) || !near(rates["reduce_window"], 1e9) {
		t.Errorf("rates %v", rates)
	}
	if row := m.RowTime("softmax", types.F32); !near(row, (50e-6-1e4/m.Rate(false, types.F32, ""))*float64(m.SMs)/1000) {
		t.Errorf("a row takes %g s", row)
	}
	// Of rows of two lengths follow the times of a row and of an element; of even and of uneven ones what a core loses where a length is new.
	keepSamples(m, types.F32, []sample{
		{name: "segment_attention", rows: 1000, results: []string{"tensor<1000xf32>"}},
		{name: "segment_attention", rows: 1000, longer: true, results: []string{"tensor<1000xf32>"}},
		{name: "segment_reduce", rows: 1000, results: []string{"tensor<1000xf32>"}},
		{name: "segment_reduce", rows: 1000, uneven: 800, results: []string{"tensor<1000xf32>"}},
	}, []int{2, 4, 6, 8}, map[int]driver.Kernel{2: kernel(1e6, 0, 60), 4: kernel(5e6, 0, 100), 6: kernel(3000, 0, 10), 8: kernel(3000, 0, 18)})
	cores := float64(m.SMs)
	if rate, row := m.Ops[types.F32]["segment_attention"], m.RowTime("segment_attention", types.F32); !near(rate, 1e11) || !near(row, 50e-9*cores) {
		t.Errorf("attention of short and longer rows: %g FLOP/s and %g s for each row", rate, row)
	}
	if even := m.RowTime("segment_reduce", types.F32); !near(even, (10e-6-3000/m.Rate(false, types.F32, ""))*cores/1000) || !near(m.Mispredict, 8e-6*cores/800) {
		t.Errorf("an even row takes %g s, an uneven one %g s more", even, m.Mispredict)
	}
}

// Kernels of this machine run and have rates.
func TestThisMachine(t *testing.T) {
	need.Long(t)
	_, err := native.Find(t.Context())
	need.OK(t, err)
	m := host()
	if err := Measure(t.Context(), m, types.F32); err != nil {
		t.Fatal(err)
	}
	if m.Ceilings.TensorCore[types.F32] <= 0 || len(m.Ops[types.F32]) == 0 || len(m.Rows[types.F32]) == 0 || m.Products[types.F32].Sums <= 0 {
		t.Errorf("no rates: %+v, %+v", m.Ceilings, m.Ops)
	}
}
