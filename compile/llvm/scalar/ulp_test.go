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
	{"erfc", "", math.Erfc, 3},
	{"sinh", "", math.Sinh, 2},
	{"cosh", "", math.Cosh, 2},
	{"asinh", "", math.Asinh, 2},
	{"acosh", "", math.Acosh, 2},
	{"atanh", "", math.Atanh, 2},
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

// TestPow measures the errors of pow of numbers of all sizes, of moderate ones, and of all
// pairs of special ones.
func TestPow(t *testing.T) {
	var special []float32
	for _, v := range []float64{0, 1, 0.5, 2, 3, 1 << 24, 1<<24 + 2, 1e-40, 1e38, 0.75, math.Inf(1)} {
		special = append(special, float32(v), float32(-v))
	}
	special = append(special, float32(math.NaN()), float32(math.Copysign(0, -1)))
	const n = 1 << 20
	x, y := tensor.New(types.F32, 3*n), tensor.New(types.F32, 3*n)
	r := rand.New(rand.NewPCG(7, 8))
	for i := range n {
		x.F32[i], y.F32[i] = math.Float32frombits(r.Uint32()), math.Float32frombits(r.Uint32())
		x.F32[n+i], y.F32[n+i] = float32(math.Exp(r.NormFloat64()*3)), float32(r.NormFloat64()*4)
		x.F32[2*n+i], y.F32[2*n+i] = special[i%len(special)], special[i/len(special)%len(special)]
	}
	s := operation("pow", "", types.F32, types.F32, types.F32)
	got := run(t, compiled(t, []single{s})[0], s, 3*n, x, y)
	worst, at := 0.0, 0
	for i, v := range got.F32 {
		want := math.Pow(float64(x.F32[i]), float64(y.F32[i]))
		if want == 0 && math.Signbit(want) != math.Signbit(float64(v)) {
			t.Fatalf("pow of %g and %g is %g, want %g", x.F32[i], y.F32[i], v, want)
		}
		if e := ulps(v, want); e > worst {
			worst, at = e, i
		}
	}
	t.Logf("at most %.3f units, at %g and %g", worst, x.F32[at], y.F32[at])
	if !(worst <= 0.52) {
		t.Errorf("pow of %g and %g is %g, %.3f units off", x.F32[at], y.F32[at], got.F32[at], worst)
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
