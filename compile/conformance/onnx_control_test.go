package conformance

import (
	"slices"
	"testing"

	"dmir/compile/interp"
	"dmir/compile/tensor"
	"dmir/dialect/ir"
	"dmir/dialect/onnx"
	"dmir/dialect/types"
	. "dmir/testkit/onnxmodel"
)

// Branches, loops, functions and recurrent networks compute what their definition says.
func TestONNXControl(t *testing.T) {
	scalar := []int{}
	x := Value("x", F32, 2)
	y := Value("y", F32, 2)
	add := Graph(nil, []Message{Value("r", F32, 2)}, nil, Node("Add", []string{"x", "x"}, []string{"r"}))
	mul := Graph(nil, []Message{Value("r2", F32, 2)}, nil, Node("Mul", []string{"x", "x"}, []string{"r2"}))
	choose := func(in []Message, constants ...Message) Message {
		return Graph(append(in, x), []Message{y}, append(constants, Floats("zero", scalar, 0)),
			Node("Greater", []string{"s", "zero"}, []string{"c"}),
			Node("If", []string{"c"}, []string{"y"}, Attr("then_branch", add), Attr("else_branch", mul)))
	}
	zero := Floats("zero", scalar, 0)
	body := func(again Message) Message {
		return Graph([]Message{Value("i", I64), Value("go", Bool), Value("v", F32, 2)},
			[]Message{Value("again", Bool), Value("w", F32, 2), Value("e", F32, 2)}, []Message{Floats("four", scalar, 4)},
			Node("Add", []string{"v", "x"}, []string{"w"}), Node("Identity", []string{"v"}, []string{"e"}), again)
	}
	same := body(Node("Identity", []string{"go"}, []string{"again"}))
	sum := Node("ReduceSum", []string{"w"}, []string{"sum"}, Attr("keepdims", 0))
	until := Graph([]Message{Value("i", I64), Value("go", Bool), Value("v", F32, 2)},
		[]Message{Value("again", Bool), Value("w", F32, 2)}, []Message{Floats("ten", scalar, 10)},
		Node("Add", []string{"v", "x"}, []string{"w"}), sum, Node("Less", []string{"sum", "ten"}, []string{"again"}))
	step := Graph([]Message{Value("h", F32), Value("e", F32)}, []Message{Value("next", F32), Value("out", F32)}, nil,
		Node("Add", []string{"h", "e"}, []string{"next"}), Node("Identity", []string{"next"}, []string{"out"}))
	ones := func(name string, shape ...int) Message {
		n := 1
		for _, d := range shape {
			n *= d
		}
		return Floats(name, shape, slices.Repeat([]float32{1}, n)...)
	}
	recurrent := func(op string, gates int, attrs ...Message) []byte {
		return Model(14, Graph([]Message{Value("x", F32, 2)}, []Message{Value("y", F32, 2, 1, 1, 1)},
			[]Message{Ints("shape", []int{3}, 2, 1, 1), ones("W", 1, gates, 1), ones("R", 1, gates, 1)},
			Node("Reshape", []string{"x", "shape"}, []string{"X"}), Node(op, []string{"X", "W", "R"}, []string{"y"}, attrs...)))
	}
	for name, c := range map[string]struct {
		model []byte
		args  [][]float32
		want  [][]float32
	}{
		"branch that is known": {Model(13, choose(nil, Floats("s", scalar, 1))), [][]float32{{3, 4}}, [][]float32{{6, 8}}},
		"branch at run time":   {Model(13, choose([]Message{Value("s", F32)})), [][]float32{{1}, {3, 4}}, [][]float32{{6, 8}}},
		"other branch":         {Model(13, choose([]Message{Value("s", F32)})), [][]float32{{-1}, {3, 4}}, [][]float32{{9, 16}}},
		"loop that counts": {
			Model(13, Graph([]Message{x}, []Message{y, Value("all", F32, 3, 2)}, []Message{Ints("n", scalar, 3)},
				Node("Loop", []string{"n", "", "x"}, []string{"y", "all"}, Attr("body", same)))),
			[][]float32{{1, 2}},
			[][]float32{{4, 8}, {1, 2, 2, 4, 3, 6}},
		},
		"loop with a condition": {
			Model(13, Graph([]Message{x}, []Message{y}, []Message{Ints("n", scalar, 100)},
				Node("Loop", []string{"n", "", "x"}, []string{"y"}, Attr("body", until)))),
			[][]float32{{1, 2}},
			[][]float32{{4, 8}},
		},
		"loop with a limit": {
			Model(13, Graph([]Message{x}, []Message{y}, []Message{Ints("n", scalar, 2)},
				Node("Loop", []string{"n", "", "x"}, []string{"y"}, Attr("body", until)))),
			[][]float32{{1, 2}},
			[][]float32{{3, 6}},
		},
		"scan backwards": {
			Model(13, Graph([]Message{x}, []Message{Value("last", F32), y}, []Message{zero},
				Node("Scan", []string{"zero", "x"}, []string{"last", "y"}, Attr("body", step), Attr("num_scan_inputs", 1), Attr("scan_input_directions", []int{1})))),
			[][]float32{{1, 2}},
			[][]float32{{3}, {2, 3}},
		},
		"function": {
			Model(13, Graph([]Message{x}, []Message{y}, nil, Node("local.leaky", []string{"x"}, []string{"y"}, Attr("slope", 0.5))),
				Function("leaky", []string{"a"}, []string{"b"}, Node("LeakyRelu", []string{"a"}, []string{"b"}, Ref("alpha", "slope")))),
			[][]float32{{-2, 3}},
			[][]float32{{-1, 3}},
		},
		// With all weights 1 and no bias a gate is a function of x + h.
		"RNN":           {recurrent("RNN", 1, Attr("hidden_size", 1)), [][]float32{{0.5, -0.25}}, [][]float32{{0.46211716, 0.20899208}}},
		"LSTM":          {recurrent("LSTM", 4, Attr("hidden_size", 1)), [][]float32{{1, 1}}, [][]float32{{0.36960635, 0.65053522}}},
		"GRU":           {recurrent("GRU", 3, Attr("hidden_size", 1)), [][]float32{{1, 1}}, [][]float32{{0.20482421, 0.34675308}}},
		"GRU backwards": {recurrent("GRU", 3, Attr("hidden_size", 1), Attr("direction", "reverse")), [][]float32{{1, 1}}, [][]float32{{0.34675308, 0.20482421}}},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := onnx.Import("model.onnx", c.model, onnx.Options{
				Evaluate: func(f *ir.Func) ([]*types.Dense, error) { return interp.Literals(t.Context(), f) },
			})
			if err != nil {
				t.Fatal(err)
			}
			checkValues(t, m, c.args, c.want)
		})
	}
}

// checkValues runs @main on numbers of f32, in the shapes of its arguments.
func checkValues(t *testing.T, m *ir.Module, args, want [][]float32) {
	t.Helper()
	fn := m.Func("main")
	var in []*tensor.Tensor
	for i, a := range fn.Args {
		var shape []int
		for _, d := range a.Tensor().Shape {
			n, _ := d.Int()
			shape = append(shape, int(n))
		}
		in = append(in, &tensor.Tensor{Elem: types.F32, Shape: shape, F32: args[i]})
	}
	res, err := interp.Run(t.Context(), m, fn, in, interp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i, w := range want {
		if len(res.Outputs[i].F32) != len(w) {
			t.Fatalf("result %d has %d elements, not %d", i, len(res.Outputs[i].F32), len(w))
		}
		if err := close(res.Outputs[i], &tensor.Tensor{Elem: types.F32, Shape: res.Outputs[i].Shape, F32: w}); err != nil {
			t.Errorf("result %d: %v", i, err)
		}
	}
}
