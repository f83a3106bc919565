package conformance

import (
	"strings"
	"testing"

	"dmir/compile/interp"
	"dmir/compile/tensor"
	"dmir/dialect/ir"
	"dmir/dialect/onnx"
	"dmir/dialect/types"
	. "dmir/testkit/onnxmodel"
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
		"steps": { // x[1:-1:2]
			in("n"),
			list{one, Ints("end", []int{1}, -1), Ints("axis", []int{1}, 0), Ints("two", []int{1}, 2)},
			list{Node("Slice", names("x", "one", "end", "axis", "two"), names("y"))},
			[]map[string]int64{{"n": 3}, {"n": 7}, {"n": 8}},
			"dims = [(n - 1)/2]",
		},
		"last": {
			in("n", 2),
			list{Ints("from", []int{1}, -3), Ints("end", []int{1}, 1<<62), Ints("axis", []int{1}, 0)},
			list{Node("Slice", names("x", "from", "end", "axis"), names("y"))},
			[]map[string]int64{{"n": 3}, {"n": 6}},
			"dm.sizes = {n = {min = 3}}",
		},
		"same": { // another padding for odd sizes, which are left out
			in(1, 1, "n"),
			list{Floats("k", []int{1, 1, 3}, 1, 2, 3)},
			list{Node("Conv", names("x", "k"), names("y"), Attr("strides", []int{2}), Attr("auto_pad", "SAME_UPPER"))},
			[]map[string]int64{{"n": 2}, {"n": 8}},
			"dims = [2*n_over_2]",
		},
		"halves": {
			in("n"),
			list{Ints("to", []int{2}, 2, -1)},
			list{Node("Reshape", names("x", "to"), names("y"))},
			[]map[string]int64{{"n": 2}, {"n": 10}},
			"dims = [2*n_over_2]",
		},
		"filled": { // to eight elements
			in("n"),
			list{Ints("eight", []int{1}, 8), Ints("zero", []int{1}, 0)},
			append(dimension(0, "n"), Node("Mod", names("n", "eight"), names("r")), Node("Sub", names("eight", "r"), names("d")),
				Node("Concat", names("zero", "d"), names("p"), Attr("axis", 0)), Node("Pad", names("x", "p"), names("y"))),
			[]map[string]int64{{"n": 1}, {"n": 7}, {"n": 8}, {"n": 19}},
			"",
		},
		"larger": { // If on n > 8
			in("n"),
			list{Ints("eight", []int{}, 8)},
			list{
				Node("Size", names("x"), names("s")), Node("Greater", names("s", "eight"), names("c")),
				Node("If", names("c"), names("y"), Attr("then_branch", Graph(nil, list{Value("t", F32)}, nil, Node("Neg", names("x"), names("t")))),
					Attr("else_branch", Graph(nil, list{Value("e", F32)}, nil, Node("Identity", names("x"), names("e"))))),
			},
			[]map[string]int64{{"n": 9}, {"n": 12}},
			"dm.sizes = {n = {min = 9}}",
		},
		"table": { // of 64 rows
			in("n", 2),
			list{Floats("rows", []int{64, 2}, make([]float32, 128)...), Ints("zero", []int{1}, 0), one},
			append(dimension(0, "n"), Node("Slice", names("rows", "zero", "n", "zero", "one"), names("p")), Node("Sub", names("x", "p"), names("y"))),
			[]map[string]int64{{"n": 1}, {"n": 64}},
			"dm.sizes = {n = {max = 64}}",
		},
		"counted": { // a mean by a size
			in("n"), nil,
			list{Node("Size", names("x"), names("s")), Node("Cast", names("s"), names("f"), Attr("to", F32)), Node("Div", names("x", "f"), names("y"))},
			[]map[string]int64{{"n": 1}, {"n": 6}},
			"",
		},
		"equal": { // two names of one size
			in("n", "m"), nil,
			list{Node("Transpose", names("x"), names("t")), Node("Add", names("x", "t"), names("y"))},
			[]map[string]int64{{"n": 1, "m": 1}, {"n": 3, "m": 3}},
			"dims = [n, n]",
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
