package tensor

import (
	"archive/zip"
	"bytes"
	"errors"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/x448/float16"

	"dmir/dialect/types"
)

var allElems = []types.Elem{
	types.F64, types.F32, types.F16, types.BF16, types.F8E4M3FN, types.F8E5M2, types.I64, types.I32, types.I16, types.I8,
	types.I1, types.UI64, types.UI32, types.UI16, types.UI8, types.I4, types.UI4, types.Index,
}

// Rounding to f16 agrees with the library's, bit for bit, on every half, on the
// midpoints between neighbours and beside them, and on noise.
func TestRoundF16(t *testing.T) {
	check := func(v float32) {
		want := float16.Fromfloat32(v).Float32()
		if v != v {
			if got := Round(types.F16, v); got == got {
				t.Fatalf("NaN becomes %g", got)
			}
			return
		}
		slice := []float32{v}
		RoundSlice(types.F16, slice)
		for _, got := range []float32{Round(types.F16, v), slice[0], Round64(types.F16, float64(v))} {
			if math.Float32bits(got) != math.Float32bits(want) {
				t.Fatalf("%g (%08x) becomes %g, want %g", v, math.Float32bits(v), got, want)
			}
		}
	}
	for h := range 1 << 16 {
		a := float16.Frombits(uint16(h)).Float32()
		mid := a + (float16.Frombits(uint16(h+1)).Float32()-a)/2
		for _, v := range []float32{a, mid, math.Nextafter32(mid, 0), math.Nextafter32(mid, 1e9)} {
			check(v)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 1_000_000 {
		check(math.Float32frombits(r.Uint32()))
	}
}

// The fast rounding to bf16 agrees with the general one.
func TestRoundBF16(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 1_000_000 {
		v := math.Float32frombits(r.Uint32())
		got, want := Round(types.BF16, v), float32(formats[types.BF16].round(float64(v)))
		if got != want && (got == got || want == want) {
			t.Fatalf("%g becomes %g, want %g", v, got, want)
		}
	}
}

// The two f8 types, worked by hand from their definitions (Micikevicius et al.,
// "FP8 formats for deep learning", arXiv 2209.05433).
func TestRoundF8(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, c := range []struct {
		elem     types.Elem
		in, want float32
	}{
		{types.F8E4M3FN, 448, 448},
		{types.F8E4M3FN, 464, 448},
		{types.F8E4M3FN, 465, nan},
		{types.F8E4M3FN, inf, nan},
		{types.F8E4M3FN, -447, -448},
		{types.F8E4M3FN, 17, 16},
		{types.F8E4M3FN, 19, 20},
		{types.F8E4M3FN, 1.0625, 1},
		{types.F8E4M3FN, 0x1p-9, 0x1p-9},
		{types.F8E4M3FN, 0x1p-10, 0},
		{types.F8E4M3FN, 0x1.8p-9, 0x1p-8},
		{types.F8E4M3FN, 0.1, 0.1015625},
		{types.F8E5M2, 57344, 57344},
		{types.F8E5M2, 61439, 57344},
		{types.F8E5M2, 61440, inf},
		{types.F8E5M2, -1e9, -inf},
		{types.F8E5M2, 1.125, 1},
		{types.F8E5M2, 1.375, 1.5},
		{types.F8E5M2, 0x1p-16, 0x1p-16},
		{types.F8E5M2, 0x1p-17, 0},
		{types.F8E5M2, nan, nan},
	} {
		if got := Round(c.elem, c.in); got != c.want && (got == got || c.want == c.want) {
			t.Errorf("%s: %g becomes %g, want %g", c.elem, c.in, got, c.want)
		}
	}
	for elem, finite := range map[types.Elem]int{types.F8E4M3FN: 2*127 - 1, types.F8E5M2: 2*124 - 1} {
		values := map[float32]bool{}
		for h := range 1 << 16 {
			if v := Round(elem, float16.Frombits(uint16(h)).Float32()); v == v && !math.IsInf(float64(v), 0) {
				values[v] = true
			}
		}
		if len(values) != finite {
			t.Errorf("%s has %d finite values, want %d", elem, len(values), finite)
		}
	}
}

func TestIntegers(t *testing.T) {
	for _, c := range []struct {
		elem types.Elem
		in   float64
		want int64
	}{
		{types.I8, 300, 127},
		{types.I8, -300, -128},
		{types.I8, -1.9, -1},
		{types.I4, 300, 7},
		{types.I4, -9.5, -8},
		{types.UI4, 15.9, 15},
		{types.UI8, -3, 0},
		{types.UI8, 256, 255},
		{types.I64, 1e30, math.MaxInt64},
		{types.I64, -1e30, math.MinInt64},
		{types.UI64, 1e30, -1},
		{types.UI64, 0x1p63, math.MinInt64},
		{types.I32, math.NaN(), 0},
		{types.I1, 0.25, 1},
		{types.I1, 0, 0},
	} {
		if got := ToInt(c.elem, c.in); got != c.want {
			t.Errorf("ToInt(%s, %g) = %d, want %d", c.elem, c.in, got, c.want)
		}
	}
	if got := Wrap(types.I8, 130); got != -126 {
		t.Errorf("130 wraps to %d in i8", got)
	}
	if got := FromInts(types.UI64, []int{1}, []int64{-1}).Float(0); got != 0x1p64 {
		t.Errorf("the largest ui64 is %g", got)
	}
}

// What is written is read back, in every element type and any rank.
func TestNPYRoundTrip(t *testing.T) {
	for _, elem := range allElems {
		for _, shape := range [][]int{{}, {3}, {2, 3, 4}, {0, 2}, {70000}} {
			x := Random(elem, shape, 1, 0)
			var buf bytes.Buffer
			if err := WriteNPY(&buf, x); err != nil {
				t.Fatal(err)
			}
			if n := bytes.IndexByte(buf.Bytes(), '\n') + 1; n%64 != 0 {
				t.Errorf("%s: the data begin at byte %d, not at a multiple of 64", x.Type(), n)
			}
			y, err := ReadNPY(&buf, elem, shape)
			if err != nil {
				t.Fatalf("%s: %v", x.Type(), err)
			}
			if !reflect.DeepEqual(x, y) {
				t.Errorf("%s: %s", x.Type(), cmp.Diff(x, y))
			}
		}
	}
}

// Files written by NumPy itself: testdata/arrays.py.
func TestNPYFromNumPy(t *testing.T) {
	a, err := OpenNPZ("testdata/arrays.npz")
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	for _, name := range a.Names() {
		dtype, _, _ := strings.Cut(name, "_")
		elem, ok := types.ElemByName(dtype)
		if !ok {
			t.Fatalf("%s names no element type", name)
		}
		x, err := a.Read(name, elem, []int{2, 3})
		if err != nil {
			t.Error(err)
			continue
		}
		for i := range 6 {
			want := float64(i)
			if elem == types.I1 {
				want = float64(i % 2)
			}
			if x.Float(i) != want {
				t.Errorf("%s: element %d is %g, want %g", name, i, x.Float(i), want)
			}
		}
	}
}

func TestNPYErrors(t *testing.T) {
	var good bytes.Buffer
	if err := WriteNPY(&good, New(types.F32, 2, 3)); err != nil {
		t.Fatal(err)
	}
	text := good.String()
	for _, c := range []struct {
		name, data string
		elem       types.Elem
		shape      []int
		want       string
	}{
		{"other shape", text, types.F32, []int{3, 2}, "expected tensor<3x2xf32> (float32), got tensor<2x3xfloat32>"},
		{"other type", text, types.F16, []int{2, 3}, "expected tensor<2x3xf16> (float16), got tensor<2x3xfloat32>"},
		{"rank", text, types.F32, []int{6}, "expected tensor<6xf32> (float32), got tensor<2x3xfloat32>"},
		{"bf16 from float32", text, types.BF16, []int{2, 3}, ""},
		{"open size", text, types.F32, []int{-1, 3}, ""},
		{"open size, other shape", text, types.F32, []int{-1, 4}, "expected tensor<?x4xf32> (float32), got tensor<2x3xfloat32>"},
		{"cut", text[:len(text)-1], types.F32, []int{2, 3}, "end early"},
		{"text", "hello, world, this is no array", types.F32, []int{2, 3}, "not a .npy file"},
		{"empty", "", types.F32, []int{2, 3}, "not a .npy file"},
		{"header", "\x93NUMPY\x01\x00\x10\x00{'descr': '<f4',", types.F32, []int{2, 3}, "not a .npy file"},
		{"huge header", "\x93NUMPY\x02\x00\xff\xff\xff\xff", types.F32, []int{2, 3}, "not a .npy file"},
		{"huge shape", strings.Replace(text, "(2, 3), }"+strings.Repeat(" ", 18), "(9999999999, 9999999999), }", 1), types.F32, []int{2, 3}, "got tensor<9999999999x9999999999xfloat32>"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := ReadNPY(strings.NewReader(c.data), c.elem, c.shape)
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func FuzzReadNPY(f *testing.F) {
	var buf bytes.Buffer
	if err := WriteNPY(&buf, New(types.F32, 2, 3)); err != nil {
		f.Fatal(err)
	}
	f.Add(buf.Bytes())
	f.Add([]byte("\x93NUMPY\x01\x00\x02\x00{\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		x, err := ReadNPY(bytes.NewReader(data), types.F32, []int{2, 3})
		if (x == nil) == (err == nil) {
			t.Fatalf("got %v and %v", x, err)
		}
	})
}

// writeArchive writes what numpy.savez does.
func writeArchive(t *testing.T, path string, arrays map[string]*Tensor) {
	t.Helper()
	var buf bytes.Buffer
	z := zip.NewWriter(&buf)
	for _, name := range slices.Sorted(maps.Keys(arrays)) {
		f, err := z.CreateHeader(&zip.FileHeader{Name: name + ".npy", Method: zip.Store})
		if err != nil {
			t.Fatal(err)
		}
		if err := WriteNPY(f, arrays[name]); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(z.Close(), os.WriteFile(path, buf.Bytes(), 0o644)); err != nil {
		t.Fatal(err)
	}
}

func TestSave(t *testing.T) {
	dir := t.TempDir()
	x, y := Random(types.F16, []int{3, 4}, 1, 0), Random(types.I64, []int{2}, 1, 1)
	var buf bytes.Buffer
	if err := WriteNPY(&buf, x); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "x.npy")
	if err := SaveNPY(path, x); err != nil {
		t.Fatal(err)
	}
	got, err := LoadNPY(path, types.F16, []int{3, 4})
	if err != nil || !cmp.Equal(x, got) {
		t.Errorf("got %v, %v", got, err)
	}
	path = filepath.Join(dir, "all.npz")
	writeArchive(t, path, map[string]*Tensor{"x": x, "y": y})
	a, err := OpenNPZ(path)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if d := cmp.Diff([]string{"x", "y"}, a.Names()); d != "" {
		t.Error(d)
	}
	if got, err := a.Read("y", types.I64, []int{2}); err != nil || !cmp.Equal(y, got) {
		t.Errorf("got %v, %v", got, err)
	}
	huge := strings.Replace(buf.String(), "(3, 4), }"+strings.Repeat(" ", 10), "(3, 99999999999), }", 1)
	path = filepath.Join(dir, "huge.npy")
	if err := os.WriteFile(path, []byte(huge), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadNPY(path, types.F16, []int{3, -1}); err == nil || !strings.Contains(err.Error(), "end early") {
		t.Errorf("an array larger than its file gives %v", err)
	}
	os.Remove(path)
	if _, err := a.Read("z", types.I64, []int{2}); err == nil || !strings.Contains(err.Error(), `no array "z"; there are x, y`) {
		t.Errorf("got %v", err)
	}
	if err := SaveNPY(filepath.Join(dir, "missing", "x.npy"), x); err == nil {
		t.Error("saving into a missing directory succeeds")
	}
	left, _ := os.ReadDir(dir)
	if len(left) != 2 {
		t.Errorf("%d files are left, want 2", len(left))
	}
}

// Random tensors depend on seed, stream and shape alone, and have the stated
// distribution.
func TestRandom(t *testing.T) {
	a, b := Random(types.F32, []int{100000}, 1, 2), Random(types.F32, []int{100000}, 1, 2)
	if !reflect.DeepEqual(a, b) {
		t.Error("the same seed gives two tensors")
	}
	if reflect.DeepEqual(a, Random(types.F32, []int{100000}, 1, 3)) || reflect.DeepEqual(a, Random(types.F32, []int{100000}, 2, 2)) {
		t.Error("another stream or seed gives the same tensor")
	}
	var sum, square float64
	for _, v := range a.F32 {
		sum += float64(v)
		square += float64(v) * float64(v)
	}
	if mean, variance := sum/1e5, square/1e5; math.Abs(mean) > 0.02 || math.Abs(variance-1) > 0.02 {
		t.Errorf("mean %g and variance %g, want 0 and 1", mean, variance)
	}
	if s := Random(types.I32, []int{1000}, 1, 0).Stats(); s.Min != 0 || s.Max != 9 {
		t.Errorf("integers lie in %g … %g, want 0 … 9", s.Min, s.Max)
	}
}

func TestStats(t *testing.T) {
	x := FromFloats(types.F32, []int{5}, []float64{1, -3, math.NaN(), math.Inf(1), 5})
	if d := cmp.Diff(Stats{Min: -3, Max: 5, Mean: 1, NaNs: 1, Infs: 1}, x.Stats()); d != "" {
		t.Error(d)
	}
	if got := x.String(); got != "tensor<5xf32> [1 -3 NaN +Inf 5]" {
		t.Error(got)
	}
}

func TestCount(t *testing.T) {
	for _, c := range []struct {
		shape []int
		n     int
		ok    bool
	}{{[]int{}, 1, true}, {[]int{2, 3}, 6, true}, {[]int{0, 1 << 60}, 0, true}, {[]int{1 << 40, 1 << 40}, 0, false}, {[]int{-1}, 0, false}} {
		if n, ok := Count(c.shape); n != c.n || ok != c.ok {
			t.Errorf("Count(%v) = %d, %v", c.shape, n, ok)
		}
	}
}

// Dropout keeps the fraction of elements that the rate gives in any part of a row,
// neighbours independently of each other, whichever part is computed.
func TestKeep(t *testing.T) {
	const n = 1 << 16
	for _, rate := range []float64{0, 0.1, 0.5, 0.999} {
		s, threshold := NewStream(7, 1), Threshold(rate)
		all := make([]uint8, n)
		s.Keep(all, 0, threshold)
		var kept, both int
		for i, k := range all {
			want := uint8(0)
			if uint64(s.Half(uint64(i))) >= threshold {
				want = 1
			}
			if k != want {
				t.Fatalf("rate %g: element %d is kept %d, want %d", rate, i, k, want)
			}
			kept += int(k)
			if i%2 == 1 {
				both += int(k & all[i-1])
			}
		}
		p := 1 - rate
		for what, c := range map[string][2]float64{"elements": {float64(kept), n * p}, "pairs": {float64(both), n / 2 * p * p}} {
			if allowed := 5 * math.Sqrt(c[1]*(1-p*p)); math.Abs(c[0]-c[1]) > allowed {
				t.Errorf("rate %g: %g %s are kept, want %g ± %g", rate, c[0], what, c[1], allowed)
			}
		}
		for _, part := range [][2]int{{0, 1}, {1, 2}, {3, 8}, {4, 9}, {5, 5}} {
			got := make([]uint8, part[1]-part[0])
			s.Keep(got, uint64(part[0]), threshold)
			if !slices.Equal(got, all[part[0]:part[1]]) {
				t.Errorf("rate %g: elements %v are kept %v, want %v", rate, part, got, all[part[0]:part[1]])
			}
		}
	}
}
