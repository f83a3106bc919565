package linalg_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"dmir/compile/interp"
	"dmir/compile/linalg"
	"dmir/compile/pass"
	"dmir/compile/pipeline"
	"dmir/compile/tensor"
	"dmir/dialect/ir"
	"dmir/dialect/lower"
	"dmir/dialect/op"
	"dmir/dialect/print"
	"dmir/dialect/stablehlo"
	"dmir/dialect/types"
	"dmir/dialect/verify"
	"dmir/syntax/diag"
	"dmir/syntax/parse"
	"dmir/syntax/source"
	"dmir/testkit/need"
)

const (
	mlirOpt    = "mlir-opt-22"
	mlirRunner = "mlir-runner-22"
	install    = "apt-get install mlir-22-tools"
)

// dense is the pipeline of MLIR that the documentation names.
var dense = []string{
	"--empty-tensor-to-alloc-tensor", "--one-shot-bufferize=bufferize-function-boundaries allow-return-allocs-from-loops", "--convert-linalg-to-loops",
	"--expand-strided-metadata", "--lower-affine", "--convert-scf-to-cf", "--convert-math-to-llvm", "--convert-math-to-libm",
	"--convert-arith-to-llvm", "--finalize-memref-to-llvm", "--convert-func-to-llvm", "--convert-cf-to-llvm", "--reconcile-unrealized-casts",
}

// program is one function to run.
type program struct {
	name, path string
	text       string // exported
	args       []*tensor.Tensor
	want       []*tensor.Tensor
}

func read(text string) (*ir.Module, error) {
	tree := parse.File(source.New("test.dmir", text+"\n"))
	m := lower.File(tree)[0]
	for _, d := range append(append(tree.Diags, m.Diags...), verify.Module(m)...) {
		if d.Severity == diag.Error {
			return nil, errors.New(d.Message)
		}
	}
	return m, nil
}

// exported is the text of m's first function in upstream dialects, after the passes
// of `dmir opt --emit mlir`.
func exported(t *testing.T, m *ir.Module, name string) (string, error) {
	t.Helper()
	return exportedFunc(t, m, m.Funcs[0].Name, name)
}

func exportedFunc(t *testing.T, m *ir.Module, from, name string) (string, error) {
	t.Helper()
	u := &pass.Unit{Ctx: t.Context(), Module: m.Clone()}
	u.Func = u.Module.Func(from)
	linalg.Sparse(u)
	if err := pass.Run(u, pipeline.Export(), nil); err != nil {
		return "", err
	}
	for _, f := range append([]*ir.Func{}, u.Module.Funcs...) {
		if f != u.Func {
			u.Module.RemoveFunc(f.Name)
		}
	}
	up, err := linalg.Export(u.Module)
	if err != nil {
		return "", err
	}
	up.Ops[0].SetAttr("sym_name", types.Str(name))
	return print.Generic(up)
}

func typeText(x *tensor.Tensor, elem string) string {
	s := "tensor<"
	for _, n := range x.Shape {
		s += fmt.Sprint(n, "x")
	}
	return s + elem + ">"
}

func signless(e types.Elem) string { return strings.TrimPrefix(e.String(), "u") }

// literal is the elements of x as text.
func literal(x *tensor.Tensor) string {
	var list func(shape []int, at int) (string, int)
	list = func(shape []int, at int) (string, int) {
		if len(shape) == 0 {
			if x.Elem.IsFloat() {
				return strconv.FormatFloat(x.Float(at), 'e', 17, 64), at + 1
			}
			if x.Elem == types.I1 {
				return fmt.Sprint(x.Bool[at] != 0), at + 1
			}
			return fmt.Sprint(x.Integer(at)), at + 1
		}
		parts := make([]string, shape[0])
		for i := range parts {
			parts[i], at = list(shape[1:], at)
		}
		return "[" + strings.Join(parts, ", ") + "]", at
	}
	if x.Len() == 0 {
		return ""
	}
	text, _ := list(x.Shape, 0)
	return text
}

