package native

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"

	"dmir/gpu/artifact"
	"dmir/testkit/need"
)

// kernel is IR of a kernel whose task i stores %r, of a type, to the i-th element of its
// last parameter. body computes it from %0, %1, …, the i-th elements of the parameters.
func kernel(name string, types []string, body string) string {
	var b strings.Builder
	f := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	f("define void @%s(i8** %%args, i64 %%first, i64 %%last, i8* %%scratch) {\nentry:", name)
	for i, t := range types {
		f("  %%a%d = getelementptr i8*, i8** %%args, i64 %d\n  %%b%d = load i8*, i8** %%a%d\n  %%p%d = bitcast i8* %%b%d to %s*", i, i, i, i, i, i, t)
	}
	f("  br label %%loop\nloop:\n  %%i = phi i64 [ %%first, %%entry ], [ %%next, %%loop ]")
	for i, t := range types {
		f("  %%at%d = getelementptr %s, %s* %%p%d, i64 %%i\n  %%v%d = load %s, %s* %%at%d", i, t, t, i, i, t, t, i)
	}
	last := len(types) - 1
	f("  %s\n  store %s %%r, %s* %%at%d", strings.ReplaceAll(body, "\n", "\n  "), types[last], types[last], last)
	f("  %%next = add i64 %%i, 1\n  %%more = icmp slt i64 %%next, %%last\n  br i1 %%more, label %%loop, label %%end\nend:\n  ret void\n}")
	return b.String()
}

// builder puts a program together.
type builder struct{ *artifact.Program }

func program(name string) *builder {
	return &builder{&artifact.Program{Name: name, Target: "llvm", File: name + ".dmir"}}
}

// buffer adds a buffer of n elements with memory of its own, which lives all the time.
func (b *builder) buffer(name, elem string, kind artifact.Kind, n int64) int {
	size, _ := artifact.ElemBytes(elem)
	b.Buffers = append(b.Buffers, artifact.Buffer{Name: name, Elem: elem, Shape: []int64{n}, Kind: kind, Offset: b.Workspace, Bytes: n * size, First: -1, Last: math.MaxInt})
	b.Workspace = aligned(b.Workspace+n*size, artifact.Alignment)
	at := len(b.Buffers) - 1
	switch kind {
	case artifact.Input:
		b.Inputs = append(b.Inputs, at)
	case artifact.Output:
		b.Outputs = append(b.Outputs, at)
	case artifact.Temp, artifact.Constant:
	}
	return at
}

var irTypes = map[string]string{"f64": "double", "f32": "float", "f16": "half", "i32": "i32", "i1": "i8"}

// launch adds a kernel and a step that runs it on all elements of its last buffer.
func (b *builder) launch(name, body string, buffers ...int) {
	var types []string
	var params []artifact.Param
	var args []artifact.Arg
	for i, n := range buffers {
		buf := &b.Buffers[n]
		mode := artifact.In
		if i == len(buffers)-1 {
			mode = artifact.InOut
		}
		types = append(types, irTypes[buf.Elem])
		params = append(params, artifact.Param{Name: buf.Name, Elem: buf.Elem, Mode: mode})
		args = append(args, artifact.Arg{Buffer: n})
	}
	b.Source += kernel(name, types, body)
	n := int(b.Buffers[buffers[len(buffers)-1]].Shape[0])
	b.Kernels = append(b.Kernels, artifact.Kernel{Name: name, Class: "pointwise", Block: artifact.Block{Threads: 1}, Params: params, Lines: []int{len(b.Kernels) + 1}})
	b.Steps = append(b.Steps, artifact.Step{Name: name, Kind: artifact.StepLaunch, Launch: artifact.Launch{Kernel: len(b.Kernels) - 1, Grid: artifact.Grid{n, 1, 1}, Args: args}})
}

func (b *builder) copy(to, from int) {
	b.Steps = append(b.Steps, artifact.Step{Name: fmt.Sprintf("copy %d", len(b.Steps)), Kind: artifact.StepCopy, Move: artifact.Move{To: to, From: from}})
}

func (b *builder) fill(to int) {
	b.Steps = append(b.Steps, artifact.Step{Name: fmt.Sprintf("fill %d", len(b.Steps)), Kind: artifact.StepFill, Move: artifact.Move{To: to}})
}

func (b *builder) decide(kind artifact.StepKind, d artifact.Decision) {
	b.Steps = append(b.Steps, artifact.Step{Name: fmt.Sprintf("decision %d", len(b.Steps)), Kind: kind, Decision: d})
}

