package microbatch_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dmir/compile/interp"
	"dmir/compile/pass"
	"dmir/compile/pass/passtest"
	"dmir/compile/pipeline"
	"dmir/compile/tensor"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/testkit/need"
)

// passed is the first function of text after the passes that executors need, with the number of micro-batches; 0 leaves
// the attribute away.
func passed(t testing.TB, text string, n int) (*pass.Unit, error) {
	t.Helper()
	u := passtest.Unit(t, text, "", nil)
	if n > 0 {
		u.Func.Op.SetAttr(op.MicrobatchesAttr, types.Int{V: int64(n), Elem: types.I64})
	}
	return u, pass.Run(u, pipeline.Divide(), nil)
}

// run is what the steps of u return, the state handed from one to the next.
func run(t testing.TB, u *pass.Unit, args []*tensor.Tensor, steps int) (all [][]*tensor.Tensor) {
	t.Helper()
	args = append([]*tensor.Tensor(nil), args...)
	for range steps {
		r, err := interp.Run(t.Context(), u.Module, u.Func, args, interp.Options{})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r.Outputs)
		for i, k := range op.State(u.Func.Op) {
			if k >= 0 {
				args[k] = r.Outputs[i]
			}
		}
	}
	return all
}

// farthest is the largest relative difference between two results, against the largest element.
func farthest(t testing.TB, want, got *tensor.Tensor) float64 {
	t.Helper()
	if want.Type() != got.Type() {
		t.Fatalf("a result is %s, not %s", got.Type(), want.Type())
	}
	most, diff := 0.0, 0.0
	for i := range want.Len() {
		a, b := want.Float(i), got.Float(i)
		if math.IsNaN(a) != math.IsNaN(b) {
			return math.Inf(1)
		}
		if !math.IsNaN(a) && a != b {
			most, diff = max(most, math.Abs(a)), max(diff, math.Abs(a-b))
		}
	}
	if diff == 0 {
		return 0
	}
	return diff / max(most, 1e-300)
}

// same compares the step of text, cut into n micro-batches, with that of the whole batch, and returns the former.
func same(t testing.TB, text string, n, steps int, tolerance float64) *pass.Unit {
	t.Helper()
	whole, err := passed(t, text, 0)
	if err != nil {
		t.Fatal(err)
	}
	cut, err := passed(t, text, n)
	if err != nil {
		t.Fatalf("%d micro-batches: %v", n, err)
	}
	args, err := interp.Inputs(t.Context(), whole.Func, nil, 7, nil)
	if err != nil {
		t.Fatal(err)
	}
	want, got := run(t, whole, args, steps), run(t, cut, args, steps)
	for s := range want {
		for i := range want[s] {
			if d := farthest(t, want[s][i], got[s][i]); d > tolerance {
				t.Errorf("%d micro-batches, step %d, result %d: differs by %.3g of its largest element", n, s, i, d)
			}
		}
	}
	marks(t, cut.Func, n)
	return cut
}

// marks checks that ops have the number of their micro-batch, and read nothing of a later one but accumulated sums.
func marks(t testing.TB, f *ir.Func, n int) {
	t.Helper()
	seen := map[int64]int{}
	for _, o := range f.Body.Ops {
		a := o.Attr(op.MicroAttr)
		if a == nil {
			continue
		}
		i := o.Int(op.MicroAttr, -1)
		seen[i]++
		for _, v := range o.Operands {
			if v.Op == nil || v.Op.Attr(op.MicroAttr) == nil {
				continue
			}
			if k := v.Op.Int(op.MicroAttr, -1); k > i && !(k == int64(n)-1 && v.Op.Name == "dm.add") {
				t.Errorf("%s of micro-batch %d reads %s of micro-batch %d", o.Name, i, v.Name, k)
			}
		}
	}
	if len(seen) != n {
		t.Errorf("ops of %d micro-batches, not %d", len(seen), n)
	}
}

