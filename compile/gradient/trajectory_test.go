package gradient_test

import (
	"math"
	"os"
	"strings"
	"testing"

	"dmir/compile/gradient"
	"dmir/compile/pass"
	"dmir/compile/tensor"
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// Twelve Adam steps of a small transformer follow the trajectory that NumPy
// computes with gradients from complex steps (testdata/transformer.py): step by
// step as dm.grad is run, and with the joint graph written out.
func TestTrajectory(t *testing.T) {
	raw, err := os.ReadFile("testdata/transformer.dmir")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		elem    types.Elem
		expand  bool
		allowed float64
	}{
		{"f64", types.F64, false, 1e-10},
		{"f64, written out", types.F64, true, 1e-10},
		{"f32", types.F32, false, 2e-4},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := read(t, strings.ReplaceAll(string(raw), "f64", c.elem.String()))
			f := m.Func("train")
			if c.expand {
				u := &pass.Unit{Module: m, Func: f}
				if err := pass.Run(u, []pass.Pass{gradient.Pass()}, nil); err != nil {
					t.Fatal(err)
				}
				f = u.Func
			}
			follow(t, m, f, c.elem, c.allowed)
		})
	}
}

func follow(t *testing.T, m *ir.Module, f *ir.Func, elem types.Elem, allowed float64) {
	npz, err := tensor.OpenNPZ("testdata/transformer.npz")
	if err != nil {
		t.Fatal(err)
	}
	defer npz.Close()
	load := func(name string, elem types.Elem) *tensor.Tensor {
		shape, _, err := npz.Describe(name)
		if err != nil {
			t.Fatal(err)
		}
		stored := types.I64
		if elem.IsFloat() {
			stored = types.F64
		}
		x, err := npz.Read(name, stored, shape)
		if err != nil {
			t.Fatal(err)
		}
		y := tensor.New(elem, x.Shape...)
		for i := range x.Len() {
			if elem.IsFloat() {
				y.SetFloat(i, x.Float(i))
			} else {
				y.SetInt(i, x.Integer(i))
			}
		}
		return y
	}
	args := make([]*tensor.Tensor, len(f.Args))
	args[0], args[1] = load("ids", types.I64), load("labels", types.I64)
	for i := 3; i < len(args); i += 3 {
		w := load(f.Args[i].Name[1:]+".start", elem)
		args[i], args[i+1], args[i+2] = w, tensor.New(elem, w.Shape...), tensor.New(elem, w.Shape...)
	}
	losses := load("losses", types.F64)
	for step := range losses.Len() {
		args[2] = tensor.FromInts(types.I64, []int{}, []int64{int64(step) + 1})
		outs := compute(t, m, f, args)
		if got, want := outs[0].Float(0), losses.Float(step); math.Abs(got-want) > allowed {
			t.Fatalf("step %d: the loss is %.12g, want %.12g", step+1, got, want)
		}
		if step > 0 && losses.Float(step) >= losses.Float(step-1) {
			t.Errorf("step %d: the loss does not fall", step+1)
		}
		copy(args[3:], outs[1:])
	}
	for i := 3; i < len(args); i += 3 {
		name := f.Args[i].Name[1:]
		if d := tensor.MaxDiff(args[i], load(name+".end", elem)); d > allowed*10 {
			t.Errorf("%s is off by %g after %d steps", name, d, losses.Len())
		}
	}
}