// execute runs all programs in one process and returns the bits of their results as
// numbers of 64 bits.
func execute(t *testing.T, ps []program, lowering ...string) [][][]int64 {
	t.Helper()
	var b strings.Builder
	b.WriteString("func.func private @printMemrefI64(tensor<*xi64>) attributes {llvm.emit_c_interface}\n")
	var calls strings.Builder
	for i, p := range ps {
		b.WriteString(p.text)
		fmt.Fprintf(&b, "func.func @main_%d() {\n", i)
		var names, ins, outs []string
		for k, a := range p.args {
			fmt.Fprintf(&b, "  %%a%d = arith.constant dense<%s> : %s\n", k, literal(a), typeText(a, signless(a.Elem)))
			names, ins = append(names, fmt.Sprintf("%%a%d", k)), append(ins, typeText(a, signless(a.Elem)))
		}
		for _, w := range p.want {
			outs = append(outs, typeText(w, signless(w.Elem)))
		}
		fmt.Fprintf(&b, "  %%r:%d = func.call @%s(%s) : (%s) -> (%s)\n", len(outs), p.name, strings.Join(names, ", "), strings.Join(ins, ", "), strings.Join(outs, ", "))
		for k, w := range p.want {
			var dims []string
			for d := range w.Shape {
				dims = append(dims, fmt.Sprintf("d%d", d))
			}
			id := fmt.Sprintf("affine_map<(%[1]s) -> (%[1]s)>", strings.Join(dims, ", "))
			kinds := strings.TrimSuffix(strings.Repeat(`"parallel", `, len(dims)), ", ")
			to, e := typeText(w, "i64"), signless(w.Elem)
			body := "    linalg.yield %x : i64\n"
			switch {
			case w.Elem == types.F64:
				body = "    %y = arith.bitcast %x : f64 to i64\n    linalg.yield %y : i64\n"
			case w.Elem.IsFloat():
				body = fmt.Sprintf("    %%w = arith.extf %%x : %s to f64\n    %%y = arith.bitcast %%w : f64 to i64\n    linalg.yield %%y : i64\n", e)
			case e != "i64":
				ext := "extsi"
				if w.Elem.IsUnsigned() {
					ext = "extui"
				}
				body = fmt.Sprintf("    %%y = arith.%s %%x : %s to i64\n    linalg.yield %%y : i64\n", ext, e)
			}
			fmt.Fprintf(&b, "  %%e%d = tensor.empty() : %s\n", k, to)
			fmt.Fprintf(&b, "  %%b%[1]d = linalg.generic {indexing_maps = [%[2]s, %[2]s], iterator_types = [%[3]s]} ins(%%r#%[1]d : %[4]s) outs(%%e%[1]d : %[5]s) {\n  ^bb0(%%x: %[6]s, %%o: i64):\n%[7]s  } -> %[5]s\n", k, id, kinds, outs[k], to, e, body)
			fmt.Fprintf(&b, "  %%u%[1]d = tensor.cast %%b%[1]d : %[2]s to tensor<*xi64>\n  func.call @printMemrefI64(%%u%[1]d) : (tensor<*xi64>) -> ()\n", k, to)
		}
		b.WriteString("  return\n}\n")
		fmt.Fprintf(&calls, "  func.call @main_%d() : () -> ()\n", i)
	}
	b.WriteString("func.func @main() {\n" + calls.String() + "  return\n}\n")
	lowered := command(t, b.String(), mlirOpt, lowering...)
	var libs []string
	for _, name := range []string{"runner_utils", "c_runner_utils", "float16_utils"} {
		found, _ := filepath.Glob("/usr/lib/llvm-22/lib/libmlir_" + name + ".so*")
		if len(found) == 0 {
			need.OK(t, fmt.Errorf("libmlir_%s.so is not installed (%s)", name, install))
		}
		libs = append(libs, found[0])
	}
	text := command(t, lowered, mlirRunner, "-e", "main", "--entry-point-result=void", "-O0",
		"--shared-libs="+strings.Join(libs, ","))
	printed := strings.Split(text, "Unranked Memref")[1:]
	out := make([][][]int64, len(ps))
	for i, p := range ps {
		for range p.want {
			_, data, _ := strings.Cut(printed[0], "data =")
			printed = printed[1:]
			var ns []int64
			for _, s := range regexp.MustCompile(`-?\d+`).FindAllString(data, -1) {
				n, err := strconv.ParseInt(s, 10, 64)
				if err != nil {
					t.Fatal(err)
				}
				ns = append(ns, n)
			}
			out[i] = append(out[i], ns)
		}
	}
	return out
}