// Each program is a step whose loss is not simply the mean of the losses of its micro-batches, or whose ops could
// depend on rows of others.
var programs = map[string]string{
	"mean": `func.func @f(%x: tensor<8x3xf64>, %y: tensor<8x2xf64>, %w: tensor<3x2xf64> {dm.stddev = 0.5}) -> (tensor<f64>, tensor<3x2xf64> {dm.state = "w"}) {
  %loss, %d = dm.grad @l %x, %y, %w, wrt = [2] : (tensor<8x3xf64>, tensor<8x2xf64>, tensor<3x2xf64>) -> (tensor<f64>, tensor<3x2xf64>)
  %r = dm.constant dense<0.1> : tensor<f64>
  %s = dm.mul %d, %r : (tensor<3x2xf64>, tensor<f64>) -> tensor<3x2xf64>
  %n = dm.sub %w, %s : tensor<3x2xf64>
  return %loss, %n : tensor<f64>, tensor<3x2xf64>
}
func.func private @l(%x: tensor<8x3xf64>, %y: tensor<8x2xf64>, %w: tensor<3x2xf64>) -> tensor<f64> {
  %p = dm.matmul %x, %w : (tensor<8x3xf64>, tensor<3x2xf64>) -> tensor<8x2xf64>
  %e = dm.sub %p, %y : tensor<8x2xf64>
  %q = dm.mul %e, %e : tensor<8x2xf64>
  %m = dm.mean %q : (tensor<8x2xf64>) -> tensor<f64>
  return %m : tensor<f64>
}`,
	"masked mean": `func.func @f(%x: tensor<8x3xf64>, %m: tensor<8xf64>, %w: tensor<3x2xf64> {dm.stddev = 0.5}) -> (tensor<f64>, tensor<8x2xf64>, tensor<3x2xf64> {dm.state = "w"}) {
  %loss, %p, %d = dm.grad @l %x, %m, %w, wrt = [2] : (tensor<8x3xf64>, tensor<8xf64>, tensor<3x2xf64>) -> (tensor<f64>, tensor<8x2xf64>, tensor<3x2xf64>)
  %n = dm.sub %w, %d : tensor<3x2xf64>
  return %loss, %p, %n : tensor<f64>, tensor<8x2xf64>, tensor<3x2xf64>
}
func.func private @l(%x: tensor<8x3xf64>, %m: tensor<8xf64>, %w: tensor<3x2xf64>) -> (tensor<f64>, tensor<8x2xf64>) {
  %p = dm.matmul %x, %w : (tensor<8x3xf64>, tensor<3x2xf64>) -> tensor<8x2xf64>
  %t = dm.tanh %p : tensor<8x2xf64>
  %row = dm.reduce add %t, dims = [1] : (tensor<8x2xf64>) -> tensor<8xf64>
  %q = dm.mul %row, %m : tensor<8xf64>
  %sum = dm.reduce add %q : (tensor<8xf64>) -> tensor<f64>
  %count = dm.reduce add %m : (tensor<8xf64>) -> tensor<f64>
  %loss = dm.div %sum, %count : tensor<f64>
  return %loss, %t : tensor<f64>, tensor<8x2xf64>
}`,
	"cross entropy with padded labels, tied weights": `func.func @f(%tokens: tensor<8x5xi64>, %labels: tensor<8x5xi64>, %e: tensor<7x4xf64> {dm.stddev = 0.5}) -> (tensor<f64>, tensor<7x4xf64> {dm.state = "e"}) {
  %pad = dm.constant dense<3> : tensor<i64>
  %ignored = dm.constant dense<-100> : tensor<i64>
  %is = dm.compare eq %labels, %pad : (tensor<8x5xi64>, tensor<i64>) -> tensor<8x5xi1>
  %padded = dm.select %is, %ignored, %labels : (tensor<8x5xi1>, tensor<i64>, tensor<8x5xi64>) -> tensor<8x5xi64>
  %loss, %d = dm.grad @l %tokens, %padded, %e, wrt = [2] : (tensor<8x5xi64>, tensor<8x5xi64>, tensor<7x4xf64>) -> (tensor<f64>, tensor<7x4xf64>)
  %n = dm.sub %e, %d : tensor<7x4xf64>
  return %loss, %n : tensor<f64>, tensor<7x4xf64>
}
func.func private @l(%tokens: tensor<8x5xi64>, %labels: tensor<8x5xi64>, %e: tensor<7x4xf64>) -> tensor<f64> {
  %x = dm.embedding %e, %tokens : (tensor<7x4xf64>, tensor<8x5xi64>) -> tensor<8x5x4xf64>
  %h = dm.gelu %x : tensor<8x5x4xf64>
  %p = dm.einsum "bse,ve->bsv" %h, %e : (tensor<8x5x4xf64>, tensor<7x4xf64>) -> tensor<8x5x7xf64>
  %loss = dm.cross_entropy %p, %labels : (tensor<8x5x7xf64>, tensor<8x5xi64>) -> tensor<f64>
  return %loss : tensor<f64>
}`,
	"statistics of the batch": `func.func @f(%x: tensor<8x3xf64>, %w: tensor<3x4xf64> {dm.stddev = 0.5}, %mean: tensor<4xf64> {dm.init = 0.0}) -> (tensor<f64>, tensor<3x4xf64> {dm.state = "w"}, tensor<4xf64> {dm.state = "mean"}) {
  %loss, %m, %d = dm.grad @l %x, %w, wrt = [1] : (tensor<8x3xf64>, tensor<3x4xf64>) -> (tensor<f64>, tensor<4xf64>, tensor<3x4xf64>)
  %n = dm.sub %w, %d : tensor<3x4xf64>
  %running = dm.add %mean, %m : tensor<4xf64>
  return %loss, %n, %running : tensor<f64>, tensor<3x4xf64>, tensor<4xf64>
}
func.func private @l(%x: tensor<8x3xf64>, %w: tensor<3x4xf64>) -> (tensor<f64>, tensor<4xf64>) {
  %p = dm.matmul %x, %w : (tensor<8x3xf64>, tensor<3x4xf64>) -> tensor<8x4xf64>
  %m = dm.mean %p, dims = [0] : (tensor<8x4xf64>) -> tensor<4xf64>
  %c = dm.sub %p, %m : (tensor<8x4xf64>, tensor<4xf64>) -> tensor<8x4xf64>
  %q = dm.mul %c, %c : tensor<8x4xf64>
  %v = dm.mean %q, dims = [0] : (tensor<8x4xf64>) -> tensor<4xf64>
  %r = dm.rsqrt %v : tensor<4xf64>
  %y = dm.mul %c, %r : (tensor<8x4xf64>, tensor<4xf64>) -> tensor<8x4xf64>
  %z = dm.gelu %y : tensor<8x4xf64>
  %t = dm.mul %z, %p : tensor<8x4xf64>
  %loss = dm.mean %t : (tensor<8x4xf64>) -> tensor<f64>
  return %loss, %m : tensor<f64>, tensor<4xf64>
}`,
	"layer norm, attention and dropout": `func.func @f(%x: tensor<8x2x4x3xf64>, %w: tensor<3xf64> {dm.stddev = 0.5}, %s: tensor<i32> {dm.init = 0}) -> (tensor<f64>, tensor<3xf64> {dm.state = "w"}, tensor<i32> {dm.state = "s"}) {
  %loss, %d = dm.grad @l %x, %w, %s, wrt = [1] : (tensor<8x2x4x3xf64>, tensor<3xf64>, tensor<i32>) -> (tensor<f64>, tensor<3xf64>)
  %n = dm.sub %w, %d : tensor<3xf64>
  %one = dm.constant dense<1> : tensor<i32>
  %next = dm.add %s, %one : tensor<i32>
  return %loss, %n, %next : tensor<f64>, tensor<3xf64>, tensor<i32>
}
func.func private @l(%x: tensor<8x2x4x3xf64>, %w: tensor<3xf64>, %s: tensor<i32>) -> tensor<f64> {
  %h = dm.layer_norm %x, %w, %w : (tensor<8x2x4x3xf64>, tensor<3xf64>, tensor<3xf64>) -> tensor<8x2x4x3xf64>
  %a = dm.attention %h, %h, %h, %s, scale = 0.01, causal = true, dropout = 0.2 : (tensor<8x2x4x3xf64>, tensor<8x2x4x3xf64>, tensor<8x2x4x3xf64>, tensor<i32>) -> tensor<8x2x4x3xf64>
  %y = dm.dropout %a, %s, rate = 0.3, seed = 5 : (tensor<8x2x4x3xf64>, tensor<i32>) -> tensor<8x2x4x3xf64>
  %q = dm.mul %y, %x : tensor<8x2x4x3xf64>
  %loss = dm.reduce add %q : (tensor<8x2x4x3xf64>) -> tensor<f64>
  return %loss : tensor<f64>
}`,
	"positions and extremes": `func.func @f(%x: tensor<8x3xf64>, %w: tensor<3xf64> {dm.stddev = 0.5}) -> (tensor<f64>, tensor<f64>, tensor<3xf64> {dm.state = "w"}) {
  %at = dm.iota dim = 0 : tensor<8x1xf64>
  %xs = dm.mul %x, %at : (tensor<8x3xf64>, tensor<8x1xf64>) -> tensor<8x3xf64>
  %loss, %most, %d = dm.grad @l %xs, %w, wrt = [1] : (tensor<8x3xf64>, tensor<3xf64>) -> (tensor<f64>, tensor<f64>, tensor<3xf64>)
  %n = dm.sub %w, %d : tensor<3xf64>
  return %loss, %most, %n : tensor<f64>, tensor<f64>, tensor<3xf64>
}
func.func private @l(%x: tensor<8x3xf64>, %w: tensor<3xf64>) -> (tensor<f64>, tensor<f64>) {
  %p = dm.mul %x, %w : (tensor<8x3xf64>, tensor<3xf64>) -> tensor<8x3xf64>
  %most = dm.reduce max %p : (tensor<8x3xf64>) -> tensor<f64>
  %z = dm.tanh %p : tensor<8x3xf64>
  %loss = dm.reduce add %z : (tensor<8x3xf64>) -> tensor<f64>
  return %loss, %most : tensor<f64>, tensor<f64>
}`,
	"norm of the gradient": `func.func @f(%x: tensor<8x3xf64>, %w: tensor<3x4xf64> {dm.stddev = 0.5}) -> (tensor<f64>, tensor<3x4xf64> {dm.state = "w"}) {
  %loss, %d = dm.grad @l %x, %w, wrt = [1] : (tensor<8x3xf64>, tensor<3x4xf64>) -> (tensor<f64>, tensor<3x4xf64>)
  %q = dm.mul %d, %d : tensor<3x4xf64>
  %s = dm.reduce add %q : (tensor<3x4xf64>) -> tensor<f64>
  %r = dm.rsqrt %s : tensor<f64>
  %u = dm.mul %d, %r : (tensor<3x4xf64>, tensor<f64>) -> tensor<3x4xf64>
  %n = dm.sub %w, %u : tensor<3x4xf64>
  return %loss, %n : tensor<f64>, tensor<3x4xf64>
}
func.func private @l(%x: tensor<8x3xf64>, %w: tensor<3x4xf64>) -> tensor<f64> {
  %p = dm.matmul %x, %w : (tensor<8x3xf64>, tensor<3x4xf64>) -> tensor<8x4xf64>
  %t = dm.softmax %p : tensor<8x4xf64>
  %l = dm.log %t : tensor<8x4xf64>
  %loss = dm.mean %l : (tensor<8x4xf64>) -> tensor<f64>
  return %loss : tensor<f64>
}`,
	"a loop over time, the batch second": `func.func @f(%x: tensor<3x8x4xf64>, %w: tensor<4x4xf64> {dm.stddev = 0.5}) -> (tensor<f64>, tensor<4x4xf64> {dm.state = "w"}) {
  %loss, %d = dm.grad @l %x, %w, wrt = [1] : (tensor<3x8x4xf64>, tensor<4x4xf64>) -> (tensor<f64>, tensor<4x4xf64>)
  %n = dm.sub %w, %d : tensor<4x4xf64>
  return %loss, %n : tensor<f64>, tensor<4x4xf64>
}
func.func private @l(%x: tensor<3x8x4xf64>, %w: tensor<4x4xf64>) -> tensor<f64> {
  %zero = dm.constant dense<0.0> : tensor<8x4xf64>
  %h = dm.scan %zero, %x, carries = 1 : (tensor<8x4xf64>, tensor<3x8x4xf64>) -> tensor<8x4xf64> {
  ^bb0(%last: tensor<8x4xf64>, %now: tensor<8x4xf64>):
    %p = dm.matmul %last, %w : (tensor<8x4xf64>, tensor<4x4xf64>) -> tensor<8x4xf64>
    %s = dm.add %p, %now : tensor<8x4xf64>
    %t = dm.tanh %s : tensor<8x4xf64>
    dm.yield %t : tensor<8x4xf64>
  }
  %loss = dm.mean %h : (tensor<8x4xf64>) -> tensor<f64>
  return %loss : tensor<f64>
}`,
}

