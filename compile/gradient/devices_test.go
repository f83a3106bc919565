package gradient_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"

	"dmir/compile/gradient"
	"dmir/compile/interp"
	"dmir/compile/tensor"
	"dmir/dialect/ir"
	"dmir/dialect/lower"
	"dmir/dialect/mesh"
	"dmir/dialect/op"
	"dmir/dialect/print"
	"dmir/dialect/verify"
	"dmir/gpu/collective"
	"dmir/syntax/diag"
	"dmir/syntax/parse"
	"dmir/syntax/source"
)

// collectives are bodies of a function of %x: tensor<4x4xf64> that a mesh of 2×2 devices runs,
// with the type of the result %y.
var collectives = []struct{ body, result string }{
	{`%y = dm.all_reduce add %x, axes = ["a"] : tensor<4x4xf64>`, "4x4"},
	{`%0 = dm.exp %x : tensor<4x4xf64>
  %1 = dm.all_reduce add %0, axes = ["b", "a"] : tensor<4x4xf64>
  %y = dm.mul %1, %x : tensor<4x4xf64>`, "4x4"},
	{`%y = dm.reduce_scatter add %x, dim = 1, axes = ["b"] : (tensor<4x4xf64>) -> tensor<4x2xf64>`, "4x2"},
	{`%0 = dm.sin %x : tensor<4x4xf64>
  %y = dm.reduce_scatter add %0, dim = -2, axes = ["b", "a"] : (tensor<4x4xf64>) -> tensor<1x4xf64>`, "1x4"},
	{`%0 = dm.all_gather %x, dim = 1, axes = ["a", "b"] : (tensor<4x4xf64>) -> tensor<4x16xf64>
  %y = dm.mul %0, %0 : tensor<4x16xf64>`, "4x16"},
	{`%y = dm.all_to_all %x, split = 0, concat = 1, axes = ["a"] : (tensor<4x4xf64>) -> tensor<2x8xf64>`, "2x8"},
	{`%y = dm.all_to_all %x, split = 1, concat = 1, axes = ["b", "a"] : tensor<4x4xf64>`, "4x4"},
	{`%y = dm.collective_permute %x, pairs = [[0, 3], [3, 1]], axes = ["a", "b"] : tensor<4x4xf64>`, "4x4"},
	{`%0 = dm.exp %x : tensor<4x4xf64>
  dm.send %0, from = 1, to = 0, channel = 7, axes = ["b"] : (tensor<4x4xf64>) -> ()
  %1 = dm.recv from = 1, to = 0, channel = 7, axes = ["b"] : tensor<4x4xf64>
  %y = dm.mul %1, %x : tensor<4x4xf64>`, "4x4"},
	// What is received goes on, and what comes back does so the other way round.
	{`dm.send %x, from = 0, to = 1, axes = ["a"] : (tensor<4x4xf64>) -> ()
  %0 = dm.recv from = 0, to = 1, axes = ["a"] : tensor<4x4xf64>
  %1 = dm.mul %0, %x : tensor<4x4xf64>
  dm.send %1, from = 1, to = 0, channel = 1, axes = ["a"] : (tensor<4x4xf64>) -> ()
  %2 = dm.recv from = 1, to = 0, channel = 1, axes = ["a"] : tensor<4x4xf64>
  dm.send %x, from = 0, to = 1, channel = 2, axes = ["b"] : (tensor<4x4xf64>) -> ()
  %unused = dm.recv from = 0, to = 1, channel = 2, axes = ["b"] : tensor<4x4xf64>
  %y = dm.add %2, %1 : tensor<4x4xf64>`, "4x4"},
	{`%c = dm.constant true : tensor<i1>
  %y = dm.if %c : (tensor<i1>) -> tensor<4x4xf64> {
    %1 = dm.all_reduce add %x, axes = ["a"] : tensor<4x4xf64>
    dm.yield %1 : tensor<4x4xf64>
  } else {
    dm.yield %x : tensor<4x4xf64>
  }`, "4x4"},
}

func deviceText(body, result string) string {
	return "dm.mesh @m {a = 2, b = 2}\nfunc.func @f(%x: tensor<4x4xf64>) -> tensor<" + result + "xf64> attributes {dm.mesh = @m} {\n  " + body + "\n  return %y : tensor<" + result + "xf64>\n}\n"
}

