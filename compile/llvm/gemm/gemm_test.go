package gemm_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"unsafe"

	"dmir/analysis/blocks"
	"dmir/compile/llvm/gemm"
	"dmir/gpu/dylib"
	"dmir/testkit/need"

	"github.com/x448/float16"
	"golang.org/x/sys/cpu"
)

// arches are the architectures that plans know.
var arches = []struct {
	name, target string
	here         bool // this machine runs it
}{
	{"x86-64-v4", "x86_64-linux-gnu", x86(cpu.X86.HasAVX512F, cpu.X86.HasAVX512BW, cpu.X86.HasAVX512DQ, cpu.X86.HasAVX512VL)},
	{"x86-64-v3", "x86_64-linux-gnu", x86(cpu.X86.HasAVX2, cpu.X86.HasFMA)},
	{"x86-64-v2", "x86_64-linux-gnu", x86(cpu.X86.HasSSE42)},
	{"armv8-a", "aarch64-linux-gnu", runtime.GOARCH == "arm64"},
}

func x86(features ...bool) bool {
	return runtime.GOARCH == "amd64" && !slices.Contains(features, false)
}

// shape is a product that is tested.
func shape(batch, rows, cols, depth int64, more ...func(*blocks.Shape)) blocks.Shape {
	s := blocks.Shape{Batch: batch, Rows: rows, Cols: cols, Depth: depth, Products: 1, B: blocks.Outer}
	for _, m := range more {
		m(&s)
	}
	return s
}

func acc(a blocks.Acc) func(*blocks.Shape) { return func(s *blocks.Shape) { s.Acc = a } }

// along sets the axes along which the operands' neighbours lie.
func along(a, b blocks.Axis) func(*blocks.Shape) { return func(s *blocks.Shape) { s.A, s.B = a, b } }

func half(s *blocks.Shape) { s.Half = true }

func two(s *blocks.Shape) { s.Products = 2 }

// window is a window of rows × columns that moves by step along lines of the planes' length.
func window(line, rows, columns, step int64) func(*blocks.Shape) {
	return func(s *blocks.Shape) {
		shared := min(step, columns)
		w := &blocks.Window{Line: line, Step: step, Planes: min(step, rows) * shared, Shared: shared}
		for y := range rows {
			for x := range columns {
				w.Taps = append(w.Taps, blocks.Tap{Plane: y%step*shared + x%step, Shift: y/step*line + x/step})
			}
		}
		s.Window = w
		s.Depth *= int64(len(w.Taps))
	}
}

// imageLines is the lines of an image of which each has what a line of all its planes has.
func imageLines(s blocks.Shape) int64 {
	most := int64(0)
	for _, t := range s.Window.Taps {
		most = max(most, t.Shift)
	}
	return (s.Cols+most)/s.Window.Line + 1
}

// imageAt is where the image has the element of B at z, n and k.
func imageAt(s blocks.Shape, z, n, k int64) int64 {
	w := s.Window
	taps := int64(len(w.Taps))
	t := w.Taps[k%taps]
	at := n + t.Shift
	channel := z*(s.Depth/taps) + k/taps
	line := (channel*(w.Planes/w.Shared)+t.Plane/w.Shared)*imageLines(s) + at/w.Line
	return line*w.Line*w.Step + at%w.Line*w.Step + t.Plane%w.Shared
}

