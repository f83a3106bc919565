package gradient_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dmir/compile/gradient"
	"dmir/compile/interp"
	"dmir/compile/pass"
	"dmir/compile/pass/passtest"
	"dmir/compile/tensor"
	"dmir/dialect/autodiff"
	"dmir/dialect/types"
)

// wholes are functions beyond single ops: what the gradient goes through.
var wholes = []struct{ name, text string }{
	{"a value used thrice", `func.func @f(%x: tensor<3xf64>) -> tensor<f64> {
  %0 = dm.mul %x, %x : tensor<3xf64>
  %1 = dm.mul %0, %x : tensor<3xf64>
  %2 = dm.reduce add %1 : (tensor<3xf64>) -> tensor<f64>
  return %2 : tensor<f64>
}`},
	{"an argument returned, and one not used", `func.func @f(%x: tensor<3xf64>, %y: tensor<2xf64>) -> (tensor<3xf64>, tensor<3xf64>) {
  %0 = dm.exp %x : tensor<3xf64>
  return %x, %0 : tensor<3xf64>, tensor<3xf64>
}`},
	{"a value returned twice", `func.func @f(%x: tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>) {
  %0 = dm.sin %x : tensor<3xf64>
  return %0, %0 : tensor<3xf64>, tensor<3xf64>
}`},
	{"a perceptron", `func.func @f(%x: tensor<4x3xf64>, %w: tensor<3x5xf64>, %b: tensor<5xf64>, %v: tensor<5x2xf64>) -> tensor<f64> {
  %h = dm.matmul %x, %w : (tensor<4x3xf64>, tensor<3x5xf64>) -> tensor<4x5xf64>
  %hb = dm.add %h, %b : (tensor<4x5xf64>, tensor<5xf64>) -> tensor<4x5xf64>
  %a = dm.gelu %hb, approximate = tanh : tensor<4x5xf64>
  %y = dm.matmul %a, %v : (tensor<4x5xf64>, tensor<5x2xf64>) -> tensor<4x2xf64>
  %labels = dm.constant dense<[0, 1, 1, 0]> : tensor<4xi64>
  %loss = dm.cross_entropy %y, %labels : (tensor<4x2xf64>, tensor<4xi64>) -> tensor<f64>
  return %loss : tensor<f64>
}`},
	{"slices that make up the whole", `func.func @f(%x: tensor<2x6xf64>) -> (tensor<2x1xf64>, tensor<2x2xf64>, tensor<2x3xf64>) {
  %0 = dm.exp %x : tensor<2x6xf64>
  %1 = dm.slice %0, start_indices = [1], limit_indices = [3], dims = [1] : (tensor<2x6xf64>) -> tensor<2x2xf64>
  %2 = dm.slice %0, start_indices = [3], limit_indices = [6], dims = [1] : (tensor<2x6xf64>) -> tensor<2x3xf64>
  %3 = dm.slice %0, start_indices = [0], limit_indices = [1], dims = [1] : (tensor<2x6xf64>) -> tensor<2x1xf64>
  return %3, %1, %2 : tensor<2x1xf64>, tensor<2x2xf64>, tensor<2x3xf64>
}`},
	{"slices that overlap, and some that leave a gap", `func.func @f(%x: tensor<2x6xf64>, %y: tensor<2x6xf64>) -> (tensor<2x3xf64>, tensor<2x4xf64>, tensor<2x2xf64>, tensor<2x3xf64>) {
  %1 = dm.slice %x, start_indices = [0], limit_indices = [3], dims = [1] : (tensor<2x6xf64>) -> tensor<2x3xf64>
  %2 = dm.slice %x, start_indices = [2], limit_indices = [6], dims = [1] : (tensor<2x6xf64>) -> tensor<2x4xf64>
  %3 = dm.slice %y, start_indices = [0], limit_indices = [2], dims = [1] : (tensor<2x6xf64>) -> tensor<2x2xf64>
  %4 = dm.slice %y, start_indices = [3], limit_indices = [6], dims = [1] : (tensor<2x6xf64>) -> tensor<2x3xf64>
  return %1, %2, %3, %4 : tensor<2x3xf64>, tensor<2x4xf64>, tensor<2x2xf64>, tensor<2x3xf64>
}`},
	{"kernels", `func.func @f(%x: tensor<4x3xf64>, %b: tensor<3xf64>) -> (tensor<4x3xf64>, tensor<4x3xf64>) {
  %0, %1 = dm.kernel -> (tensor<4x3xf64>, tensor<4x3xf64>) {
    %a = dm.add %x, %b : (tensor<4x3xf64>, tensor<3xf64>) -> tensor<4x3xf64>
    %t = dm.tanh %a : tensor<4x3xf64>
    dm.yield %t, %x : tensor<4x3xf64>, tensor<4x3xf64>
  }
  %2 = dm.mul %0, %1 : tensor<4x3xf64>
  return %2, %0 : tensor<4x3xf64>, tensor<4x3xf64>
}`},
	{"calls of calls, with symbols", `func.func @f(%x: tensor<4x3xf64>, %y: tensor<2x3xf64>) -> (tensor<4xf64>, tensor<2xf64>) {
  %0 = func.call @rows(%x) : (tensor<4x3xf64>) -> tensor<4xf64>
  %1 = func.call @rows(%y) : (tensor<2x3xf64>) -> tensor<2xf64>
  return %0, %1 : tensor<4xf64>, tensor<2xf64>
}
func.func private @rows(%x: tensor<?x3xf64, #dm.at<dims = [n]>>) -> tensor<?xf64, #dm.at<dims = [n]>> {
  %0 = func.call @square(%x) : (tensor<?x3xf64, #dm.at<dims = [n]>>) -> tensor<?x3xf64, #dm.at<dims = [n]>>
  %1 = dm.reduce add %0, dims = [1] : (tensor<?x3xf64, #dm.at<dims = [n]>>) -> tensor<?xf64, #dm.at<dims = [n]>>
  return %1 : tensor<?xf64, #dm.at<dims = [n]>>
}
func.func private @square(%x: tensor<?x3xf64, #dm.at<dims = [m]>>) -> tensor<?x3xf64, #dm.at<dims = [m]>> {
  %0 = dm.mul %x, %x : tensor<?x3xf64, #dm.at<dims = [m]>>
  return %0 : tensor<?x3xf64, #dm.at<dims = [m]>>
}`},
	{"maps of several results", `func.func @f(%x: tensor<2x3xf64>, %y: tensor<3xf64>, %i: tensor<3xi64>) -> (tensor<2x3xf64>, tensor<2x3xf64>) {
  %0, %1 = dm.map %x, %y, %i : (tensor<2x3xf64>, tensor<3xf64>, tensor<3xi64>) -> (tensor<2x3xf64>, tensor<2x3xf64>) {
  ^bb0(%a: f64, %b: f64, %n: i64):
    %half = dm.constant 0.5 : f64
    %m = dm.convert %n : (i64) -> f64
    %s = dm.mul %a, %b : f64
    %t = dm.tanh %s : f64
    %u = dm.mul %t, %half : f64
    %v = dm.mul %u, %m : f64
    %p = dm.compare gt %a, %b : (f64, f64) -> i1
    %w = dm.select %p, %a, %v : (i1, f64, f64) -> f64
    dm.yield %v, %w : f64, f64
  }
  return %0, %1 : tensor<2x3xf64>, tensor<2x3xf64>
}`},
	{"branches", `func.func @f(%x: tensor<3xf64>, %y: tensor<3xf64>, %p: tensor<i1>) -> tensor<3xf64> {
  %0 = dm.exp %x : tensor<3xf64>
  %1, %2 = dm.if %p : (tensor<i1>) -> (tensor<3xf64>, tensor<3xf64>) {
    %a = dm.mul %0, %y : tensor<3xf64>
    %b = dm.sin %a : tensor<3xf64>
    dm.yield %b, %y : tensor<3xf64>, tensor<3xf64>
  } else {
    dm.yield %0, %0 : tensor<3xf64>, tensor<3xf64>
  }
  %3 = dm.mul %1, %2 : tensor<3xf64>
  return %3 : tensor<3xf64>
}`},
	{"loops that no gradient flows through", `func.func @f(%x: tensor<2xf64>) -> tensor<2xf64> {
  %c = dm.constant dense<2.0> : tensor<f64>
  %zero = dm.constant dense<0> : tensor<i64>
  %n, %k = dm.while %zero, %c : (tensor<i64>, tensor<f64>) -> (tensor<i64>, tensor<f64>) {
  ^bb0(%i: tensor<i64>, %v: tensor<f64>):
    %three = dm.constant dense<3> : tensor<i64>
    %more = dm.compare lt %i, %three : (tensor<i64>, tensor<i64>) -> tensor<i1>
    dm.yield %more : tensor<i1>
  } do {
  ^bb0(%i: tensor<i64>, %v: tensor<f64>):
    %one = dm.constant dense<1> : tensor<i64>
    %next = dm.add %i, %one : tensor<i64>
    %w = dm.add %v, %v : tensor<f64>
    dm.yield %next, %w : tensor<i64>, tensor<f64>
  }
  %y = dm.mul %x, %k : (tensor<2xf64>, tensor<f64>) -> tensor<2xf64>
  return %y : tensor<2xf64>
}`},
	{"a placement", `func.func @f(%x: tensor<2x3xf64, #dm.at<host>>) -> tensor<2x3xf64> {
  %0 = dm.copy %x : (tensor<2x3xf64, #dm.at<host>>) -> tensor<2x3xf64>
  %1 = dm.exp %0 : tensor<2x3xf64>
  return %1 : tensor<2x3xf64>
}`},
	{"the gradient of a gradient", `func.func @f(%w: tensor<3xf64>, %x: tensor<2x3xf64>) -> (tensor<f64>, tensor<3xf64>) {
  %loss, %dw = dm.grad @loss %w, %x, wrt = [0] : (tensor<3xf64>, tensor<2x3xf64>) -> (tensor<f64>, tensor<3xf64>)
  %0 = dm.mul %dw, %dw : tensor<3xf64>
  return %loss, %0 : tensor<f64>, tensor<3xf64>
}
func.func private @loss(%w: tensor<3xf64>, %x: tensor<2x3xf64>) -> tensor<f64> {
  %0 = dm.mul %x, %w : (tensor<2x3xf64>, tensor<3xf64>) -> tensor<2x3xf64>
  %1 = dm.softmax %0 : tensor<2x3xf64>
  %2 = dm.layer_norm %1, %w : (tensor<2x3xf64>, tensor<3xf64>) -> tensor<2x3xf64>
  %3 = dm.mul %2, %0 : tensor<2x3xf64>
  %4 = dm.reduce add %3 : (tensor<2x3xf64>) -> tensor<f64>
  return %4 : tensor<f64>
}`},
	{"the gradient of an attention's gradient", `func.func @f(%q: tensor<2x3x4xf64>, %k: tensor<1x5x4xf64>, %v: tensor<1x5x4xf64>, %c: tensor<2x3x4xf64>) -> tensor<2x3x4xf64> {
  %y, %dq = dm.grad @attend %q, %k, %v, %c, wrt = [0], cotangents = 1 : (tensor<2x3x4xf64>, tensor<1x5x4xf64>, tensor<1x5x4xf64>, tensor<2x3x4xf64>) -> (tensor<2x3x4xf64>, tensor<2x3x4xf64>)
  return %dq : tensor<2x3x4xf64>
}
func.func private @attend(%q: tensor<2x3x4xf64>, %k: tensor<1x5x4xf64>, %v: tensor<1x5x4xf64>) -> tensor<2x3x4xf64> {
  %y = dm.attention %q, %k, %v, causal = true : (tensor<2x3x4xf64>, tensor<1x5x4xf64>, tensor<1x5x4xf64>) -> tensor<2x3x4xf64>
  return %y : tensor<2x3x4xf64>
}`},
}