// The gradient of the sum of what all devices compute agrees with central differences on each
// of them.
func TestCollectives(t *testing.T) {
	tried := strings.Builder{}
	for i, c := range collectives {
		tried.WriteString(c.body)
		t.Run(fmt.Sprint(i), func(t *testing.T) { againstDevices(t, deviceText(c.body, c.result)) })
	}
	for _, d := range op.All() {
		if d.Is(op.Collective) && !strings.Contains(tried.String(), d.FullName()+" ") {
			t.Errorf("the derivative of %s is not tried", d.FullName())
		}
	}
}

func againstDevices(t *testing.T, text string) {
	t.Helper()
	m := read(t, text)
	f := m.Funcs[0]
	g, err := gradient.Function(m, f, gradient.Options{Seeded: true})
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	shown, err := print.Pretty(&ir.Module{Src: m.Src, Ops: []*ir.Op{m.Ops[0], g.Op}})
	if err != nil {
		t.Fatal(err)
	}
	back := read(t, shown)
	devices := mesh.Find(m, "m").Devices()
	args, cots := make([][]*tensor.Tensor, devices), make([]*tensor.Tensor, devices)
	for i := range args {
		args[i] = inputs(t, f, uint64(i+1), nil)
	}
	ys := computeOn(t, m, f, args)
	both := make([][]*tensor.Tensor, devices)
	for i, y := range ys {
		cots[i] = tensor.New(f64, y.Shape...)
		for k := range y.Len() {
			cots[i].SetFloat(k, tensor.Normal(77, uint64(i), uint64(k)))
		}
		both[i] = append(append([]*tensor.Tensor{}, args[i]...), cots[i])
	}
	grads := computeOn(t, back, back.Funcs[0], both)
	value := func() (sum float64) {
		for i, y := range computeOn(t, m, f, args) {
			for k := range y.Len() {
				sum += y.Float(k) * cots[i].Float(k)
			}
		}
		return sum
	}
	const h = 1e-5
	for i := range args {
		x := args[i][0]
		for k := range x.Len() {
			was := x.Float(k)
			x.SetFloat(k, was+h)
			up := value()
			x.SetFloat(k, was-h)
			down := value()
			x.SetFloat(k, was)
			want := (up - down) / (2 * h)
			if got := grads[i].Float(k); !(math.Abs(got-want) <= 2e-6*(1+math.Abs(want))) {
				t.Fatalf("device %d, element %d is %.9g, differences give %.9g\n%s\n%s", i, k, got, want, text, shown)
			}
		}
	}
}

// computeOn is the first result of f on each device.
func computeOn(t *testing.T, m *ir.Module, f *ir.Func, args [][]*tensor.Tensor) []*tensor.Tensor {
	t.Helper()
	out, failed := make([]*tensor.Tensor, len(args)), make([]error, len(args))
	var wait sync.WaitGroup
	for i, comm := range collective.Local(len(args)) {
		wait.Go(func() {
			r, err := interp.Run(context.Background(), m, f, args[i], interp.Options{Threads: 1, Device: &interp.Device{Mesh: mesh.Find(m, "m"), ID: i, Comm: comm}})
			if failed[i] = err; err != nil {
				comm.Abort(err)
				return
			}
			out[i] = r.Outputs[0]
		})
	}
	wait.Wait()
	for _, err := range failed {
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// What has no gradient is refused with what to do.
func TestCollectivesRefused(t *testing.T) {
	for _, c := range []struct{ body, want string }{
		{`%y = dm.all_reduce max %x, axes = ["a"] : tensor<4x4xf64>`, "which device gave the result of a reduction by max is not known"},
		{`dm.send %x, from = 0, to = 1, axes = ["a"] : (tensor<4x4xf64>) -> ()
  %y = dm.recv from = 0, to = 1, channel = 1, axes = ["a"] : tensor<4x4xf64>`, "no dm.recv behind it in its block has its channel"},
	} {
		f := parse.File(source.New("refused.dmir", deviceText(c.body, "4x4")))
		m := lower.File(f)[0]
		for _, d := range verify.Module(m) {
			if d.Severity == diag.Error {
				t.Fatal(d.Message)
			}
		}
		_, err := gradient.Function(m, m.Funcs[0], gradient.Options{Seeded: true})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.body, err, c.want)
		}
	}
}