func shapes() []blocks.Shape {
	const k, o = blocks.Depth, blocks.Outer
	out := []blocks.Shape{
		shape(1, 1, 1, 1),
		shape(2, 1, 33, 5, along(k, k)),
		shape(1, 1, 700, 130),
		shape(3, 8, 65, 67, two),
		shape(1, 5, 1100, 9, along(k, k), two),
		shape(1, 12, 37, 70, along(k, k)),
		shape(1, 13, 1, 3, along(o, k)),
		shape(1, 100, 1, 300),
		shape(1, 17, 31, 1),
		shape(2, 64, 64, 64, two),
		shape(5, 128, 128, 64, along(k, k)),
		shape(1, 300, 200, 700), // two passes, several tasks
		shape(1, 300, 200, 701, along(o, k), two),
		shape(1, 261, 600, 530, along(k, k)),
		shape(1, 520, 1030, 37, along(o, o)),
		shape(2, 33, 47, 129, half),
		shape(1, 3, 40, 1, half, along(k, k)),
		shape(2, 600, 70, 33, half, along(o, k)),
	}
	// The depth is the channels here.
	out = append(out,
		shape(1, 20, 190, 7, window(14, 3, 3, 1)),
		shape(3, 1, 700, 1, window(30, 5, 3, 1), along(k, o)),
		shape(2, 13, 90, 130, window(9, 3, 3, 1), along(k, o)),   // two passes
		shape(1, 300, 500, 70, window(25, 3, 2, 2), along(k, o)), // tasks that share copies
		shape(2, 40, 800, 12, window(40, 7, 7, 2), along(o, o)),
		shape(1, 33, 61, 5, window(61, 1, 8, 3)),
		shape(1, 5, 40, 3, window(11, 3, 1, 2), along(k, o)),
	)
	for _, a := range []blocks.Acc{blocks.F64, blocks.I32, blocks.I64} {
		out = append(out,
			shape(2, 50, 120, 9, acc(a), window(17, 3, 4, 2)),
			shape(2, 77, 61, 35, acc(a)),
			shape(1, 270, 90, 600, acc(a), along(o, k)),
			shape(2, 4, 100, 19, acc(a), two),
			shape(2, 7, 100, 18, acc(a), along(k, k)),
		)
	}
	return out
}

// TestProducts compiles all products for all architectures. Where this machine can, it
// runs them, compares them with sums in a simple loop, and those of ranges of tasks with
// those of all tasks.
func TestProducts(t *testing.T) {
	clang := need.Tool(t, "clang", "apt-get install clang")
	for i, arch := range arches {
		t.Run(arch.name, func(t *testing.T) {
			if i > 0 {
				need.Long(t)
			}
			t.Parallel()
			text := filepath.Join(t.TempDir(), "a.ll")
			if err := os.WriteFile(text, []byte(module(arch.name, shapes())), 0o600); err != nil {
				t.Fatal(err)
			}
			out := filepath.Join(filepath.Dir(text), "a.out")
			args := []string{"-Wno-override-module", "-march=" + arch.name, "-o", out, text}
			if arch.here {
				args = append(args, "-O2", "-shared", "-fPIC")
			} else {
				args = append(args, "-O1", "-S", "--target="+arch.target)
			}
			if msg, err := exec.Command(clang, args...).CombinedOutput(); err != nil {
				t.Fatalf("%v: %v\n%s", args, err, msg)
			}
			if arch.here {
				runAll(t, arch.name, out)
			}
		})
	}
}

// runAll runs the products of a library.
func runAll(t *testing.T, arch, path string) {
	lib, err := dylib.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range shapes() {
		var run kernel
		if err := lib.Bind(fmt.Sprintf("kernel%d", i), &run); err != nil {
			t.Fatal(err)
		}
		t.Run(fmt.Sprintf("%+v", s), func(t *testing.T) {
			p := gemm.Choose(s, arch)
			switch s.Acc {
			case blocks.F32:
				check[float32](t, p, run)
			case blocks.F64:
				check[float64](t, p, run)
			case blocks.I32:
				check[int32](t, p, run)
			case blocks.I64:
				check[int64](t, p, run)
			}
		})
	}
}

type kernel func(args unsafe.Pointer, first, last int64, scratch unsafe.Pointer)

type number interface {
	float32 | float64 | int32 | int64
}