func command(t *testing.T, input, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	var out, errs strings.Builder
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &out, &errs
	if err := cmd.Run(); err != nil {
		lines := strings.Split(errs.String(), "\n")
		msg := strings.Join(lines[:min(len(lines), 12)], "\n")
		if m := regexp.MustCompile(`<stdin>:(\d+)`).FindStringSubmatch(msg); m != nil {
			n, _ := strconv.Atoi(m[1])
			all := strings.Split(input, "\n")
			msg += "\n" + strings.Join(all[max(0, n-3):min(len(all), n+3)], "\n")
		}
		t.Fatalf("%s: %v\n%s", name, err, msg)
	}
	return out.String()
}

// programs are the examples of the registry, in the element types that they allow, a third of these in turn.
func programs(t *testing.T) (ps []program) {
	elems := []types.Elem{types.F32, types.F64, types.F16, types.BF16, types.I64, types.I32, types.I8, types.UI8, types.UI64, types.I1, types.I4}
	for k, d := range op.All() {
		if d.Family == op.SparseTensors { // TestSparse runs them, by the sparsifier
			continue
		}
		for i, e := range elems {
			if !need.Turn(t, k+i, 3) {
				continue
			}
			text := strings.NewReplacer("xf32", "x"+e.String(), "<f32", "<"+e.String(), ": f32", ": "+e.String()).Replace(d.Example)
			if !strings.Contains(d.Example, "f32") {
				text = strings.ReplaceAll(d.Example, "i32", e.String())
			}
			if text == d.Example && e != types.F32 && e != types.I32 {
				continue
			}
			m, err := read(text)
			if err != nil {
				if text == d.Example {
					t.Fatalf("%s: %v", d.Name, err)
				}
				continue
			}
			p := program{name: fmt.Sprintf("%s_%d", d.Name, i)}
			if p.args, err = interp.Inputs(t.Context(), m.Funcs[0], nil, 3, nil); err != nil {
				t.Fatal(err)
			}
			res, err := interp.Run(t.Context(), m, m.Funcs[0], p.args, interp.Options{})
			if err != nil {
				continue // not defined on this type
			}
			p.want = res.Outputs
			if p.text, err = exported(t, m, p.name); err != nil {
				t.Errorf("%s of %s: %v", d.Name, e, err)
				continue
			}
			ps = append(ps, p)
		}
	}
	return ps
}

// Every example of the registry computes the same numbers when MLIR's own tools run
// what it is exported to.
func TestExamples(t *testing.T) {
	need.Long(t)
	need.Tool(t, mlirOpt, install)
	need.Tool(t, mlirRunner, install)
	ps := programs(t)
	for i, got := range execute(t, ps, dense...) {
		compare(t, ps[i], got)
	}
	t.Logf("%d programs", len(ps))
}

// Forms that the examples have not: other attributes, types and operands.
func TestForms(t *testing.T) {
	need.Tool(t, mlirOpt, install)
	need.Tool(t, mlirRunner, install)
	text, err := os.ReadFile("testdata/forms.dmir")
	if err != nil {
		t.Fatal(err)
	}
	m, err := read(string(text))
	if err != nil {
		t.Fatal(err)
	}
	var ps []program
	for _, f := range m.Funcs {
		p := program{name: f.Name}
		if p.args, err = interp.Inputs(t.Context(), f, nil, 3, nil); err != nil {
			t.Fatal(err)
		}
		res, err := interp.Run(t.Context(), m, f, p.args, interp.Options{})
		if err != nil {
			t.Fatal(err)
		}
		p.want = res.Outputs
		if p.text, err = exportedFunc(t, m, f.Name, f.Name); err != nil {
			t.Fatal(err)
		}
		ps = append(ps, p)
	}
	for i, got := range execute(t, ps, dense...) {
		compare(t, ps[i], got)
	}
}