// named is one of the wholes.
func named(name string) string {
	for _, w := range wholes {
		if w.name == name {
			return w.text
		}
	}
	panic("no function " + name)
}

func TestFunctions(t *testing.T) {
	for _, w := range wholes {
		t.Run(w.name, func(t *testing.T) { against(t, w.text, nil) })
	}
}

// The graph that the pass writes, as a person reads it.
func TestGolden(t *testing.T) {
	passtest.Golden(t, "testdata", func(string) []pass.Pass { return []pass.Pass{gradient.Pass()} })
}

// What dm.grad computes when it is run is, to the bit, what the pass writes out.
func TestPassAgrees(t *testing.T) {
	for _, text := range []string{
		named("the gradient of an attention's gradient"), named("the gradient of a gradient"),
		strings.ReplaceAll(named("the gradient of a gradient"), "f64", "f32"),
		// Symbols are the callee's own; a gradient within a region; a result that is an argument.
		`func.func @f(%x: tensor<4x3xf32>, %p: tensor<i1>, %c: tensor<4x3xf32>) -> (tensor<4x3xf32>, tensor<4x3xf32>) {
  %y, %dx = dm.if %p : (tensor<i1>) -> (tensor<4x3xf32>, tensor<4x3xf32>) {
    %a, %b, %da = dm.grad @g %x, %c, cotangents = 1 : (tensor<4x3xf32>, tensor<4x3xf32>) -> (tensor<4x3xf32>, tensor<i64>, tensor<4x3xf32>)
    dm.yield %a, %da : tensor<4x3xf32>, tensor<4x3xf32>
  } else {
    dm.yield %x, %x : tensor<4x3xf32>, tensor<4x3xf32>
  }
  return %y, %dx : tensor<4x3xf32>, tensor<4x3xf32>
}
func.func private @g(%x: tensor<?x3xf32, #dm.at<dims = [n]>>) -> (tensor<?x3xf32, #dm.at<dims = [n]>>, tensor<i64>) {
  %0 = dm.layer_norm %x, dims = [0] : tensor<?x3xf32, #dm.at<dims = [n]>>
  %1 = dm.constant dense<3> : tensor<i64>
  return %0, %1 : tensor<?x3xf32, #dm.at<dims = [n]>>, tensor<i64>
}`,
	} {
		agrees(t, text)
	}
}