// check runs a product in one range of tasks and in several.
func check[T number](t *testing.T, p gemm.Plan, run kernel) {
	s := p.Shape
	r := rand.New(rand.NewPCG(1, 2))
	fill := func(n int64) []T {
		xs := make([]T, n)
		for i := range xs {
			xs[i] = sample[T](r, s.Half)
		}
		return xs
	}
	arrays := [][]T{fill(s.Batch * s.Rows * s.Depth)}
	for range s.Products {
		n := s.Batch * s.Cols * s.Depth
		if w := s.Window; w != nil {
			n = s.Batch * s.Depth / int64(len(w.Taps)) * (w.Planes / w.Shared) * imageLines(s) * w.Line * w.Step
		}
		arrays = append(arrays, fill(n))
	}
	size := s.Batch * s.Rows * s.Cols * int64(s.Products)
	compute := func(bounds ...int64) []T {
		c := make([]T, size)
		var args []unsafe.Pointer
		for _, a := range append(slices.Clone(arrays), c) {
			args = append(args, unsafe.Pointer(&a[0]))
		}
		for i := range len(bounds) - 1 {
			memory, scratch := dirty(p.Scratch)
			run(unsafe.Pointer(&args[0]), bounds[i], bounds[i+1], scratch)
			if beyond := memory[len(memory)-guard:]; slices.Max(beyond) != 0xff || slices.Min(beyond) != 0xff {
				t.Error("stores beyond the scratch memory")
			}
		}
		runtime.KeepAlive(arrays)
		return c
	}
	c := compute(0, p.Tasks)
	compare(t, s, arrays, c)
	cuts := []int64{0}
	for at := int64(1); at < p.Tasks; at += 1 + at/2 {
		cuts = append(cuts, at)
	}
	if !slices.Equal(c, compute(append(cuts, p.Tasks)...)) {
		t.Errorf("ranges of tasks %v have other results than all tasks", cuts)
	}
}

// sample is a random operand: a small integer or fraction whose sums wrap, or, where sums
// are rounded to f16, a value of f16 of any size.
func sample[T number](r *rand.Rand, half bool) T {
	if half {
		return T(float16.Fromfloat32(float32((r.Float64() - 0.5) * math.Exp2(float64(r.IntN(25)-16)))).Float32())
	}
	var zero T
	switch any(zero).(type) {
	case int32, int64:
		return T(r.Int32())
	}
	return T(r.Float64() - 0.5)
}

const guard = 256

// dirty is memory of size bytes at a multiple of 64, and what is behind it, which holds
// no number.
func dirty(size int64) (memory []byte, at unsafe.Pointer) {
	memory = make([]byte, size+64+guard)
	for i := range memory {
		memory[i] = 0xff
	}
	skip := -uintptr(unsafe.Pointer(&memory[0])) & 63
	return memory[:int64(skip)+size+guard], unsafe.Pointer(&memory[skip])
}

// compare compares c with sums in the order of k.
func compare[T number](t *testing.T, s blocks.Shape, arrays [][]T, c []T) {
	step := func(along blocks.Axis, rows int64) (row, k int64) {
		if along == blocks.Depth {
			return s.Depth, 1
		}
		return 1, rows
	}
	am, ak := step(s.A, s.Rows)
	bn, bk := step(s.B, s.Cols)
	for i := range c {
		n := int64(i) % s.Cols
		m := int64(i) / s.Cols % s.Rows
		z := int64(i) / s.Cols / s.Rows % s.Batch
		b := arrays[1+int64(i)/s.Cols/s.Rows/s.Batch]
		var sum T
		var size float64
		for k := range s.Depth {
			at := z*s.Cols*s.Depth + n*bn + k*bk
			if s.Window != nil {
				at = imageAt(s, z, n, k)
			}
			x := arrays[0][z*s.Rows*s.Depth+m*am+k*ak] * b[at]
			size += math.Abs(float64(x))
			if s.Half {
				x = T(float16.Fromfloat32(float32(x)).Float32())
				sum = T(float16.Fromfloat32(float32(sum + x)).Float32())
				continue
			}
			sum += x
		}
		limit := 0.0 // of integers, and of sums that are rounded in the order of k
		switch {
		case s.Half:
		case s.Acc == blocks.F32:
			limit = size * 1e-6
		case s.Acc == blocks.F64:
			limit = size * 1e-15
		}
		same := sum == c[i] || sum != sum && c[i] != c[i]
		if d := math.Abs(float64(sum) - float64(c[i])); !same && !(d <= limit) {
			t.Fatalf("element %d of batch %d, row %d, column %d is %v, not %v", i, z, m, n, c[i], sum)
		}
	}
}
