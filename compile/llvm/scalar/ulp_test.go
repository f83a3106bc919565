package scalar_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"dmir/compile/tensor"
	"dmir/dialect/types"
)

// fast are the functions of float with their values in double, and the most units in the
// last place that they may be away from these.
var fast = []struct {
	name, kind string
	exact      func(x float64) float64
	most       float64
}{
	{"exp", "", math.Exp, 1},
	{"expm1", "", math.Expm1, 1.5},
	{"log", "", math.Log, 1},
	{"log1p", "", math.Log1p, 1.5},
	{"tanh", "", math.Tanh, 1.5},
	{"erf", "", math.Erf, 1},
	{"logistic", "", func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }, 3},
	{"silu", "", func(x float64) float64 { return x / (1 + math.Exp(-x)) }, 3},
	{"gelu", "none", func(x float64) float64 { return x / 2 * math.Erfc(-x/math.Sqrt2) }, 5},
	{"gelu", "tanh", geluTanh, 200}, // far out, where the reference is 0,
	{"rsqrt", "", func(x float64) float64 { return 1 / math.Sqrt(x) }, 1.5},
	{"sin", "", math.Sin, 0.52},
	{"cos", "", math.Cos, 0.52},
	{"tan", "", math.Tan, 0.52},
	{"cbrt", "", math.Cbrt, 0.51},
	{"erfinv", "", math.Erfinv, 4},
}

func geluTanh(x float64) float64 {
	u := 2 * math.Sqrt(2/math.Pi) * (x + 0.044715*x*x*x)
	return x / (1 + math.Exp(-u))
}

// TestUlps measures the errors of the functions of float on a million numbers of all sizes,
// and as many of moderate ones.
func TestUlps(t *testing.T) {
	var all []single
	for _, f := range fast {
		all = append(all, operation(f.name, f.kind, types.F32, types.F32))
	}
	fs := compiled(t, all)
	const n = 1 << 20
	x := tensor.New(types.F32, 2*n)
	r := rand.New(rand.NewPCG(5, 6))
	for i := range n {
		x.F32[i] = math.Float32frombits(r.Uint32())
		x.F32[n+i] = float32(r.NormFloat64() * math.Exp(r.NormFloat64()*2))
	}
	for k, f := range fast {
		y := run(t, fs[k], all[k], 2*n, x)
		worst, at := 0.0, 0
		for i, v := range x.F32 {
			want := f.exact(float64(v))
			if e := ulps(y.F32[i], want); e > worst {
				worst, at = e, i
			}
		}
		t.Logf("%s %s: at most %.3f units, at %g", f.name, f.kind, worst, x.F32[at])
		if !(worst <= f.most) {
			t.Errorf("%s %s of %g is %g, want %g: %.3f units apart", f.name, f.kind, x.F32[at], y.F32[at], f.exact(float64(x.F32[at])), worst)
		}
	}
}

// ulps is how many units in the last place of float lie between got and want.
func ulps(got float32, want float64) float64 {
	rounded := float32(want)
	switch {
	case got == rounded || got != got && want != want:
		if got != got || math.IsInf(want, 0) || math.IsInf(float64(got), 0) {
			return 0
		}
	case got != got || want != want || math.IsInf(float64(got), 0) || math.IsInf(want, 0):
		return math.Inf(1)
	}
	exp := max(math.Ilogb(want), -126)
	return math.Abs(float64(got)-want) / math.Ldexp(1, exp-23)
}
