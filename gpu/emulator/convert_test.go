package emulator

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"dmir/compile/tensor"
	"dmir/dialect/types"
	"dmir/gpu/artifact"
	"dmir/testkit/need"
)

// small is a floating-point type of at most 16 bits.
type small struct {
	name, cpp string
	elem      types.Elem
	bytes     int
	mant      uint
	bias      int
	infs      bool
}

var smalls = []small{
	{"f16", "dm::f16", types.F16, 2, 10, 15, true},
	{"bf16", "dm::bf16", types.BF16, 2, 7, 127, true},
	{"f8E4M3FN", "dm::f8e4", types.F8E4M3FN, 1, 3, 7, false},
	{"f8E5M2", "dm::f8e5", types.F8E5M2, 1, 2, 15, true},
}

// value is the number of pattern p.
func (s small) value(p int) float64 {
	bits := uint(8 * s.bytes)
	exp, mant := p>>s.mant&(1<<(bits-1-s.mant)-1), p&(1<<s.mant-1)
	last := 1<<(bits-1-s.mant) - 1
	var v float64
	switch {
	case s.infs && exp == last && mant == 0:
		v = math.Inf(1)
	case s.infs && exp == last, !s.infs && exp == last && mant == 1<<s.mant-1:
		v = math.NaN()
	case exp == 0:
		v = math.Ldexp(float64(mant), 1-s.bias-int(s.mant))
	default:
		v = math.Ldexp(float64(mant+1<<s.mant), exp-s.bias-int(s.mant))
	}
	if p>>(bits-1) == 1 {
		v = math.Copysign(v, -1)
	}
	return v
}

// same holds for equal numbers, zeros of one sign, and two NaNs.
func same(a, b float64) bool {
	return a != a && b != b || a == b && math.Signbit(a) == math.Signbit(b)
}

const convertSource = `#include "dm.cuh"
DM_KERNEL(widen, 256)(dm::In<TYPE> x, dm::Out<float> y, dm::Out<TYPE> back) {
  dm::i64 i = dm::i64(dm::block()) * 256 + dm::thread();
  y.store(i, dm::wide(x[i]));
  back.store(i, dm::narrow<TYPE>(x[i]));
}
DM_KERNEL(narrowed, 256)(dm::In<double> x, dm::Out<float> from32, dm::Out<float> from64) {
  for (dm::i64 i = dm::thread(); i < COUNT; i += 256) {
    from32.store(i, dm::wide(dm::narrow<TYPE>(float(x[i]))));
    from64.store(i, dm::wide(dm::narrow<TYPE>(x[i])));
  }
}
`

// Every pattern of the small floats converts to its number and back; numbers at,
// beside and between all of them are rounded once, as in the reference, from f32 and
// from f64.
func TestConversions(t *testing.T) {
	need.Long(t)
	needCompiler(t)
	for _, s := range smalls {
		n := 1 << (8 * s.bytes)
		patterns := make([]byte, 0, n*s.bytes)
		for p := range n {
			patterns = append(patterns, byte(p))
			if s.bytes == 2 {
				patterns = append(patterns, byte(p>>8))
			}
		}
		r := rand.New(rand.NewPCG(1, uint64(n)))
		var x []float64
		for p := range n {
			v, w := s.value(p), s.value((p+1)%n)
			x = append(x, v, (v+w)/2, (v+w)/2*(1+0x1p-40), (v+w)/2*(1-0x1p-40), (v+w)/2*(1+0x1p-23), (v+w)/2*(1-0x1p-23), v*(1+0x1p-30))
		}
		for range 1 << 14 {
			x = append(x, float64(math.Float32frombits(r.Uint32())), math.Float64frombits(r.Uint64()))
		}
		x = append(x, 464, 465, 61440, 61439, 65520, 65519, 1e300, -1e300, 5e-324, math.Inf(1), math.NaN(), 3.5e38, math.MaxFloat32)

		source := strings.NewReplacer("TYPE", s.cpp, "COUNT", itoa(len(x))).Replace(convertSource)
		out := runKernel(t, source, artifact.Kernel{Name: "widen", Block: artifact.Block{Threads: 256}}, n/256, buffer{elem: s.name, data: patterns}, buffer{elem: "f32", out: n}, buffer{elem: s.name, out: n})
		for p, got := range toFloats(out[0]) {
			if want := s.value(p); !same(float64(got), want) {
				t.Fatalf("%s: pattern %#x is %v, want %v", s.name, p, got, want)
			}
		}
		for p := range n {
			q := int(out[1][p*s.bytes])
			if s.bytes == 2 {
				q |= int(out[1][2*p+1]) << 8
			}
			if v := s.value(p); q != p && v == v {
				t.Fatalf("%s: pattern %#x comes back as %#x", s.name, p, q)
			}
		}
		source = strings.Replace(source, "DM_KERNEL(widen", "DM_KERNEL(unused", 1)
		out = runKernel(t, source, artifact.Kernel{Name: "narrowed", Block: artifact.Block{Threads: 256}}, 1, buffer{elem: "f64", data: doubles(x...)}, buffer{elem: "f32", out: len(x)}, buffer{elem: "f32", out: len(x)})
		from32, from64 := toFloats(out[0]), toFloats(out[1])
		for i, v := range x {
			if want := tensor.Round(s.elem, float32(v)); !same(float64(from32[i]), float64(want)) {
				t.Fatalf("%s of %v from f32 is %v, want %v", s.name, v, from32[i], want)
			}
			if want := tensor.Round64(s.elem, v); !same(float64(from64[i]), float64(want)) {
				t.Fatalf("%s of %v from f64 is %v, want %v", s.name, v, from64[i], want)
			}
		}
	}
}

