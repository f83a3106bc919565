//go:build unix

package emulator

import (
	"syscall"
	"testing"
	"time"

	"dmir/gpu/artifact"
)

// benchSource has kernels that do little but touch memory: n is 2^18 numbers.
const benchSource = `#include "dm.cuh"
DM_KERNEL(pointwise, 256)(dm::In<float> x, dm::Out<float> y) {
  dm::i64 i = dm::i64(dm::block()) * 256 + dm::thread();
  y.store(i, x[i] + 1.0f);
}
DM_KERNEL(vectors, 256)(dm::In<dm::f16> x, dm::Out<dm::f16> y) {
  dm::i64 i = (dm::i64(dm::block()) * 256 + dm::thread()) * 8;
  auto v = x.load<8>(i);
  for (int k = 0; k < 8; k++) v[k] = dm::narrow<dm::f16>(dm::wide(v[k]) + 1.0f);
  y.store(i, v);
}
DM_KERNEL(shared, 256)(dm::In<float> x, dm::Out<float> y) {
  DM_SHARED(float, s, 256);
  dm::i64 i = dm::i64(dm::block()) * 256 + dm::thread();
  s[dm::thread()] = x[i];
  dm::sync();
  float sum = 0;
  for (int k = 0; k < 64; k++) sum += s[(dm::thread() + k) & 255];
  y.store(i, sum);
}
DM_KERNEL(products, 128)(dm::In<dm::f16> x, dm::Out<float> y) {
  DM_SHARED(dm::f16, s, 1024);
  s.store<8>(dm::thread() * 8, x.load<8>(dm::thread() * 8));
  dm::sync();
  dm::u32 a[4], b[4];
  float d[4] = {};
  for (int k = 0; k < 64; k++) {
    dm::ldmatrix_x4(a, s, dm::lane() * 8 + (k & 3) * 256);
    dm::ldmatrix_x4_trans(b, s, dm::lane() * 8);
    for (int j = 0; j < 4; j++) dm::mma_m16n8k16<dm::f16>(d, a, {b[0], b[1]});
  }
  for (int k = 0; k < 4; k++) y.store((dm::i64(dm::block()) * 128 + dm::thread()) * 4 + k, d[k]);
}
`

// childTime is the processor time of the processes that have ended.
func childTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkAccess reports checked accesses (and mma of a warp) per second.
func BenchmarkAccess(b *testing.B) {
	if err := Check(); err != nil {
		b.Skip(err)
	}
	const n = 1 << 18
	for _, c := range []struct {
		name, elem, out string
		threads, grid   int
		count           float64 // of one launch
		unit            string
	}{
		{"pointwise", "f32", "f32", 256, n / 256, 2 * n, "accesses/s"},
		{"vectors", "f16", "f16", 256, n / 2048, 2 * n / 8, "accesses/s"},
		{"shared", "f32", "f32", 256, n / 256, 67 * n, "accesses/s"},
		{"products", "f16", "f32", 128, n / 512, n / 512 * 4 * 64 * 4, "mma/s"},
	} {
		b.Run(c.name, func(b *testing.B) {
			p := &artifact.Program{
				Name: "bench", Source: benchSource, Workspace: 8 * n, Inputs: []int{0}, Outputs: []int{1},
				Kernels: []artifact.Kernel{{Name: c.name, Block: artifact.Block{Threads: c.threads}, Params: []artifact.Param{{Name: "x", Elem: c.elem, Mode: artifact.In}, {Name: "y", Elem: c.out, Mode: artifact.Out}}}},
				Buffers: []artifact.Buffer{{Name: "x", Elem: c.elem, Shape: []int64{n}, Kind: artifact.Input, Bytes: 4 * n}, {Name: "y", Elem: c.out, Shape: []int64{n}, Kind: artifact.Output, Offset: 4 * n, Bytes: 4 * n}},
			}
			size, _ := artifact.ElemBytes(c.elem)
			const launches = 2
			for range launches {
				p.Steps = append(p.Steps, artifact.Step{Name: c.name, Kind: artifact.StepLaunch, Launch: artifact.Launch{Grid: artifact.Grid{c.grid, 1, 1}, Args: []artifact.Arg{{Buffer: 0}, {Buffer: 1}}}})
			}
			x := [][]byte{make([]byte, size*n)}
			if _, err := Run(b.Context(), p, x, Options{}); err != nil { // compile it
				b.Fatal(err)
			}
			took := -childTime()
			for b.Loop() {
				if _, err := Run(b.Context(), p, x, Options{}); err != nil {
					b.Fatal(err)
				}
			}
			took += childTime()
			b.ReportMetric(c.count*launches*float64(b.N)/took.Seconds(), c.unit)
		})
	}
}
