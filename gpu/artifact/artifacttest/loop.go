package artifacttest

import (
	"strings"

	"dmir/gpu/artifact"
)

const loopSource = `#include "dm.cuh"

DM_KERNEL(below, 1)(dm::In<dm::i32> n, dm::In<dm::i32> k, dm::Out<bool> go) {
  go.store(0, n[0] < k[0]);
}

DM_KERNEL(twice, 256)(dm::In<float> x, dm::Out<float> y) {
  dm::i64 i = (dm::i64)dm::block() * 256 + dm::thread();
  if (i < 1000) y.store(i, x[i] + x[i]);
}

DM_KERNEL(next, 1)(dm::InOut<dm::i32> n) {
  n.store(0, n[0] + 1);
}

DM_KERNEL(negated, 256)(dm::In<float> x, dm::Out<float> y) {
  dm::i64 i = (dm::i64)dm::block() * 256 + dm::thread();
  if (i < 1000) y.store(i, -x[i]);
}
`

// Loop is a program with decisions: y = x · 2^max(k, 0) for N numbers x and an i32 k,
// negated if the i1 flag is true. It returns y. Each call gives a new one.
func Loop() *artifact.Program {
	in, out, inout := artifact.In, artifact.Out, artifact.InOut
	number := func(name string, m artifact.Mode) artifact.Param {
		return artifact.Param{Name: name, Elem: "i32", Mode: m}
	}
	p := &artifact.Program{
		Name: "power", Target: "cuda", File: "power.dmir", Source: loopSource, Workspace: 3*4096 + 4*256,
		Kernels: []artifact.Kernel{
			{Name: "below", Class: "pointwise", Block: artifact.Block{Threads: 1}, Params: []artifact.Param{number("n", in), number("k", in), {Name: "go", Elem: "i1", Mode: out}}},
			{Name: "twice", Class: "pointwise", Block: artifact.Block{Threads: 256}, Params: params("x", in, "y", out)},
			{Name: "next", Class: "pointwise", Block: artifact.Block{Threads: 1}, Params: []artifact.Param{number("n", inout)}},
			{Name: "negated", Class: "pointwise", Block: artifact.Block{Threads: 256}, Params: params("x", in, "y", out)},
		},
		Buffers: []artifact.Buffer{
			{Name: "x", Elem: "f32", Shape: []int64{N}, Kind: artifact.Input, Bytes: 4 * N, First: -1, Last: 0},
			{Name: "k", Elem: "i32", Kind: artifact.Input, Offset: 3 * 4096, Bytes: 4, First: -1, Last: 6},
			{Name: "flag", Elem: "i1", Kind: artifact.Input, Offset: 3*4096 + 256, Bytes: 1, First: -1, Last: 7},
			{Name: "n", Elem: "i32", Kind: artifact.Temp, Offset: 3*4096 + 512, Bytes: 4, First: 1, Last: 6},
			{Name: "go", Elem: "i1", Kind: artifact.Temp, Offset: 3*4096 + 768, Bytes: 1, First: 3, Last: 3},
			{Name: "y", Elem: "f32", Shape: []int64{N}, Kind: artifact.Output, Offset: 4096, Bytes: 4 * N, First: 0, Last: 10},
			{Name: "w", Elem: "f32", Shape: []int64{N}, Kind: artifact.Temp, Offset: 2 * 4096, Bytes: 4 * N, First: 4, Last: 5},
			{Name: "v", Elem: "f32", Shape: []int64{N}, Kind: artifact.Temp, Offset: 2 * 4096, Bytes: 4 * N, First: 8, Last: 9},
		},
		Steps: []artifact.Step{
			{Name: "y = x", Kind: artifact.StepCopy, Move: artifact.Move{To: 5, From: 0}, ReadBytes: 4 * N, WrittenBytes: 4 * N, TimeNs: 1000},
			{Name: "zero n", Kind: artifact.StepFill, Move: artifact.Move{To: 3}, WrittenBytes: 4, TimeNs: 1000},
			{Name: "while", Kind: artifact.StepLoop, Decision: artifact.Decision{On: 4, Parts: [2]int{1, 3}, Trips: 3, TripsKnown: true}, TimeNs: 1000},
			{Name: "below", Kind: artifact.StepLaunch, Launch: artifact.Launch{Grid: artifact.Grid{1, 1, 1}, Args: args(3, 1, 4)}, ReadBytes: 8, WrittenBytes: 1, TimeNs: 1000},
			{Name: "twice", Kind: artifact.StepLaunch, Launch: artifact.Launch{Kernel: 1, Grid: artifact.Grid{4, 1, 1}, Args: args(5, 6)}, FLOP: N, ReadBytes: 4 * N, WrittenBytes: 4 * N, TimeNs: 2000},
			{Name: "y = w", Kind: artifact.StepCopy, Move: artifact.Move{To: 5, From: 6}, ReadBytes: 4 * N, WrittenBytes: 4 * N, TimeNs: 1000},
			{Name: "next", Kind: artifact.StepLaunch, Launch: artifact.Launch{Kernel: 2, Grid: artifact.Grid{1, 1, 1}, Args: args(3)}, ReadBytes: 4, WrittenBytes: 4, TimeNs: 1000},
			{Name: "if", Kind: artifact.StepBranch, Decision: artifact.Decision{On: 2, Parts: [2]int{2, 0}}, TimeNs: 1000},
			{Name: "negated", Kind: artifact.StepLaunch, Launch: artifact.Launch{Kernel: 3, Grid: artifact.Grid{4, 1, 1}, Args: args(5, 7)}, ReadBytes: 4 * N, WrittenBytes: 4 * N, TimeNs: 2000},
			{Name: "y = v", Kind: artifact.StepCopy, Move: artifact.Move{To: 5, From: 7}, ReadBytes: 4 * N, WrittenBytes: 4 * N, TimeNs: 1000},
		},
		Inputs: []int{0, 1, 2}, Outputs: []int{5},
	}
	for i := range p.Kernels {
		k := &p.Kernels[i]
		before, after, _ := strings.Cut(loopSource, "DM_KERNEL("+k.Name)
		k.First = strings.Count(before, "\n") + 1
		body, _, _ := strings.Cut(after, "\n}\n")
		k.Last = k.First + strings.Count(body, "\n") + 1
		k.Lines = []int{k.First}
	}
	return p
}

// Repeat is Loop with a repetition in place of the loop: y = x · 2^n for N numbers
// x, whatever k, negated if the flag is true.
func Repeat(n int64) *artifact.Program {
	p := Loop()
	p.Steps[2] = artifact.Step{Name: "repeat", Kind: artifact.StepRepeat, Decision: artifact.Decision{Parts: [2]int{0, 4}, Trips: n, TripsKnown: true}}
	return p
}