func agrees(t *testing.T, text string) {
	t.Helper()
	m := read(t, text)
	args := inputs(t, m.Funcs[0], 3, nil)
	want := compute(t, m, m.Funcs[0], args)
	u := &pass.Unit{Module: m, Func: m.Funcs[0]}
	if err := pass.Run(u, []pass.Pass{gradient.Pass()}, nil); err != nil {
		t.Fatal(err)
	}
	again, shown := printed(t, m, u.Func)
	if strings.Contains(shown, "dm.grad") {
		t.Errorf("a gradient is left:\n%s", shown)
	}
	for i, got := range compute(t, again, again.Funcs[0], args) {
		if d := tensor.MaxDiff(got, want[i]); d != 0 {
			t.Errorf("result %d differs by %g\n%s", i, d, shown)
		}
		if s := got.Stats(); s.NaNs+s.Infs > 0 {
			t.Errorf("result %d is not finite", i)
		}
	}
}

// The small programs train in both forms alike, on finite numbers.
func TestPrograms(t *testing.T) {
	files, err := filepath.Glob("../../testdata/programs/*_train.dmir")
	if err != nil || len(files) < 4 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			agrees(t, string(text))
		})
	}
}

// With Options.Grad a function gives its gradients behind its results.
func TestPassOnFunction(t *testing.T) {
	m := read(t, named("a perceptron"))
	f := m.Funcs[0]
	u := &pass.Unit{Module: m, Func: f, Options: pass.Options{Grad: true}}
	if err := pass.Run(u, []pass.Pass{gradient.Pass()}, nil); err != nil {
		t.Fatal(err)
	}
	if u.Func.Name != "f_grad" || len(u.Func.Results) != 5 || m.Func("f_grad") != u.Func || m.Func("f") != f {
		t.Errorf("@%s gives %v", u.Func.Name, u.Func.Results)
	}
	args := inputs(t, f, 3, nil)
	if d := tensor.MaxDiff(compute(t, m, u.Func, args)[0], compute(t, m, f, args)[0]); d != 0 {
		t.Errorf("the loss differs by %g", d)
	}
}

