package emulator

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"dmir/compile/tensor"
	"dmir/gpu/artifact"
)

func itoa(n int) string { return strconv.Itoa(n) }

// mathFunctions are the functions of math.cuh of one and two numbers, and their references.
var mathFunctions = []struct {
	call string
	f    func(x, y float64) float64
}{
	{"dm::exp(x)", func(x, _ float64) float64 { return math.Exp(x) }},
	{"dm::log(x)", func(x, _ float64) float64 { return math.Log(x) }},
	{"dm::log1p(x)", func(x, _ float64) float64 { return math.Log1p(x) }},
	{"dm::expm1(x)", func(x, _ float64) float64 { return math.Expm1(x) }},
	{"dm::sqrt(x)", func(x, _ float64) float64 { return math.Sqrt(x) }},
	{"dm::rsqrt(x)", func(x, _ float64) float64 { return 1 / math.Sqrt(x) }},
	{"dm::cbrt(x)", func(x, _ float64) float64 { return math.Cbrt(x) }},
	{"dm::tanh(x)", func(x, _ float64) float64 { return math.Tanh(x) }},
	{"dm::erf(x)", func(x, _ float64) float64 { return math.Erf(x) }},
	{"dm::erfc(x)", func(x, _ float64) float64 { return math.Erfc(x) }},
	{"dm::sinh(x)", func(x, _ float64) float64 { return math.Sinh(x) }},
	{"dm::cosh(x)", func(x, _ float64) float64 { return math.Cosh(x) }},
	{"dm::asinh(x)", func(x, _ float64) float64 { return math.Asinh(x) }},
	{"dm::acosh(x)", func(x, _ float64) float64 { return math.Acosh(x) }},
	{"dm::atanh(x)", func(x, _ float64) float64 { return math.Atanh(x) }},
	{"dm::erfinv(x)", func(x, _ float64) float64 { return math.Erfinv(x) }},
	{"dm::cos(x)", func(x, _ float64) float64 { return math.Cos(x) }},
	{"dm::sin(x)", func(x, _ float64) float64 { return math.Sin(x) }},
	{"dm::tan(x)", func(x, _ float64) float64 { return math.Tan(x) }},
	{"dm::floor(x)", func(x, _ float64) float64 { return math.Floor(x) }},
	{"dm::ceil(x)", func(x, _ float64) float64 { return math.Ceil(x) }},
	{"dm::round(x)", func(x, _ float64) float64 { return math.RoundToEven(x) }},
	{"dm::round_half_away(x)", func(x, _ float64) float64 { return math.Round(x) }},
	{"dm::logistic(x)", func(x, _ float64) float64 { return 1 / (1 + math.Exp(-x)) }},
	{"dm::abs(x)", func(x, _ float64) float64 { return math.Abs(x) }},
	{"dm::sign(x)", func(x, _ float64) float64 {
		if x != x || x == 0 {
			return x
		}
		return math.Copysign(1, x)
	}},
	{"dm::pow(x, y)", math.Pow},
	{"dm::rem(x, y)", math.Mod},
	{"dm::atan2(x, y)", math.Atan2},
	{"dm::max(x, y)", func(x, y float64) float64 { return max(x, y) }},
	{"dm::min(x, y)", func(x, y float64) float64 { return min(x, y) }},
	{"dm::div(x, y)", func(x, y float64) float64 { return x / y }},
}

