package scalar_test

import (
	"math"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"unsafe"

	"dmir/compile/kernel"
	"dmir/compile/llvm/code"
	"dmir/compile/llvm/scalar"
	"dmir/compile/tensor"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/gpu/dylib"

	"github.com/llir/llvm/ir"
	"github.com/llir/llvm/ir/enum"
	lltypes "github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"
)

// reductions has a function for each kind that reduces n elements of a type to one.
func reductions(elem types.Elem, kinds []string) *code.Module {
	m := code.NewModule()
	l := scalar.New(m)
	for _, kind := range kinds {
		in, out, n := ir.NewParam("in", code.Bytes), ir.NewParam("out", code.Bytes), ir.NewParam("n", code.Index)
		in.Attrs = append(in.Attrs, enum.ParamAttrNoAlias)
		f := m.NewFuncBody(m.NewFunc(kind, lltypes.Void, in, out, n))
		r := l.Accumulator(kind, elem, true)
		begin := []value.Value{r.Begin(f, l.Identity(kind, elem))}
		last := f.Fold(code.Int(0), n, code.Loop{Vectorize: true}, begin, func(i value.Value, acc []value.Value) []value.Value {
			return []value.Value{r.Add(f, acc[0], l.Load(f, elem, in, i))}
		})
		l.Store(f, elem, out, code.Int(0), r.Value(f, last[0]))
		f.NewRet(nil)
	}
	return m
}

// TestAccumulators reduces arrays in vectors: max and min with NaN and zeros of both signs.
func TestAccumulators(t *testing.T) {
	kinds := []string{"add", "mul", "max", "min"}
	for _, elem := range []types.Elem{types.F32, types.F64, types.F16, types.BF16, types.I32, types.UI32, types.UI8} {
		m := reductions(elem, kinds)
		file := filepath.Join(t.TempDir(), "a.so")
		clang(t, m, file, "-march=native", "-shared", "-fPIC")
		lib, err := dylib.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, kind := range kinds {
			var f func(in, out unsafe.Pointer, n int64)
			if err := lib.Bind(kind, &f); err != nil {
				t.Fatal(err)
			}
			for _, end := range specials(kind) {
				for _, n := range []int{1, 2, 37, 1000} {
					x := numbers(kind, elem, n, end)
					b, out := tensor.Pack(x), make([]byte, elem.Bytes())
					f(unsafe.Pointer(&b[0]), unsafe.Pointer(&out[0]), int64(n))
					got, err := tensor.Unpack(out, elem, nil)
					if err != nil {
						t.Fatal(err)
					}
					if want := folded(kind, x); distance(got, want, 0) != 0 {
						t.Errorf("%s of %d elements of %s with %v is %s, want %s", kind, n, elem, end, show(got, 0), show(want, 0))
					}
				}
			}
		}
	}
}

// specials are ends of the arrays that are reduced.
func specials(kind string) [][]float64 {
	negative := math.Copysign(0, -1)
	if kind == "mul" {
		return [][]float64{nil}
	}
	return [][]float64{nil, {0}, {negative}, {negative, 0}, {math.NaN()}, {math.Copysign(math.NaN(), -1)}, {math.Inf(1), math.Inf(-1)}}
}

// numbers are n elements with that end, of which reductions are exact: before zeros, of
// which the sign matters, there are only -0.
func numbers(kind string, elem types.Elem, n int, end []float64) *tensor.Tensor {
	x := tensor.New(elem, n)
	for i := range n {
		v := float64(i%3) - 1
		switch k := n - 1 - i; {
		case k < len(end):
			v = end[k]
		case kind == "mul":
			v = float64(i%2)*2 - 1
		case len(end) > 0 && end[0] == 0:
			v = math.Copysign(0, -1)
		}
		x.SetFloat(i, v)
	}
	return x
}

// folded is the reduction of x, one element after the other.
func folded(kind string, x *tensor.Tensor) *tensor.Tensor {
	f, n := kernel.Identity(kind, x.Elem)
	for i := range x.Len() {
		v, w := x.Float(i), x.Integer(i)
		switch kind {
		case "add":
			f, n = f+v, n+w
		case "mul":
			f, n = f*v, n*w
		case "max":
			f, n = max(f, v), max(n, w)
		case "min":
			f, n = min(f, v), min(n, w)
		}
	}
	out := tensor.New(x.Elem)
	if x.Elem.IsFloat() {
		out.SetFloat(0, f)
	} else {
		out.SetInt(0, n)
	}
	return out
}

// TestNumbers stores the constants of every type, and combines identities with all values.
func TestNumbers(t *testing.T) {
	var all []single
	for _, e := range op.Lookup("dm.convert").Results[0].Elems {
		if !e.IsFloat() {
			for _, v := range []int64{0, 1, -1, 7, math.MaxInt64, math.MinInt64} {
				s := operation(kernel.Number, "", e)
				s.x.Int = tensor.Wrap(e, v)
				all = append(all, s)
			}
			continue
		}
		for _, v := range []float64{0, math.Copysign(0, -1), 1, -0.1, 448, 1e20, 3e-39, 1e300, math.Inf(-1), math.NaN()} {
			s := operation(kernel.Number, "", e)
			s.x.Num = v
			all = append(all, s)
		}
	}
	constants := len(all)
	for _, e := range op.Lookup("dm.reduce").Operands[0].Elems {
		for _, kind := range []string{"add", "mul", "max", "min", "and", "or"} {
			if e == types.I1 == (kind == "and" || kind == "or") {
				all = append(all, operation(kernel.Reduce, kind, e, e))
			}
		}
	}
	fs := compiled(t, all)
	for k, s := range all {
		if k < constants {
			want := tensor.New(s.x.Elem, 1)
			if want.SetInt(0, s.x.Int); s.x.Elem.IsFloat() {
				want.SetFloat(0, s.x.Num)
			}
			if got := run(t, fs[k], s, 1); distance(got, want, 0) > rounding(s.x) {
				t.Errorf("%s: %s, want %s", s.name, show(got, 0), show(want, 0))
			}
			continue
		}
		n, args := operands(s)
		got := run(t, fs[k], s, n, args...)
		for i := range n {
			if d := distance(got, args[0], i); d != 0 && !(s.x.Kind == "add" && d == 1 && args[0].Float(i) == 0) { // 0 and -0 are 0
				t.Errorf("%s of its identity and %s is %s", s.name, show(args[0], i), show(got, i))
				break
			}
		}
	}
}

// rounding is 1 where a number is rounded twice, to float first.
func rounding(x *kernel.Expr) uint64 {
	if x.Elem.IsFloat() && x.Elem.Bytes() < 4 {
		return 1
	}
	return 0
}

// TestReductionVectors checks that reductions of float become code on vectors.
func TestReductionVectors(t *testing.T) {
	for kind, instruction := range map[string]string{"add": "vaddps", "mul": "vmulps", "max": "vpmaxsd", "min": "vpminsd"} {
		file := filepath.Join(t.TempDir(), "a.s")
		clang(t, reductions(types.F32, []string{kind}), file, "-march=x86-64-v3", "-S")
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !regexp.MustCompile(instruction + `\s.*%ymm`).Match(text) {
			t.Errorf("%s has no %s of vectors", kind, instruction)
		}
	}
}
