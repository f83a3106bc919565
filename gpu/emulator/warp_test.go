package emulator

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"dmir/gpu/artifact"
)

const warpSource = `#include "dm.cuh"
DM_KERNEL(exchange, 96)(dm::In<float> x, dm::Out<float> y) {
  DM_SHARED(float, s, 32);
  int t = dm::thread();
  float v = x[t];
  float r[11] = {dm::shuffle(v, 5), dm::shuffle_xor(v, 3), dm::shuffle_down(v, 4), float(dm::ballot(v > 0) >> 8),
                 dm::warp_sum(v), dm::warp_max(v), dm::warp_min(v), dm::block_sum(v, s), dm::block_max(v, s), dm::block_min(v, s), float(dm::match(dm::i32(v) & 7) >> 8)};
  for (int k = 0; k < 11; k++) y.store(t * 11 + k, r[k]);
}
`

// Exchange within warps and reductions, on values whose sums are exact.
func TestWarps(t *testing.T) {
	needCompiler(t)
	x := make([]float32, 96)
	r := rand.New(rand.NewPCG(3, 3))
	for i := range x {
		x[i] = float32(r.IntN(200) - 100)
	}
	got := toFloats(runKernel(t, warpSource, artifact.Kernel{Name: "exchange", Block: artifact.Block{Threads: 96}}, 1, buffer{elem: "f32", data: floats(x...)}, buffer{elem: "f32", out: 1056})[0])
	all := reduce(x)
	for i := range x {
		w, l := i&^31, i&31
		var votes, alike uint32
		for k := range 32 {
			if x[w+k] > 0 {
				votes |= 1 << k
			}
			if int(x[w+k])&7 == int(x[i])&7 {
				alike |= 1 << k
			}
		}
		down := i
		if l+4 < 32 {
			down = i + 4
		}
		warp := reduce(x[w : w+32])
		want := [11]float32{x[w+5], x[i^3], x[down], float32(votes >> 8), warp[0], warp[1], warp[2], all[0], all[1], all[2], float32(alike >> 8)}
		if have := [11]float32(got[11*i : 11*i+11]); have != want {
			t.Fatalf("thread %d: %v, want %v", i, have, want)
		}
	}
	// One NaN makes every sum and every extreme of its warp, and of the block, NaN.
	x[40] = float32(math.NaN())
	got = toFloats(runKernel(t, warpSource, artifact.Kernel{Name: "exchange", Block: artifact.Block{Threads: 96}}, 1, buffer{elem: "f32", data: floats(x...)}, buffer{elem: "f32", out: 1056})[0])
	for i := range x {
		for k := 4; k < 10; k++ {
			if v, want := got[11*i+k], k > 6 || i/32 == 1; (v != v) != want {
				t.Fatalf("thread %d, result %d is %v; NaN is wanted: %v", i, k, v, want)
			}
		}
	}
}

// reduce returns sum, maximum and minimum.
func reduce(x []float32) [3]float32 {
	r := [3]float32{0, x[0], x[0]}
	for _, v := range x {
		r = [3]float32{r[0] + v, max(r[1], v), min(r[2], v)}
	}
	return r
}

// The product of 16×16 and 16×8 by ldmatrix and mma: A is row-major, B is
// row-major too (so that it is loaded transposed) or column-major.
const mmaSource = `#include "dm.cuh"
DM_KERNEL(product, 32)(dm::In<TYPE> a, dm::In<TYPE> b, dm::In<TYPE> bt, dm::Out<float> d) {
  DM_SHARED(TYPE, sa, 256);
  DM_SHARED(TYPE, sb, 128);
  DM_SHARED(TYPE, st, 128);
  int l = dm::lane();
  dm::cp_async<16>(sa, l * 8, a, l * 8);
  if (l < 16) dm::cp_async<16>(sb, l * 8, b, l * 8);
  if (l < 16) dm::cp_async<16>(st, l * 8, bt, l * 8);
  dm::cp_async_commit();
  dm::cp_async_wait<0>();
  dm::sync();
  dm::u32 fa[4], fb[2], ft[2];
  dm::ldmatrix_x4(fa, sa, l % 16 * 16 + l / 16 * 8);
  dm::ldmatrix_x2_trans(fb, sb, l % 16 * 8);
  dm::ldmatrix_x2(ft, st, l % 8 * 16 + l / 8 % 2 * 8);
  float x[4] = {}, y[4] = {1, 1, 1, 1};
  dm::mma_m16n8k16<TYPE>(x, fa, fb);
  dm::mma_m16n8k16<TYPE>(y, fa, ft);
  int g = l / 4, t = l % 4 * 2;
  for (int k = 0; k < 4; k++) {
    d.store((g + k / 2 * 8) * 8 + t + k % 2, x[k]);
    d.store(128 + (g + k / 2 * 8) * 8 + t + k % 2, y[k]);
  }
}
`