// Every function agrees with the reference's to a few units in the last place,
// and exactly where the result is special.
func TestMath(t *testing.T) {
	needCompiler(t)
	special := []float64{0, math.Copysign(0, -1), 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, 2, 3, 1e-3, -1e-3, 1e-30, 1e30, 80, -80, 20, -20, math.Inf(1), math.Inf(-1), math.NaN()}
	var x, y []float64
	for _, a := range special {
		for _, b := range special {
			x, y = append(x, float64(float32(a))), append(y, float64(float32(b)))
		}
	}
	r := rand.New(rand.NewPCG(7, 7))
	for range 3000 {
		x = append(x, float64(float32(r.NormFloat64()*4)), float64(float32(math.Exp(r.NormFloat64()*6))))
		y = append(y, float64(float32(r.NormFloat64()*2)), float64(float32(r.NormFloat64()*2)))
	}
	for e := range 24 { // towards the ends of erfinv
		d := float64(float32(1 - math.Ldexp(1, -e-1)))
		x, y = append(x, d, -d), append(y, 1, 1)
	}
	var b strings.Builder
	b.WriteString("#include \"dm.cuh\"\n")
	for _, v := range []struct{ name, typ string }{{"singles", "float"}, {"doubles", "double"}} {
		b.WriteString("DM_KERNEL(" + v.name + ", 64)(dm::In<" + v.typ + "> a, dm::In<" + v.typ + "> b, dm::Out<" + v.typ + "> to) {\n  for (dm::i64 i = dm::thread(); i < " + itoa(len(x)) + "; i += 64) {\n    " + v.typ + " x = a[i], y = b[i];\n")
		for k, f := range mathFunctions {
			b.WriteString("    to.store(i * " + itoa(len(mathFunctions)) + " + " + itoa(k) + ", " + f.call + ");\n")
		}
		b.WriteString("  }\n}\n")
	}
	var x32, y32 []float32
	for i := range x {
		x32, y32 = append(x32, float32(x[i])), append(y32, float32(y[i]))
	}
	n := len(x) * len(mathFunctions)
	got32 := toFloats(runKernel(t, b.String(), artifact.Kernel{Name: "singles", Block: artifact.Block{Threads: 64}}, 1, buffer{elem: "f32", data: floats(x32...)}, buffer{elem: "f32", data: floats(y32...)}, buffer{elem: "f32", out: n})[0])
	got64 := toDoubles(runKernel(t, b.String(), artifact.Kernel{Name: "doubles", Block: artifact.Block{Threads: 64}}, 1, buffer{elem: "f64", data: doubles(x...)}, buffer{elem: "f64", data: doubles(y...)}, buffer{elem: "f64", out: n})[0])
	for k, f := range mathFunctions {
		var worst32, worst64 float64
		for i := range x {
			want := f.f(x[i], y[i])
			g32, g64 := float64(got32[i*len(mathFunctions)+k]), got64[i*len(mathFunctions)+k]
			if want32 := float32(want); want != want || want32 == 0 || math.IsInf(float64(want32), 0) {
				if !same(g32, float64(want32)) {
					t.Errorf("%s in f32 with x = %v, y = %v is %v, want %v", f.call, x[i], y[i], g32, want32)
				}
			} else {
				worst32 = max(worst32, math.Abs(g32-want)/max(math.Abs(want), 0x1p-126))
			}
			if want != want || want == 0 || math.IsInf(want, 0) {
				if !same(g64, want) {
					t.Errorf("%s in f64 with x = %v, y = %v is %v, want %v", f.call, x[i], y[i], g64, want)
				}
			} else {
				worst64 = max(worst64, math.Abs(g64-want)/max(math.Abs(want), 0x1p-1022))
			}
		}
		// The precision of f32 is 2^-24; large arguments of the reference's own
		// functions are what bounds the comparison in double precision.
		if worst32 > 0x1p-21 || worst64 > 0x1p-40 {
			t.Errorf("%s: relative error %.3g in f32, %.3g in f64", f.call, worst32, worst64)
		}
	}
}

const integerSource = `#include "dm.cuh"
template <class T> static void put(dm::Out<dm::i64> to, dm::i64 i, int k, dm::i64 a, dm::i64 b) {
  T x = T(a), y = T(b);
  T all[] = {dm::div(x, y), dm::rem(x, y), dm::pow(x, y), dm::max(x, y), dm::min(x, y), dm::abs(x)};
  for (int j = 0; j < 6; j++) to.store((i * 4 + k) * 6 + j, dm::i64(all[j]));
}
DM_KERNEL(integers, 32)(dm::In<dm::i64> x, dm::In<dm::i64> y, dm::Out<dm::i64> to) {
  for (dm::i64 i = dm::thread(); i < COUNT; i += 32) {
    put<dm::i32>(to, i, 0, x[i], y[i]);
    put<dm::i64>(to, i, 1, x[i], y[i]);
    put<dm::u32>(to, i, 2, x[i], y[i]);
    put<dm::u64>(to, i, 3, x[i], y[i]);
  }
}
`

type integer interface {
	int32 | int64 | uint32 | uint64
}

// integerOps are the reference's: x/0 is -1, x rem 0 is x, negative powers are 0
// but of 1 and -1, everything wraps.
func integerOps[T integer](x, y T) [6]T {
	minus := T(0) - 1
	signed := minus < 0
	q, r := minus, x
	if y != 0 {
		if signed && y == minus {
			q, r = 0-x, 0
		} else {
			q, r = x/y, x%y
		}
	}
	p := T(1)
	switch {
	case signed && y < 0 && x == minus:
		if y&1 != 0 {
			p = minus
		}
	case signed && y < 0 && x != 1:
		p = 0
	default:
		for e, b := uint64(y), x; e > 0; e, b = e>>1, b*b {
			if e&1 == 1 {
				p *= b
			}
		}
	}
	a := x
	if x < 0 {
		a = 0 - x
	}
	return [6]T{q, r, p, max(x, y), min(x, y), a}
}