// Where there is no loss the function takes cotangents.
func TestPassOnFunctionWithoutLoss(t *testing.T) {
	m := read(t, named("a value returned twice"))
	u := &pass.Unit{Module: m, Func: m.Funcs[0], Options: pass.Options{Grad: true}}
	if err := pass.Run(u, []pass.Pass{gradient.Pass()}, nil); err != nil {
		t.Fatal(err)
	}
	if len(u.Func.Args) != 3 || len(u.Func.Results) != 3 {
		t.Errorf("it takes %d and gives %d values", len(u.Func.Args), len(u.Func.Results))
	}
}

// Every function of the examples has a gradient that is a program again, with
// its sizes left open; or a loop is in the way.
func TestExamples(t *testing.T) {
	files, err := filepath.Glob("../../examples/*.dmir")
	if err != nil || len(files) == 0 {
		t.Fatal("no examples", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			m := read(t, string(text))
			for _, f := range m.Funcs {
				if len(f.Args) == 0 {
					continue // nothing to differentiate by
				}
				g, err := gradient.Function(m, f, gradient.Options{Seeded: true, Joint: true})
				if err != nil {
					if !strings.Contains(err.Error(), "dm.while has no derivative") {
						t.Errorf("@%s: %v", f.Name, err)
					}
					continue
				}
				printed(t, m, g)
			}
		})
	}
}

