package devicetest

import (
	"fmt"
	"strings"

	"dmir/gpu/artifact"
	"dmir/gpu/device"
)

// double writes a program of one kernel, twice, in the language of a target: y = x + x
// for n floats.
type double struct {
	target string
	source func(store string) string
	tasks  int // of a launch
	block  int // threads of a block
	// store is what each element does: right as it is, and far outside its buffer.
	store, fault string
}

// n is the number of elements.
const n = 100

// doubleOf is the program for the device: GPUs and the emulator take CUDA C++, and
// processors LLVM IR.
func doubleOf(d device.Device) double {
	if a := d.Arch(); a == "" || strings.HasPrefix(a, "sm_") {
		return inCUDA
	}
	return inLLVM
}

var inCUDA = double{
	target: "cuda", tasks: (n + 63) / 64, block: 64,
	source: func(store string) string {
		return "#include \"dm.cuh\"\n#line 3 \"double.dmir\"\nDM_KERNEL(twice, 64)(dm::In<float> x, dm::Out<float> y) {\n  const dm::i32 i = dm::block() * 64 + dm::thread();\n  " + store + "\n}\n"
	},
	store: "if (i < 100) y.store(i, x[i] + x[i]);",
	fault: "y.store(i + (1 << 30), x[i < 100 ? i : 0]);",
}

var inLLVM = double{
	target: artifact.LLVM, tasks: n, block: 1,
	source: func(store string) string { return fmt.Sprintf(llvmText, store) },
	store:  "0",
	fault:  "1099511627776",
}

const llvmText = `define void @twice(i8** %%args, i64 %%first, i64 %%last, i8* %%scratch) {
entry:
  %%px = load i8*, i8** %%args
  %%ay = getelementptr i8*, i8** %%args, i64 1
  %%py = load i8*, i8** %%ay
  %%x = bitcast i8* %%px to float*
  %%y = bitcast i8* %%py to float*
  br label %%loop
loop:
  %%i = phi i64 [ %%first, %%entry ], [ %%next, %%loop ]
  %%at = getelementptr float, float* %%x, i64 %%i
  %%v = load float, float* %%at
  %%w = fadd float %%v, %%v
  %%j = add i64 %%i, %s
  %%to = getelementptr float, float* %%y, i64 %%j
  store float %%w, float* %%to
  %%next = add i64 %%i, 1
  %%more = icmp slt i64 %%next, %%last
  br i1 %%more, label %%loop, label %%end
end:
  ret void
}
`

func (d double) right() *artifact.Program { return d.program(d.store) }

// wrong is the program with a fault.
func (d double) wrong() *artifact.Program { return d.program(d.fault) }

func (d double) program(store string) *artifact.Program {
	const bytes, at = 4 * n, (4*n + 255) &^ 255
	source := d.source(store)
	return &artifact.Program{
		Name: "double", Target: d.target, File: "double.dmir", Source: source,
		Kernels:   []artifact.Kernel{{Name: "twice", Class: "pointwise", Block: artifact.Block{Threads: d.block}, Params: []artifact.Param{{Name: "x", Elem: "f32", Mode: artifact.In}, {Name: "y", Elem: "f32", Mode: artifact.Out}}, Lines: []int{3}, First: 1, Last: strings.Count(source, "\n")}},
		Steps:     []artifact.Step{{Name: "twice", Kind: artifact.StepLaunch, Launch: artifact.Launch{Grid: artifact.Grid{d.tasks, 1, 1}, Args: []artifact.Arg{{Buffer: 0}, {Buffer: 1}}}, ReadBytes: bytes, WrittenBytes: bytes}},
		Buffers:   []artifact.Buffer{{Name: "x", Elem: "f32", Shape: []int64{n}, Kind: artifact.Input, Bytes: bytes, First: -1, Last: 1}, {Name: "y", Elem: "f32", Shape: []int64{n}, Kind: artifact.Output, Offset: at, Bytes: bytes, Last: 1}},
		Workspace: 2 * at, Inputs: []int{0}, Outputs: []int{1},
	}
}