// What has no equivalent is refused.
func TestRefused(t *testing.T) {
	for _, c := range []struct{ text, code string }{
		{"func.func @f(%x: tensor<2xf8E5M2>) -> tensor<2xf8E5M2> {\n  return %x : tensor<2xf8E5M2>\n}", "DM807"},
		{"func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> {\n  %y = \"other.op\"(%x) : (tensor<2xf32>) -> tensor<2xf32>\n  return %y : tensor<2xf32>\n}", "DM807"},
		{"func.func @f(%x: tensor<?xf32, #dm.at<dims = [n]>>) -> tensor<?xf32, #dm.at<dims = [n]>> {\n  return %x : tensor<?xf32, #dm.at<dims = [n]>>\n}", "DM801"},
		{"func.func private @f(tensor<2xf32>) -> tensor<2xf32>", "DM807"},
	} {
		m, err := read(c.text)
		if err != nil {
			t.Fatal(err)
		}
		var e *pass.Error
		if _, err := linalg.Export(m); !errors.As(err, &e) || e.Code != c.code || e.Help == "" {
			t.Errorf("%s: %v", c.text, err)
		}
	}
}

// The programs of StableHLO's suite compute the same numbers once imported and exported:
// they have the operands that examples have not, such as divisions by zero.
func TestStableHLO(t *testing.T) {
	need.Long(t)
	need.Tool(t, mlirOpt, install)
	need.Tool(t, mlirRunner, install)
	dir := filepath.Join("..", "..", "..", "shared", "conformance", "stablehlo")
	_, missing := os.Stat(dir)
	need.OK(t, missing)
	var ps []program
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".mlir" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil || len(text) > maxText {
			return err
		}
		for _, m := range stablehlo.Import(parse.File(source.New(path, string(text)))) {
			if len(m.Diags) > 0 {
				continue
			}
			for _, f := range m.Funcs {
				if f.Private || f.Body == nil || len(f.Args) > 0 {
					continue
				}
				p := program{name: fmt.Sprintf("p%d", len(ps)), path: path}
				// The checks compare within the program; here its results are compared.
				returnChecked(f)
				res, err := interp.Run(t.Context(), m, f, nil, interp.Options{Threads: 1})
				if err != nil || len(res.Outputs) == 0 {
					continue
				}
				p.want = res.Outputs
				if p.text, err = exportedFunc(t, m, f.Name, p.name); err != nil {
					t.Errorf("%s: %v", path, err)
					continue
				}
				ps = append(ps, p)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, got := range execute(t, ps, dense...) {
		compare(t, ps[i], got)
	}
	t.Logf("%d programs", len(ps))
}

// maxText is the size of a program up to which it is run.
const maxText = 6000

// returnChecked makes a function return what its checks compare with an expected value.
func returnChecked(f *ir.Func) {
	last := f.Body.Terminator()
	for _, o := range f.Body.Ops {
		if strings.HasPrefix(o.Name, "check.") && len(last.Operands) == 0 {
			last.Operands = append(last.Operands, o.Operands[0])
			o.Operands[0].AddUse(ir.Use{Op: last})
			f.Results = append(f.Results, o.Operands[0].Type)
			f.Op.SetAttr("function_type", types.TypeAttr{T: &types.Func{Out: f.Results}})
		}
	}
}

func compare(t *testing.T, p program, got [][]int64) {
	t.Helper()
	eps := map[types.Elem]float64{types.F64: 1e-13, types.F32: 4e-6, types.F16: 4e-3, types.BF16: 3e-2}
	for k, w := range p.want {
		if w.Len() == 0 {
			continue // of which the runner prints what is behind them
		}
		if len(got[k]) != w.Len() {
			t.Errorf("%s: result %d has %d elements, want %d", p.name+p.path, k, len(got[k]), w.Len())
			continue
		}
		largest := 0.0
		for i := range w.Len() {
			if v := math.Abs(w.Float(i)); w.Elem.IsFloat() && v <= math.MaxFloat64 {
				largest = max(largest, v)
			}
		}
		for i := range w.Len() {
			if !w.Elem.IsFloat() {
				if want := w.Integer(i); got[k][i] != want {
					t.Errorf("%s: result %d, element %d is %d, want %d", p.name+" "+p.path, k, i, got[k][i], want)
					break
				}
				continue
			}
			g, want := math.Float64frombits(uint64(got[k][i])), w.Float(i)
			if !(g == want || g != g && want != want || math.Abs(g-want) <= eps[w.Elem]*largest) {
				t.Errorf("%s: result %d, element %d is %v, want %v", p.name+" "+p.path, k, i, g, want)
				break
			}
		}
	}
}