// Half precision: rounded where it is stored, and near the gradient in f64.
func TestHalf(t *testing.T) {
	for _, text := range []string{named("a perceptron"), `func.func @f(%x: tensor<4x8xf64>, %s: tensor<8xf64>, %w: tensor<8x8xf64>) -> tensor<f64> {
  %0 = dm.rms_norm %x, %s : (tensor<4x8xf64>, tensor<8xf64>) -> tensor<4x8xf64>
  %1 = dm.einsum "ij,jk->ik" %0, %w : (tensor<4x8xf64>, tensor<8x8xf64>) -> tensor<4x8xf64>
  %2 = dm.silu %1 : tensor<4x8xf64>
  %3 = dm.softmax %2 : tensor<4x8xf64>
  %4 = dm.dropout %3, rate = 0.2, seed = 4 : tensor<4x8xf64>
  %5 = dm.mul %4, %x : tensor<4x8xf64>
  %6 = dm.reduce add %5 : (tensor<4x8xf64>) -> tensor<f64>
  return %6 : tensor<f64>
}`} {
		gradients := func(elem types.Elem) []*tensor.Tensor {
			m := read(t, strings.ReplaceAll(text, "f64", elem.String()))
			g, err := gradient.Function(m, m.Funcs[0], gradient.Options{})
			if err != nil {
				t.Fatal(err)
			}
			var args []*tensor.Tensor
			for _, x := range inputs(t, read(t, strings.ReplaceAll(text, "f64", "bf16")).Funcs[0], 3, nil) { // every type holds bf16's numbers but for f16's range
				y := tensor.New(elem, x.Shape...)
				for i := range x.Len() {
					y.SetFloat(i, x.Float(i))
				}
				args = append(args, y)
			}
			back, _ := printed(t, m, g)
			return compute(t, back, back.Funcs[0], args)
		}
		exact := gradients(types.F64)
		for elem, limit := range map[types.Elem]float64{types.F32: 1e-5, types.F16: 1e-2, types.BF16: 6e-2} {
			for i, got := range gradients(elem) {
				if d := tensor.MaxDiff(got, exact[i]); d > limit {
					t.Errorf("%s: gradient %d is off by %g", elem, i, d)
				}
			}
		}
	}
}