func TestTensorCores(t *testing.T) {
	needCompiler(t)
	r := rand.New(rand.NewPCG(5, 5))
	for _, s := range smalls[:2] {
		var a, b [16][16]int // patterns; b has 8 columns
		var ab, bb, bt []uint16
		pick := func() int { // numbers of about 1, some of them subnormal
			p := r.IntN(1 << 16)
			for v := math.Abs(s.value(p)); v != v || v > 4; v = math.Abs(s.value(p)) {
				p = r.IntN(1 << 16)
			}
			return p
		}
		for i := range 16 {
			for k := range 16 {
				a[i][k] = pick()
				ab = append(ab, uint16(a[i][k]))
			}
			for j := range 8 {
				b[i][j] = pick()
				bb = append(bb, uint16(b[i][j]))
			}
		}
		for j := range 8 {
			for k := range 16 {
				bt = append(bt, uint16(b[k][j]))
			}
		}
		source := strings.ReplaceAll(mmaSource, "TYPE", s.cpp)
		d := toFloats(runKernel(t, source, artifact.Kernel{Name: "product", Block: artifact.Block{Threads: 32}}, 1, buffer{elem: s.name, data: halves(ab...)}, buffer{elem: s.name, data: halves(bb...)},
			buffer{elem: s.name, data: halves(bt...)}, buffer{elem: "f32", out: 256})[0])
		for i := range 16 {
			for j := range 8 {
				var sum, size float64
				for k := range 16 {
					p := s.value(a[i][k]) * s.value(b[k][j])
					sum, size = sum+p, size+math.Abs(p)
				}
				x, y := float64(d[8*i+j]), float64(d[128+8*i+j])-1
				if math.Abs(x-sum) > size*0x1p-20 || math.Abs(y-sum) > (size+1)*0x1p-20 {
					t.Errorf("%s: element %d,%d is %v and %v, want %v", s.name, i, j, x, y, sum)
				}
			}
		}
	}
}

const tf32Source = `#include "dm.cuh"
DM_KERNEL(product, 32)(dm::In<float> a, dm::In<float> b, dm::Out<float> d) {
  int g = dm::lane() / 4, t = dm::lane() % 4;
  dm::u32 fa[4], fb[2];
  for (int k = 0; k < 4; k++) fa[k] = dm::bits_as<dm::u32>(float(a[(g + k % 2 * 8) * 8 + t + k / 2 * 4]));
  for (int k = 0; k < 2; k++) fb[k] = dm::bits_as<dm::u32>(float(b[(t + 4 * k) * 8 + g]));
  float x[4] = {};
  dm::mma_m16n8k8_tf32(x, fa, fb);
  for (int k = 0; k < 4; k++) d.store((g + k / 2 * 8) * 8 + 2 * t + k % 2, x[k]);
}
`

func TestTF32(t *testing.T) {
	needCompiler(t)
	r := rand.New(rand.NewPCG(6, 6))
	var a, b []float32
	for range 128 {
		a = append(a, float32(r.NormFloat64()))
	}
	for range 64 {
		b = append(b, float32(r.NormFloat64()))
	}
	cut := func(x float32) float64 { return float64(math.Float32frombits(math.Float32bits(x) &^ 0x1fff)) }
	d := toFloats(runKernel(t, tf32Source, artifact.Kernel{Name: "product", Block: artifact.Block{Threads: 32}}, 1, buffer{elem: "f32", data: floats(a...)}, buffer{elem: "f32", data: floats(b...)}, buffer{elem: "f32", out: 128})[0])
	for i := range 16 {
		for j := range 8 {
			var sum float64
			for k := range 8 {
				sum += cut(a[8*i+k]) * cut(b[8*k+j])
			}
			if got := float64(d[8*i+j]); math.Abs(got-sum) > 1e-5 {
				t.Errorf("element %d,%d is %v, want %v", i, j, got, sum)
			}
		}
	}
}