// done is the program, with lifetimes of buffers from the first to the last step.
func (b *builder) done() *artifact.Program {
	for i := range b.Buffers {
		buf := &b.Buffers[i]
		if buf.Last = len(b.Steps); buf.Kind == artifact.Temp || buf.Kind == artifact.Output {
			buf.First = 0
		}
		if buf.Kind == artifact.Output || buf.Kind == artifact.Temp {
			buf.Filled = true // kernels here read what they write
		}
	}
	return b.Program
}

// doubled is y = x + x for n numbers.
func doubled(n int64) *artifact.Program {
	b := program("double")
	x, y := b.buffer("x", "f32", artifact.Input, n), b.buffer("y", "f32", artifact.Output, n)
	b.launch("twice", "%r = fadd float %v0, %v0", x, y)
	return b.done()
}

// power is y = x · 2^k for n numbers, in a loop that counts to k, negated if the flag is
// set; with a constant and a repetition y is then multiplied by 3 twice.
func power(n int64) *artifact.Program {
	b := program("power")
	x, k, flag := b.buffer("x", "f32", artifact.Input, n), b.buffer("k", "i32", artifact.Input, 1), b.buffer("flag", "i1", artifact.Input, 1)
	three := b.buffer("three", "f32", artifact.Constant, n)
	b.Buffers[three].Data = floats(repeated(3, n)...)
	i, again, y := b.buffer("i", "i32", artifact.Temp, 1), b.buffer("again", "i1", artifact.Temp, 1), b.buffer("y", "f32", artifact.Output, n)
	b.copy(y, x)
	b.fill(i)
	b.decide(artifact.StepLoop, artifact.Decision{On: again, Parts: [2]int{1, 2}})
	b.launch("below", "%c = icmp slt i32 %v0, %v1\n%r = zext i1 %c to i8", i, k, again)
	b.launch("grow", "%r = fadd float %v0, %v0", y)
	b.launch("count", "%r = add i32 %v0, 1", i)
	b.decide(artifact.StepBranch, artifact.Decision{On: flag, Parts: [2]int{1, 0}})
	b.launch("negate", "%r = fneg float %v0", y)
	b.decide(artifact.StepRepeat, artifact.Decision{Parts: [2]int{0, 1}, Trips: 2, TripsKnown: true})
	b.launch("triple", "%r = fmul float %v0, %v1", three, y)
	return b.done()
}

// step is a step of training: w' = w + x in place, v' = v + w' in other memory, and the
// loss w' + v'.
func step(n int64) *artifact.Program {
	b := program("step")
	w, v, x := b.buffer("w", "f32", artifact.Input, n), b.buffer("v", "f32", artifact.Input, n), b.buffer("x", "f32", artifact.Input, n)
	next, loss := b.buffer("next", "f32", artifact.Output, n), b.buffer("loss", "f32", artifact.Output, n)
	b.launch("update", "%r = fadd float %v0, %v1", x, w)
	b.launch("velocity", "%r = fadd float %v0, %v1", v, w, next)
	b.launch("sum", "%r = fadd float %v0, %v1", w, next, loss)
	b.Outputs = []int{w, next, loss}
	b.State = []int{0, 1, -1}
	return b.done()
}

// swap returns its two arguments in the other order, each the next value of the other.
func swap() *artifact.Program {
	b := program("swap")
	x, y, n := b.buffer("x", "f32", artifact.Input, 3), b.buffer("y", "f32", artifact.Input, 3), b.buffer("n", "f32", artifact.Output, 3)
	b.launch("first", "%r = fadd float %v0, 0.0", x, n)
	b.Outputs = []int{y, x, n}
	b.State = []int{0, 1, -1}
	return b.done()
}

func repeated(v float32, n int64) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = v
	}
	return out
}

func floats(list ...float32) []byte {
	var out []byte
	for _, v := range list {
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(v))
	}
	return out
}

func numbers(b []byte) []float32 {
	var out []float32
	for ; len(b) >= 4; b = b[4:] {
		out = append(out, math.Float32frombits(binary.LittleEndian.Uint32(b)))
	}
	return out
}

func ramp(n int64) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = float32(i%1000) / 8
	}
	return out
}

// cached makes the test use a cache of its own.
func cached(t testing.TB) (dir string) {
	t.Helper()
	dir = t.TempDir()
	t.Setenv("DMIR_CACHE", dir)
	return dir
}

// toolless is a test without compilers, and the folder that is its PATH.
func toolless(t *testing.T) (dir string) {
	t.Helper()
	if _, ok := Host(); !ok || !supported {
		need.OK(t, errHost)
	}
	dir = t.TempDir()
	t.Setenv("PATH", dir)
	t.Setenv("DMIR_CLANG", "")
	t.Setenv("TMPDIR", t.TempDir())
	cached(t)
	return dir
}
