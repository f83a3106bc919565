package scalar_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"dmir/compile/interp"
	"dmir/compile/kernel"
	"dmir/compile/llvm/code"
	"dmir/compile/llvm/scalar"
	"dmir/compile/tensor"
	"dmir/dialect/lower"
	"dmir/dialect/types"
	"dmir/gpu/dylib"
	"dmir/syntax/diag"
	"dmir/syntax/parse"
	"dmir/syntax/source"
	"dmir/testkit/need"

	"github.com/llir/llvm/ir"
	"github.com/llir/llvm/ir/enum"
	lltypes "github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"
)

// single is one operation, for which a function loops over arrays.
type single struct {
	name string
	x    *kernel.Expr // whose operands have only types
	text string       // the attributes of the op, as the dialect writes them before and after its operands
	tail string
	at   bool // the number of the element is an operand
}

// unary is the operation of that name on one element of each type of in.
func operation(name, kind string, out types.Elem, in ...types.Elem) single {
	x := &kernel.Expr{Op: name, Kind: kind, Elem: out}
	label := name + " " + kind
	for _, e := range in {
		x.Args = append(x.Args, &kernel.Expr{Op: kernel.Load, Elem: e})
		label += " " + e.String()
	}
	return single{name: label + " to " + out.String(), x: x}
}

// apply is the loop's body: the operation on elements number i.
func (s single) apply(l *scalar.Lib, f *code.Func, arrays []value.Value, i value.Value) value.Value {
	var args []value.Value
	for k, a := range s.x.Args {
		args = append(args, l.Load(f, a.Elem, arrays[k], i))
	}
	if s.at {
		args = append(args, i)
	}
	switch s.x.Op {
	case kernel.Number:
		return l.Number(s.x)
	case kernel.Reduce:
		return l.Combine(f, s.x.Kind, s.x.Elem, l.Identity(s.x.Kind, s.x.Elem), args[0], true)
	}
	return l.Apply(f, s.x, args)
}

// module has the function f0 for the first operation, and so on: of the array of
// results, three of operands, and the number of elements.
func module(all []single) *code.Module {
	m := code.NewModule()
	l := scalar.New(m)
	for k, s := range all {
		out, n := ir.NewParam("out", code.Bytes), ir.NewParam("n", code.Index)
		out.Attrs = append(out.Attrs, enum.ParamAttrNoAlias)
		params := []*ir.Param{out}
		var arrays []value.Value
		for i := range 3 {
			p := ir.NewParam(fmt.Sprintf("in%d", i), code.Bytes)
			p.Attrs = append(p.Attrs, enum.ParamAttrNoAlias)
			params, arrays = append(params, p), append(arrays, p)
		}
		f := m.NewFuncBody(m.NewFunc(fmt.Sprintf("f%d", k), lltypes.Void, append(params, n)...))
		f.For(code.Int(0), n, code.Loop{Vectorize: true}, func(i value.Value) {
			l.Store(f, s.x.Elem, out, i, s.apply(l, f, arrays, i))
		})
		f.NewRet(nil)
	}
	return m
}

// function is a compiled loop.
type function = func(out, a, b, c unsafe.Pointer, n int64)

// clang runs the compiler on a module.
func clang(t testing.TB, m *code.Module, to string, flags ...string) {
	t.Helper()
	path := need.Tool(t, "clang", "apt-get install clang")
	file := filepath.Join(t.TempDir(), "a.ll")
	if err := os.WriteFile(file, []byte(m.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"-O3", "-Wno-override-module", file, "-o", to}, flags...)
	if out, err := exec.Command(path, args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%.4000s", err, out)
	}
}

// compiled are the functions of the operations.
func compiled(t testing.TB, all []single) []function {
	t.Helper()
	file := filepath.Join(t.TempDir(), "a.so")
	clang(t, module(all), file, "-march=native", "-shared", "-fPIC", "-lm")
	lib, err := dylib.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	fs := make([]function, len(all))
	for k := range all {
		if err := lib.Bind(fmt.Sprintf("f%d", k), &fs[k]); err != nil {
			t.Fatal(err)
		}
	}
	return fs
}

// run is the operation on tensors of n elements.
func run(t testing.TB, f function, s single, n int, args ...*tensor.Tensor) *tensor.Tensor {
	t.Helper()
	out := tensor.Pack(tensor.New(s.x.Elem, n))
	at := make([]unsafe.Pointer, 3)
	for i, a := range args {
		b := append(tensor.Pack(a), 0)
		at[i] = unsafe.Pointer(&b[0])
	}
	f(unsafe.Pointer(&out[0]), at[0], at[1], at[2], int64(n))
	y, err := tensor.Unpack(out, s.x.Elem, []int{n})
	if err != nil {
		t.Fatal(err)
	}
	return y
}

// reference is what the reference executor computes.
func reference(t testing.TB, s single, n int, args ...*tensor.Tensor) *tensor.Tensor {
	t.Helper()
	shape := func(e types.Elem) string { return fmt.Sprintf("tensor<%dx%s>", n, e) }
	var params, names, from []string
	for i, a := range args {
		name := fmt.Sprintf("%%x%d", i)
		params, names, from = append(params, name+": "+shape(a.Elem)), append(names, name), append(from, shape(a.Elem))
	}
	result := shape(s.x.Elem)
	typed := result
	if len(args) > 0 {
		typed = "(" + strings.Join(from, ", ") + ") -> " + result
	}
	text := fmt.Sprintf("func.func @f(%s) -> %s {\n  %%y = dm.%s%s %s%s : %s\n  return %%y : %s\n}",
		strings.Join(params, ", "), result, s.op(), s.text, strings.Join(names, ", "), s.tail, typed, result)
	file := parse.File(source.New("test.dmir", text))
	m := lower.File(file)[0]
	for _, d := range append(file.Diags, m.Diags...) {
		if d.Severity == diag.Error {
			t.Fatalf("%s: %s\n%s", d.Code, d.Message, text)
		}
	}
	r, err := interp.Run(context.Background(), m, m.Funcs[0], args, interp.Options{})
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return r.Outputs[0]
}

// op is the name of the op in the dialect.
func (s single) op() string {
	switch s.x.Op {
	case kernel.Random:
		return "rng"
	case kernel.Count:
		return "iota"
	}
	return s.x.Op
}