func TestGradientOfTheWholeBatch(t *testing.T) {
	for name, text := range programs {
		t.Run(name, func(t *testing.T) {
			for _, n := range []int{2, 3, 4, 8} {
				same(t, text, n, 3, 1e-12)
			}
		})
	}
}

// Where the last micro-batch has fewer rows than the others, it alone is masked.
func TestUneven(t *testing.T) {
	u := same(t, programs["mean"], 3, 1, 1e-12)
	for _, o := range u.Func.Body.Ops {
		if o.Name == "dm.select" && o.Int(op.MicroAttr, -1) != 2 {
			t.Errorf("micro-batch %d is masked", o.Int(op.MicroAttr, -1))
		}
	}
}

// A step that cannot be cut is refused with its op, or with the numbers that divide its batch.
func TestRefusals(t *testing.T) {
	step := func(body string) string {
		return `func.func @f(%x: tensor<6x3xf64>, %w: tensor<3x3xf64> {dm.stddev = 0.5}) -> (tensor<f64>, tensor<3x3xf64> {dm.state = "w"}) {
  %p = dm.matmul %x, %w : (tensor<6x3xf64>, tensor<3x3xf64>) -> tensor<6x3xf64>
` + body + `
  %loss = dm.reduce add %y : (tensor<6x3xf64>) -> tensor<f64>
  return %loss, %w : tensor<f64>, tensor<3x3xf64>
}`
	}
	for name, c := range map[string]struct {
		text string
		n    int
		want string
	}{
		"rows that are sorted": {step("  %y = dm.sort %p, dim = 0 : (tensor<6x3xf64>) -> tensor<6x3xf64>"), 2, "for dm.sort, the whole batch of %p is needed at once (dimension 0 of %x"},
		"no divisor":           {step("  %y = dm.exp %p : tensor<6x3xf64>"), 4, "dimension 0 of %x has 6 elements: of 4 micro-batches, with 2 each but for the last, some would have none"},
		"no divisor, and weights that state nothing": {`func.func @f(%x: tensor<6x8xf64>, %n: tensor<f64> {dm.init = 1.0}, %w: tensor<8x8xf64>) -> (tensor<f64>, tensor<8x8xf64>) {
  %p = dm.matmul %x, %w : (tensor<6x8xf64>, tensor<8x8xf64>) -> tensor<6x8xf64>
  %loss = dm.reduce add %p : (tensor<6x8xf64>) -> tensor<f64>
  %next = dm.mul %w, %n : (tensor<8x8xf64>, tensor<f64>) -> tensor<8x8xf64>
  return %loss, %next : tensor<f64>, tensor<8x8xf64>
}`, 4, "dimension 0 of %x has 6 elements: of 4 micro-batches, with 2 each but for the last, some would have none"},
		"no batch": {`func.func @f(%w: tensor<3x3xf64> {dm.stddev = 0.5}) -> (tensor<3x3xf64> {dm.state = "w"}) {
  %y = dm.exp %w : tensor<3x3xf64>
  return %y : tensor<3x3xf64>
}`, 2, "no argument of @f is a batch"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := passed(t, c.text, c.n)
			var e *pass.Error
			if !errors.As(err, &e) || e.Code != "DM834" || !strings.Contains(e.Msg, c.want) {
				t.Fatalf("error %v, want %q", err, c.want)
			}
			if e.Help == "" || e.Span.Len() == 0 {
				t.Errorf("the diagnostic has no help or no place")
			}
		})
	}
}

// The examples that train compute with micro-batches what they compute of the whole batch.
func TestExamples(t *testing.T) {
	need.Long(t)
	for name, steps := range map[string]int{"lstm_train": 3, "cnn_train": 1, "moe": 2, "mlp_megatron": 2} {
		text, err := os.ReadFile(filepath.Join("..", "..", "examples", name+".dmir"))
		if err != nil {
			t.Fatal(err)
		}
		for n := 2; n <= 4; n += 2 {
			if name == "cnn_train" { // which takes long on the reference executor
				n = 4
			}
			t.Run(fmt.Sprint(name, " ", n), func(t *testing.T) { same(t, string(text), n, steps, 1e-3) })
		}
	}
}
