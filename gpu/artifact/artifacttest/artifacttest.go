// Package artifacttest provides small programs that use all features, for tests of
// packages that read, export and run programs.
package artifacttest

import (
	"encoding/binary"
	"math"
	"strings"

	"dmir/gpu/artifact"
)

// N is the number of elements of the program's tensors.
const N = 1000

const source = `#include "dm.cuh"

#line 3 "scale.dmir"
DM_KERNEL(scaled, 256)(dm::In<float> x, dm::In<float> c, dm::Out<float> y) {
  dm::i64 i = (dm::i64)dm::block() * 256 + dm::thread();
  if (i < 1000) y.store(i, x[i] * c[0]);
}

#line 4 "scale.dmir"
DM_KERNEL(total, 128)(dm::In<float> y, dm::InOut<float> s) {
  DM_ARENA(arena);
  auto scratch = arena.take<float>(32);
  float sum = 0;
  for (dm::i64 i = dm::thread(); i < 1000; i += 128) sum += y[i];
  sum = dm::block_sum(sum, scratch);
  if (dm::thread() == 0) s.add(0, sum);
}

#line 5 "scale.dmir"
DM_KERNEL(negated, 256)(dm::In<float> x, dm::Out<float> z) {
  dm::i64 i = (dm::i64)dm::block() * 256 + dm::thread();
  if (i < 1000) z.store(i, -x[i]);
}

#line 6 "scale.dmir"
DM_KERNEL(joined, 256)(dm::In<float> y, dm::In<float> z, dm::In<float> s, dm::Out<float> out) {
  dm::i64 i = (dm::i64)dm::block() * 256 + dm::thread();
  if (i < 1000) out.store(i, y[i] + z[i] + s[0]);
}
`

// Program computes, for %x of N numbers, %out = 3 x + (-x) + sum(3 x), and
// returns %out and the sum. It has a constant, a fill, a buffer that is written
// in place, dynamic shared memory, and a second stream. Each call gives a new one.
func Program() *artifact.Program {
	three := binary.LittleEndian.AppendUint32(nil, math.Float32bits(3))
	in, out, inout := artifact.In, artifact.Out, artifact.InOut
	p := &artifact.Program{
		Name: "scale", Target: "cuda", File: "scale.dmir", Source: source, Workspace: 4*4096 + 2*256,
		Kernels: []artifact.Kernel{
			{Name: "scaled", Class: "pointwise", Block: artifact.Block{Threads: 256}, Lines: []int{3}, Params: params("x", in, "c", in, "y", out)},
			{Name: "total", Class: "reduction", Block: artifact.Block{Threads: 128, Shared: 128}, Lines: []int{4}, Params: params("y", in, "s", inout)},
			{Name: "negated", Class: "pointwise", Block: artifact.Block{Threads: 256}, Lines: []int{5}, Params: params("x", in, "z", out)},
			{Name: "joined", Class: "pointwise", Block: artifact.Block{Threads: 256}, Lines: []int{6}, Params: params("y", in, "z", in, "s", in, "out", out)},
		},
		Buffers: []artifact.Buffer{
			{Name: "x", Elem: "f32", Shape: []int64{N}, Kind: artifact.Input, Offset: 0, Bytes: 4 * N, First: -1, Last: 2},
			{Name: "c", Elem: "f32", Kind: artifact.Constant, Offset: 4 * 4096, Bytes: 4, Data: three, First: -1, Last: 5},
			{Name: "s", Elem: "f32", Kind: artifact.Output, Offset: 4*4096 + 256, Bytes: 4, First: 0, Last: 5},
			{Name: "y", Elem: "f32", Shape: []int64{N}, Kind: artifact.Temp, Offset: 4096, Bytes: 4 * N, First: 1, Last: 4},
			{Name: "z", Elem: "f32", Shape: []int64{N}, Kind: artifact.Temp, Offset: 2 * 4096, Bytes: 4 * N, First: 2, Last: 4},
			{Name: "out", Elem: "f32", Shape: []int64{N}, Kind: artifact.Output, Offset: 3 * 4096, Bytes: 4 * N, First: 4, Last: 5},
		},
		Steps: []artifact.Step{
			{Name: "zero s", Kind: artifact.StepFill, Move: artifact.Move{To: 2}, WrittenBytes: 4, TimeNs: 1000},
			{Name: "scaled", Kind: artifact.StepLaunch, Launch: artifact.Launch{Grid: artifact.Grid{4, 1, 1}, Args: args(0, 1, 3)}, FLOP: N, ReadBytes: 4*N + 4, WrittenBytes: 4 * N, TimeNs: 2000},
			{Name: "negated", Kind: artifact.StepLaunch, Launch: artifact.Launch{Kernel: 2, Grid: artifact.Grid{4, 1, 1}, Args: args(0, 4)}, Stream: 1, ReadBytes: 4 * N, WrittenBytes: 4 * N, TimeNs: 2000},
			{Name: "total", Kind: artifact.StepLaunch, Launch: artifact.Launch{Kernel: 1, Grid: artifact.Grid{1, 1, 1}, Args: args(3, 2)}, FLOP: N, ReadBytes: 4*N + 4, WrittenBytes: 4, TimeNs: 2000},
			{Name: "joined", Kind: artifact.StepLaunch, Launch: artifact.Launch{Kernel: 3, Grid: artifact.Grid{4, 1, 1}, Args: args(3, 4, 2, 5)}, Waits: []int{2}, FLOP: 2 * N, ReadBytes: 8*N + 4, WrittenBytes: 4 * N, TimeNs: 2000},
		},
		Inputs: []int{0}, Outputs: []int{5, 2},
	}
	for i := range p.Kernels { // its lines in the source, to the closing brace
		k := &p.Kernels[i]
		before, after, _ := strings.Cut(source, "DM_KERNEL("+k.Name)
		k.First = strings.Count(before, "\n") + 1
		body, _, _ := strings.Cut(after, "\n}\n")
		k.Last = k.First + strings.Count(body, "\n") + 1
	}
	return p
}

func params(list ...any) []artifact.Param {
	var out []artifact.Param
	for i := 0; i < len(list); i += 2 {
		out = append(out, artifact.Param{Name: list[i].(string), Elem: "f32", Mode: list[i+1].(artifact.Mode)})
	}
	return out
}

func args(buffers ...int) []artifact.Arg {
	var out []artifact.Arg
	for _, b := range buffers {
		out = append(out, artifact.Arg{Buffer: b})
	}
	return out
}