const toIntSource = `#include "dm.cuh"
template <class T> static void put(dm::Out<dm::i64> y, dm::i64 i, int k, double x) {
  y.store(2 * (i * 11 + k), dm::i64(dm::convert<T>(x)));
  y.store(2 * (i * 11 + k) + 1, dm::i64(dm::convert<T>(float(x))));
}
template <class T> static void put4(dm::Out<dm::i64> y, dm::i64 i, int k, double x) {
  y.store(2 * (i * 11 + k), dm::i64(dm::wide(dm::convert<T>(x))));
  y.store(2 * (i * 11 + k) + 1, dm::i64(dm::wide(dm::convert<T>(float(x)))));
}
DM_KERNEL(integers, 32)(dm::In<double> x, dm::Out<dm::i64> y) {
  for (dm::i64 i = dm::thread(); i < COUNT; i += 32) {
    double v = x[i];
    put<dm::i8>(y, i, 0, v);
    put<dm::i16>(y, i, 1, v);
    put<dm::i32>(y, i, 2, v);
    put<dm::i64>(y, i, 3, v);
    put<dm::u8>(y, i, 4, v);
    put<dm::u16>(y, i, 5, v);
    put<dm::u32>(y, i, 6, v);
    put<dm::u64>(y, i, 7, v);
    put<bool>(y, i, 8, v);
    put4<dm::i4>(y, i, 9, v);
    put4<dm::u4>(y, i, 10, v);
  }
}
DM_KERNEL(from, 32)(dm::In<dm::i64> x, dm::Out<float> f, dm::Out<double> d, dm::Out<dm::f16> h, dm::Out<dm::i64> w) {
  for (dm::i64 i = dm::thread(); i < COUNT2; i += 32) {
    dm::i64 v = x[i];
    f.store(i, dm::convert<float>(v));
    d.store(i, dm::convert<double>(dm::i32(v)));
    h.store(i, dm::convert<dm::f16>(v));
    w.store(4 * i, dm::convert<dm::i8>(v));
    w.store(4 * i + 1, dm::convert<bool>(v));
    w.store(4 * i + 2, dm::i64(dm::convert<dm::u16>(v)));
    w.store(4 * i + 3, dm::i64(dm::convert<dm::u64>(dm::i32(v))));
  }
}
`

// Floats become integers, and integers floats and other integers, as in the reference.
func TestIntegerConversions(t *testing.T) {
	needCompiler(t)
	x := []float64{
		0, math.Copysign(0, -1), 0.5, -0.5, 0.999, 1, -1, 1.5, -1.999, 127, 127.9, 128, -128, -128.9, -129, 255, 255.5, 256, 32767.5, 32768, -32769, 65535.5, 65536,
		2147483520, 2147483647, 2147483648, -2147483648, -2147483904, 4294967040, 4294967295, 4294967296, 9.2e18, 0x1p63, -0x1p63, -1e19, 1.8e19, 0x1p64, 1e30, -1e30,
		math.Inf(1), math.Inf(-1), math.NaN(), 1e-300,
	}
	v := []int64{0, 1, -1, 2, 127, 128, 255, 256, -128, -129, 2049, 2051, 65519, 65520, 1 << 24, 1<<24 + 1, 1<<53 + 1, math.MaxInt64, math.MinInt64, 1 << 32, 123456789012345}
	source := strings.NewReplacer("COUNT2", itoa(len(v)), "COUNT", itoa(len(x))).Replace(toIntSource)
	out := toWords(runKernel(t, source, artifact.Kernel{Name: "integers", Block: artifact.Block{Threads: 32}}, 1, buffer{elem: "f64", data: doubles(x...)}, buffer{elem: "i64", out: 22 * len(x)})[0])
	elems := []types.Elem{types.I8, types.I16, types.I32, types.I64, types.UI8, types.UI16, types.UI32, types.UI64, types.I1, types.I4, types.UI4}
	for i, f := range x {
		for k, e := range elems {
			if got, want := out[2*(11*i+k)], tensor.ToInt(e, f); got != want {
				t.Errorf("%v to %s is %d, want %d", f, e, got, want)
			}
			if got, want := out[2*(11*i+k)+1], tensor.ToInt(e, float64(float32(f))); got != want {
				t.Errorf("%v to %s from f32 is %d, want %d", f, e, got, want)
			}
		}
	}
	outs := runKernel(t, source, artifact.Kernel{Name: "from", Block: artifact.Block{Threads: 32}}, 1, buffer{elem: "i64", data: words(v...)},
		buffer{elem: "f32", out: len(v)}, buffer{elem: "f64", out: len(v)}, buffer{elem: "f16", out: len(v)}, buffer{elem: "i64", out: 4 * len(v)})
	f, d, h, w := toFloats(outs[0]), toDoubles(outs[1]), toHalves(outs[2]), toWords(outs[3])
	for i, n := range v {
		if f[i] != float32(n) || d[i] != float64(int32(n)) {
			t.Errorf("%d is %v in f32 and %v in f64", n, f[i], d[i])
		}
		if got, want := smalls[0].value(int(h[i])), float64(tensor.Round64(types.F16, float64(n))); !same(got, want) {
			t.Errorf("%d is %v in f16, want %v", n, got, want)
		}
		for k, want := range []int64{tensor.Wrap(types.I8, n), b2i(n != 0), tensor.Wrap(types.UI16, n), int64(int32(n))} {
			if got := w[4*i+k]; got != want {
				t.Errorf("%d: conversion %d gives %d, want %d", n, k, got, want)
			}
		}
	}
}

func b2i(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