// The bytes that a step moves count once for each element, whichever threads read it;
// requested bytes count every time. Blocks of one element of every type.
func TestCounts(t *testing.T) {
	needCompiler(t)
	for _, c := range []struct{ elem, cpp string }{{"f64", "double"}, {"f32", "float"}, {"f16", "dm::f16"}, {"ui8", "dm::u8"}, {"i1", "bool"}} {
		source := fmt.Sprintf(`#include "dm.cuh"
DM_KERNEL(touch, 32)(dm::In<%[1]s> x, dm::InOut<%[1]s> z, dm::Out<%[1]s> y) {
  int b = dm::block(), t = dm::thread();
  x[0];                            // all threads of all blocks
  x[100 + t];                      // every block
  if (b == 1) x.load<2>(200 + 2 * t);
  z.store(b * 32 + t, x[0]);
  z[b * 32 + t];                   // what the step itself has written
  z[64 + 32 * b + t];
  if (t < 7) y.store(b * 7 + t, x[0]);  // blocks side by side at odd places
}
`, c.cpp)
		size, _ := artifact.ElemBytes(c.elem)
		const n = 512
		bytes := n * size
		p := &artifact.Program{
			Name: "counts", Source: source, Workspace: 3 * bytes, Inputs: []int{0, 1},
			Kernels: []artifact.Kernel{{Name: "touch", Block: artifact.Block{Threads: 32}, Params: []artifact.Param{{Name: "x", Elem: c.elem, Mode: artifact.In}, {Name: "z", Elem: c.elem, Mode: artifact.InOut}, {Name: "y", Elem: c.elem, Mode: artifact.Out}}}},
			Steps:   []artifact.Step{{Name: "touch", Kind: artifact.StepLaunch, Launch: artifact.Launch{Grid: artifact.Grid{2, 1, 1}, Args: []artifact.Arg{{Buffer: 0}, {Buffer: 1}, {Buffer: 2}}}}},
		}
		for i, kind := range []artifact.Kind{artifact.Input, artifact.Input, artifact.Temp} {
			p.Buffers = append(p.Buffers, artifact.Buffer{Name: fmt.Sprint(i), Elem: c.elem, Shape: []int64{n}, Kind: kind, Offset: int64(i) * bytes, Bytes: bytes})
		}
		r, err := Run(t.Context(), p, [][]byte{make([]byte, bytes), make([]byte, bytes)}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		want := []ParamReport{
			{"x", (1 + 32 + 64) * size, 0, (2*64 + 14 + 64 + 64) * size},
			{"z", 64 * size, 64 * size, 3 * 64 * size},
			{"y", 0, 14 * size, 14 * size},
		}
		for i, g := range r.Steps[0].Params {
			if g != want[i] {
				t.Errorf("%s: got %+v, want %+v", c.elem, g, want[i])
			}
		}
	}
}

const atomicSource = `#include "dm.cuh"
DM_KERNEL(tally, 64)(dm::In<float> x, dm::InOut<float> sum, dm::InOut<dm::i32> count, dm::InOut<dm::f16> half) {
  DM_SHARED(dm::i32, s, 1);
  if (dm::thread() == 0) s[0] = 0;
  dm::sync();
  int i = dm::block() * 64 + dm::thread();
  sum.add(0, x[i]);
  if (x[i] > 0) s.add(0, 1);
  half.add(i % 3, dm::narrow<dm::f16>(1.0f));
  dm::sync();
  if (dm::thread() == 0) count.add(0, s[0]);
}
`

// Atomic additions of threads and blocks are not races, and none is lost.
func TestAtomics(t *testing.T) {
	needCompiler(t)
	x := make([]float32, 256)
	var sum float32
	positive := 0
	for i := range x {
		x[i] = float32(i%11) - 5
		sum += x[i]
		if x[i] > 0 {
			positive++
		}
	}
	p := &artifact.Program{
		Name: "tally", Source: atomicSource, Workspace: 4 * 1024, Inputs: []int{0}, Outputs: []int{1, 2, 3},
		Kernels: []artifact.Kernel{{Name: "tally", Block: artifact.Block{Threads: 64}, Params: []artifact.Param{
			{Name: "x", Elem: "f32", Mode: artifact.In},
			{Name: "sum", Elem: "f32", Mode: artifact.InOut},
			{Name: "count", Elem: "i32", Mode: artifact.InOut},
			{Name: "half", Elem: "f16", Mode: artifact.InOut},
		}}},
		Buffers: []artifact.Buffer{
			{Name: "x", Elem: "f32", Shape: []int64{256}, Kind: artifact.Input, Bytes: 1024},
			{Name: "sum", Elem: "f32", Kind: artifact.Output, Offset: 1024, Bytes: 4},
			{Name: "count", Elem: "i32", Kind: artifact.Output, Offset: 2048, Bytes: 4},
			{Name: "half", Elem: "f16", Shape: []int64{3}, Kind: artifact.Output, Offset: 3072, Bytes: 6},
		},
	}
	for b := 1; b < 4; b++ {
		p.Steps = append(p.Steps, artifact.Step{Name: fmt.Sprint("zero ", b), Kind: artifact.StepFill, Move: artifact.Move{To: b}})
	}
	p.Steps = append(p.Steps, artifact.Step{Name: "tally", Kind: artifact.StepLaunch, Launch: artifact.Launch{Grid: artifact.Grid{4, 1, 1}, Args: []artifact.Arg{{Buffer: 0}, {Buffer: 1}, {Buffer: 2}, {Buffer: 3}}}})
	r, err := Run(t.Context(), p, [][]byte{floats(x...)}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := toFloats(r.Outputs[0])[0]; got != sum {
		t.Errorf("the sum is %v, want %v", got, sum)
	}
	if got := int(binary.LittleEndian.Uint32(r.Outputs[1])); got != positive {
		t.Errorf("%d positive numbers, want %d", got, positive)
	}
	for k, h := range toHalves(r.Outputs[2]) {
		if got, want := smalls[0].value(int(h)), float64((256+2-k)/3); got != want {
			t.Errorf("counter %d is %v, want %v", k, got, want)
		}
	}
	if s := r.Steps[3]; s.Params[1] != (ParamReport{"sum", 4, 4, 2048}) {
		t.Errorf("the sum moves %+v", s.Params[1])
	}
}

const lastBlockSource = `#include "dm.cuh"
DM_KERNEL(total, 64)(dm::In<float> x, dm::InOut<float> parts, dm::InOut<dm::u32> counter, dm::Out<float> sum) {
  DM_SHARED(float, s, 32);
  float v = dm::block_sum(x[dm::block() * 64 + dm::thread()], s);
  if (dm::thread() == 0) parts.store(dm::block(), v);
  if (WAIT) return;
  v = dm::thread() < dm::blocks() ? parts[dm::thread()] : 0.0f; // here
  v = dm::block_sum(v, s);
  if (dm::thread() == 0) sum.store(0, v);
}
`

// The last block of a launch may read what the others have written; another one may not.
func TestLastBlock(t *testing.T) {
	needCompiler(t)
	x := make([]float32, 256)
	var sum float32
	for i := range x {
		x[i] = float32(i % 17)
		sum += x[i]
	}
	for _, wait := range []string{"!dm::last_block(counter, 0, dm::u32(dm::blocks()))", "dm::block() < dm::blocks() - 1"} {
		p := &artifact.Program{
			Name: "total", Source: strings.Replace(lastBlockSource, "WAIT", wait, 1), Workspace: 4 * 1024, Inputs: []int{0}, Outputs: []int{3, 2},
			Kernels: []artifact.Kernel{{Name: "total", Block: artifact.Block{Threads: 64}, Params: []artifact.Param{
				{Name: "x", Elem: "f32", Mode: artifact.In},
				{Name: "parts", Elem: "f32", Mode: artifact.InOut},
				{Name: "counter", Elem: "ui32", Mode: artifact.InOut},
				{Name: "sum", Elem: "f32", Mode: artifact.Out},
			}}},
			Buffers: []artifact.Buffer{
				{Name: "x", Elem: "f32", Shape: []int64{256}, Kind: artifact.Input, Bytes: 1024},
				{Name: "parts", Elem: "f32", Shape: []int64{4}, Kind: artifact.Temp, Offset: 1024, Bytes: 16},
				{Name: "counter", Elem: "ui32", Kind: artifact.Output, Offset: 2048, Bytes: 4},
				{Name: "sum", Elem: "f32", Kind: artifact.Output, Offset: 3072, Bytes: 4},
			},
			Steps: []artifact.Step{
				{Name: "zero", Kind: artifact.StepFill, Move: artifact.Move{To: 2}},
				{Name: "total", Kind: artifact.StepLaunch, Launch: artifact.Launch{Grid: artifact.Grid{4, 1, 1}, Args: []artifact.Arg{{Buffer: 0}, {Buffer: 1}, {Buffer: 2}, {Buffer: 3}}}},
			},
		}
		p.Steps = append(p.Steps, p.Steps[1]) // the counter is 0 again
		p.Steps[2].Name = "total again"
		r, err := Run(t.Context(), p, [][]byte{floats(x...)}, Options{})
		if strings.HasPrefix(wait, "!") {
			if err != nil {
				t.Fatal(err)
			}
			if got := toFloats(r.Outputs[0])[0]; got != sum || binary.LittleEndian.Uint32(r.Outputs[1]) != 0 {
				t.Errorf("the sum is %v, want %v; the counter is %v", got, sum, r.Outputs[1])
			}
			continue
		}
		var f *Fault
		if !errors.As(err, &f) || f.Kind != Race || f.Param != "parts" || f.Line != 7 {
			t.Errorf("the last block does not wait: got %v", err)
		}
	}
}
