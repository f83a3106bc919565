package conformance

import (
	"strings"
	"testing"

	"dmir/compile/interp"
	"dmir/compile/tensor"
	"dmir/dialect/ir"
	"dmir/dialect/onnx"
	"dmir/dialect/types"
	. "dmir/internal/onnxmodel"
)

// A model whose sizes are open gives one program, which computes for all sizes what the
// model imported with them does.
func TestOnnxOpenSizes(t *testing.T) {
	type list = []Message
	names := func(s ...string) []string { return s }
	in := func(shape ...any) Message { return Value("x", F32, shape...) }
	one := Ints("one", []int{1}, 1)
	dimension := func(i int, out string) list { // out is a list of the size of a dimension of x
		return list{
			Node("Shape", names("x"), names(out+"_all")),
			Node("Constant", nil, names(out+"_at"), Attr("value", Ints("", []int{1}, int64(i)))),
			Node("Gather", names(out+"_all", out+"_at"), names(out)),
		}
	}
	for name, c := range map[string]struct {
		input     Message
		constants list
		nodes     list
		sizes     []map[string]int64
		text      string // that the program has
	}{
		"heads": {
			in("n", 6),
			list{Ints("split", []int{2}, 2, 3)},
			append(dimension(0, "n"), Node("Concat", names("n", "split"), names("to"), Attr("axis", 0)), Node("Reshape", names("x", "to"), names("y"))),
			[]map[string]int64{{"n": 1}, {"n": 5}},
			"tensor<?x2x3xf32, #dm.at<dims = [n]>>",
		},
		"joined": {
			in("n", "m", 4),
			list{Ints("to", []int{2}, -1, 2)},
			list{Node("Reshape", names("x", "to"), names("y"))},
			[]map[string]int64{{"n": 1, "m": 1}, {"n": 2, "m": 7}},
			"dims = [2*m*n]",
		},
		"positions": { // of the first n of 300 rows
			in("n", 2),
			list{Floats("rows", []int{300, 2}, make([]float32, 600)...), Ints("zero", []int{1}, 0), one},
			append(dimension(0, "n"), Node("Slice", names("rows", "zero", "n", "zero", "one"), names("p")), Node("Sub", names("x", "p"), names("y"))),
			[]map[string]int64{{"n": 1}, {"n": 300}},
			"dm.gather",
		},
		"range": {
			in("n"),
			list{Ints("none", []int{}, 0), Ints("step", []int{}, 1)},
			append(dimension(0, "n"), Node("Squeeze", names("n"), names("limit")), Node("Range", names("none", "limit", "step"), names("r")),
				Node("Cast", names("r"), names("f"), Attr("to", F32)), Node("Mul", names("x", "f"), names("y"))),
			[]map[string]int64{{"n": 1}, {"n": 6}},
			"dm.iota",
		},
		"triangle": {
			in("n", "n"), nil,
			list{
				Node("Shape", names("x"), names("s")), Node("ConstantOfShape", names("s"), names("ones"), Attr("value", Floats("v", []int{1}, 1))),
				Node("Trilu", names("ones"), names("mask"), Attr("upper", int64(0))), Node("Mul", names("x", "mask"), names("y")),
			},
			[]map[string]int64{{"n": 1}, {"n": 4}},
			"dims = [n, n]",
		},
		"windows": {
			in(1, 1, "h", "x.w"),
			list{Floats("k", []int{1, 1, 3, 3}, 1, 2, 3, 4, 5, 6, 7, 8, 9)},
			list{
				Node("Conv", names("x", "k"), names("c"), Attr("strides", []int{2, 2}), Attr("pads", []int{1, 1, 1, 1})),
				Node("MaxPool", names("c"), names("y"), Attr("kernel_shape", []int{2, 2}), Attr("strides", []int{2, 2})),
			},
			[]map[string]int64{{"h": 3, "x.w": 4}, {"h": 8, "x.w": 13}},
			"dims = [(h + 1)/4, (x_w + 1)/4]",
		},
		"pairs": {
			in("n", 2), nil,
			list{Node("Transpose", names("x"), names("t")), Node("MatMul", names("x", "t"), names("z")), Node("Concat", names("z", "x"), names("y"), Attr("axis", 1))},
			[]map[string]int64{{"n": 1}, {"n": 3}},
			"dims = [n, n + 2]",
		},
	} {
		t.Run(name, func(t *testing.T) {
			model := Model(13, Graph(list{c.input}, list{Value("y", F32)}, c.constants, c.nodes...))
			opts := onnx.Options{Evaluate: func(f *ir.Func) ([]*types.Dense, error) { return interp.Literals(t.Context(), f) }}
			open, err := onnx.Import("model.onnx", model, opts)
			if err != nil {
				t.Fatal(err)
			}
			text, _, err := onnx.Text("model.onnx", model, opts, "")
			if err != nil || !strings.Contains(text, c.text) {
				t.Errorf("%v; want %q in\n%s", err, c.text, text)
			}
			for _, opts.Bind = range c.sizes {
				bound, err := onnx.Import("model.onnx", model, opts)
				if err != nil {
					t.Fatal(err)
				}
				var shape []int
				for _, d := range bound.Func("main").Args[0].Tensor().Shape {
					n, _ := d.Int()
					shape = append(shape, int(n))
				}
				x := tensor.New(types.F32, shape...)
				for i := range x.F32 {
					x.F32[i] = float32(i%7) - 2
				}
				var got [2]*tensor.Tensor
				for i, m := range []*ir.Module{open, bound} {
					res, err := interp.Run(t.Context(), m, m.Func("main"), []*tensor.Tensor{x}, interp.Options{})
					if err != nil {
						t.Fatalf("%v: %v", opts.Bind, err)
					}
					got[i] = res.Outputs[0]
				}
				if err := close(got[0], got[1]); err != nil {
					t.Errorf("%v: %v", opts.Bind, err)
				}
			}
		})
	}
}