func TestIntegerMath(t *testing.T) {
	needCompiler(t)
	v := []int64{0, 1, -1, 2, -2, 3, 7, -7, 31, 100, math.MaxInt32, math.MinInt32, math.MaxInt64, math.MinInt64, 1 << 40}
	var x, y []int64
	for _, a := range v {
		for _, b := range v {
			x, y = append(x, a), append(y, b)
		}
	}
	got := toWords(runKernel(t, strings.ReplaceAll(integerSource, "COUNT", itoa(len(x))), artifact.Kernel{Name: "integers", Block: artifact.Block{Threads: 32}}, 1,
		buffer{elem: "i64", data: words(x...)}, buffer{elem: "i64", data: words(y...)}, buffer{elem: "i64", out: 24 * len(x)})[0])
	for i := range x {
		i32, i64 := integerOps(int32(x[i]), int32(y[i])), integerOps(x[i], y[i])
		u32, u64 := integerOps(uint32(x[i]), uint32(y[i])), integerOps(uint64(x[i]), uint64(y[i]))
		for j := range 6 {
			for k, want := range []int64{int64(i32[j]), i64[j], int64(u32[j]), int64(u64[j])} {
				if g := got[(i*4+k)*6+j]; g != want {
					t.Errorf("%s(%d, %d) of type %d is %d, want %d", []string{"div", "rem", "pow", "max", "min", "abs"}[j], x[i], y[i], k, g, want)
				}
			}
		}
	}
}

const randomSource = `#include "dm.cuh"
DM_KERNEL(numbers, 256)(dm::Out<dm::ui64> bits, dm::Out<double> uniform, dm::Out<double> normal, dm::Out<float> narrow, dm::Out<dm::i32> kept) {
  dm::i64 i = dm::i64(dm::block()) * 256 + dm::thread();
  dm::u64 seed = dm::u64(i % 5) * 0x123456789abcdefull, stream = dm::u64(i % 3);
  bits.store(i, dm::bits(seed, stream, dm::u64(i)));
  uniform.store(i, dm::uniform(seed, stream, dm::u64(i)));
  normal.store(i, dm::normal(seed, stream, dm::u64(i)));
  narrow.store(i, dm::stream(seed, stream).uniform32(dm::i32(i)));
  kept.store(i, dm::keeps(seed, i, 429496730) + 2 * dm::keeps(seed, dm::i32(i), 429496730) + 4 * dm::keeps(seed, i, 0) + 8 * dm::keeps(seed, i, 1ull << 32) +
             16 * (dm::keeps(seed, i / 4 * 4, dm::i32(i % 4), 429496730) != dm::keeps(seed, i, 429496730)));
}
`

// Random numbers are the reference's, bit for bit.
func TestRandom(t *testing.T) {
	needCompiler(t)
	const n = 1 << 15
	out := runKernel(t, strings.ReplaceAll(randomSource, "ui64", "u64"), artifact.Kernel{Name: "numbers", Block: artifact.Block{Threads: 256}}, n/256,
		buffer{elem: "ui64", out: n}, buffer{elem: "f64", out: n}, buffer{elem: "f64", out: n}, buffer{elem: "f32", out: n}, buffer{elem: "i32", out: n})
	narrow, kept := toFloats(out[3]), make([]uint8, 1)
	bits, uniform, normal := toWords(out[0]), toDoubles(out[1]), toDoubles(out[2])
	for i := range uint64(n) {
		seed, stream := i%5*0x123456789abcdef, i%3
		if b := tensor.Bits(seed, stream, i); uint64(bits[i]) != b {
			t.Fatalf("bits %d are %#x, want %#x", i, bits[i], b)
		}
		if u := tensor.Uniform(seed, stream, i); uniform[i] != u {
			t.Fatalf("uniform number %d is %v, want %v", i, uniform[i], u)
		}
		if v := tensor.Normal(seed, stream, i); normal[i] != v {
			t.Fatalf("normal number %d is %v, want %v", i, normal[i], v)
		}
		if u := tensor.NewStream(seed, stream).Uniform32(i); narrow[i] != u {
			t.Fatalf("narrow uniform number %d is %v, want %v", i, narrow[i], u)
		}
		tensor.NewStream(seed, 1).Keep(kept, i, tensor.Threshold(0.1))
		if got := binary.LittleEndian.Uint32(out[4][4*i:]); got != 3*uint32(kept[0])+4 {
			t.Fatalf("number %d is kept %b, want %d", i, got, kept[0])
		}
	}
}