// An op without a derivative is reported with its line.
func TestErrors(t *testing.T) {
	loop := strings.Replace(named("loops that no gradient flows through"), "dm.constant dense<3> : tensor<i64>", "dm.add %i, %i : tensor<i64>", 1)
	cases := []struct {
		name, text    string
		opts          gradient.Options
		code, message string
	}{
		{"a loop", strings.Replace(loop, "%zero, %c :", "%zero, %s :", 1), gradient.Options{Seeded: true}, "DM811", "line 4: dm.while has no derivative"},
		{"a region", `func.func @f(%x: tensor<3xf64>, %init: tensor<f64>) -> tensor<f64> {
  %y = dm.reduce %x, %init, dims = [0] : (tensor<3xf64>, tensor<f64>) -> tensor<f64> {
  ^bb0(%a: f64, %b: f64):
    %c = dm.max %a, %b : f64
    dm.yield %c : f64
  }
  return %y : tensor<f64>
}`, gradient.Options{}, "DM811", "line 2: dm.reduce has no derivative here: a reduction by a region"},
		{"another dialect", "func.func @f(%x: tensor<3xf64>) -> tensor<f64> {\n  %y = \"other.op\"(%x) : (tensor<3xf64>) -> tensor<f64>\n  return %y : tensor<f64>\n}", gradient.Options{}, "DM811", "line 2: other.op has no derivative"},
		{"a size that is a symbol", `func.func @f(%x: tensor<?x3xf64, #dm.at<dims = [n]>>) -> tensor<?x3xf64, #dm.at<dims = [n]>> {
  %y = dm.layer_norm %x, dims = [0] : tensor<?x3xf64, #dm.at<dims = [n]>>
  return %y : tensor<?x3xf64, #dm.at<dims = [n]>>
}`, gradient.Options{Seeded: true}, "DM811", "line 2: dm.layer_norm has no derivative here: the derivative of dm.layer_norm needs sizes in numbers"},
		{"recursion", "func.func @f(%x: tensor<f64>) -> tensor<f64> {\n  %y = func.call @g(%x) : (tensor<f64>) -> tensor<f64>\n  return %y : tensor<f64>\n}\nfunc.func private @g(%x: tensor<f64>) -> tensor<f64> {\n  %y = func.call @f(%x) : (tensor<f64>) -> tensor<f64>\n  return %y : tensor<f64>\n}", gradient.Options{}, "DM812", "line 2: @g calls itself"},
		{"a declaration", "func.func @f(%x: tensor<f64>) -> tensor<f64> {\n  %y = func.call @g(%x) : (tensor<f64>) -> tensor<f64>\n  return %y : tensor<f64>\n}\nfunc.func private @g(tensor<f64>) -> tensor<f64>", gradient.Options{}, "DM812", "line 2: the body of @g is not a single block that ends in return"},
		{"no such argument", named("a value used thrice"), gradient.Options{Wrt: []int{1}}, "DM813", "line 1: @f has no argument 1"},
		{"an integer", named("maps of several results"), gradient.Options{Wrt: []int{2}, Seeded: true}, "DM813", "argument %i of @f is tensor<3xi64>"},
		{"no loss", named("an argument returned, and one not used"), gradient.Options{}, "DM814", "the first result of @f is not a floating-point scalar"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if c.name == "a loop" { // that the argument goes into
				c.text = strings.Replace(c.text, "  %zero =", "  %s = dm.reduce add %x : (tensor<2xf64>) -> tensor<f64>\n  %zero =", 1)
				c.message = "line 5: dm.while has no derivative"
			}
			m := read(t, c.text)
			_, err := gradient.Function(m, m.Funcs[0], c.opts)
			var e *autodiff.Error
			if !errors.As(err, &e) || e.Code != c.code || !strings.Contains(err.Error(), c.message) {
				t.Fatalf("%v; want %s: %s", err, c.code, c.message)
			}
			if d := e.Diagnostic(); d.Help == "" || d.Name == "" || d.Span.Len() == 0 {
				t.Errorf("the diagnostic is incomplete: %+v", d)
			}
		})
	}
}

// A gradient that cannot be taken ends a run with the op in the way.
func TestErrorWhenRun(t *testing.T) {
	m := read(t, `func.func @f(%x: tensor<3xf32>, %init: tensor<f32>) -> (tensor<f32>, tensor<3xf32>) {
  %y, %dx = dm.grad @g %x, %init, wrt = [0] : (tensor<3xf32>, tensor<f32>) -> (tensor<f32>, tensor<3xf32>)
  return %y, %dx : tensor<f32>, tensor<3xf32>
}
func.func private @g(%x: tensor<3xf32>, %init: tensor<f32>) -> tensor<f32> {
  %y = dm.reduce %x, %init, dims = [0] : (tensor<3xf32>, tensor<f32>) -> tensor<f32> {
  ^bb0(%a: f32, %b: f32):
    %c = dm.max %a, %b : f32
    dm.yield %c : f32
  }
  return %y : tensor<f32>
}`)
	_, err := interp.Run(t.Context(), m, m.Funcs[0], inputs(t, m.Funcs[0], 1, nil), interp.Options{})
	var e *interp.Error
	if !errors.As(err, &e) || e.Code != "DM811" || !strings.Contains(e.Msg, "dm.reduce") || m.Src.Pos(e.Span.Start).Line != 5 {
		t.Errorf("%v", err)
	}
	u := &pass.Unit{Module: m, Func: m.Funcs[0]}
	var p *pass.Error
	if err := pass.Run(u, []pass.Pass{gradient.Pass()}, nil); !errors.As(err, &p) || p.Code != "DM811" || p.Span.Len() == 0 {
		t.Errorf("%v", err)
	}
}
