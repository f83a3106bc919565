package machine

import (
	"math"
	"strings"
	"testing"

	"dmir/dialect/types"
)

// A ceiling stands where one was measured, the datasheet's figure elsewhere.
func TestCeilings(t *testing.T) {
	h200, _ := Lookup("h200")
	h100, _ := Lookup("h100")
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"bandwidth", h200.Reach(), 4.3e12},
		{"bandwidth of the relative", h100.Reach(), 3.0e12},
		{"products", h200.Rate(true, types.F16, ""), 788e12},
		{"products with wgmma", h200.Rate(true, types.F16, "wgmma"), 788e12},
		{"products with mma", h200.Rate(true, types.F16, "mma"), 788e12 * 0.62},
		{"products of a type that was not measured: as the relative's, which are as those of 16 bits", h200.Rate(true, types.F8E4M3FN, ""), 1979e12 * 740 / 989},
		{"products on vector units", h200.Rate(true, types.F32, "mma"), 52e12},
		{"a path of the relative", h200.Rate(true, types.F16, "attention"), 788e12 * 0.88},
		{"the rest", h200.Rate(false, types.F16, ""), 134e12 * 52 / 67},
		{"the datasheet stays", h200.Peak(true, types.F16), 989e12},
	} {
		if math.Abs(c.got/c.want-1) > 1e-9 {
			t.Errorf("%s: %g, want %g", c.name, c.got, c.want)
		}
	}
}

func TestCeilingsOfFiles(t *testing.T) {
	const ceilings = "[ceilings]\nsource = \"a measurement\"\n"
	for _, c := range []struct{ text, reach, err string }{
		{"base = \"h200\"\n", "4.3e12", ""},
		{"base = \"h200\"\nbandwidth = \"3 TB/s\"\n", "2.6875e12", ""}, // the same part
		{"base = \"h200\"\nbandwidth = \"3 TB/s\"\n" + ceilings + "bandwidth = \"2 TB/s\"\n", "2e12", ""},
		{"base = \"h100\"\n[ceilings]\nbandwidth = \"2 TB/s\"\n", "", "source is missing"},
		{"base = \"h100\"\n" + ceilings + "bandwidth = \"9 TB/s\"\n", "", "above the bandwidth"},
		{"base = \"h100\"\n" + ceilings + "tensor_core.f16 = \"9000 TFLOP/s\"\n", "", "above tensor_core.f16"},
		{"base = \"h100\"\n" + ceilings + "paths.mma = 1.5\n", "", "no part of 1"},
	} {
		m, err := Parse("mine", []byte(c.text))
		switch {
		case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
			t.Errorf("%s: %v, want %q", c.text, err, c.err)
		case c.err == "" && err != nil:
			t.Errorf("%s: %v", c.text, err)
		case c.err == "":
			want := map[string]float64{"4.3e12": 4.3e12, "2.6875e12": 2.6875e12, "2e12": 2e12}[c.reach]
			if m.Reach() != want {
				t.Errorf("%s: %g, want %g", c.text, m.Reach(), want)
			}
		}
	}
}
