package conformance

import (
	"testing"

	"dmir/compile/interp"
	"dmir/dialect/ir"
	"dmir/dialect/onnx"
	"dmir/dialect/types"
	. "dmir/testkit/onnxmodel"
)

// Ops that the suites lack give the results of the examples in ONNX's definition.
func TestONNXExamples(t *testing.T) {
	const u8 = 2
	scalar := []int{}
	bytes := func(name string, shape []int, vs ...byte) Message { return Raw(name, u8, shape, vs) }
	names := func(s ...string) []string { return s }
	type list = []Message
	// The first and the last of three parts of x side by side, plus how many these are with x behind them.
	sequences := Function("f", names("x", "each", "one", "last"), names("y"),
		Node("SplitToSequence", names("x", "each"), names("s"), Attr("axis", 1)),
		Node("SequenceErase", names("s", "one"), names("t")),
		Node("SequenceInsert", names("t", "x", "last"), names("u")),
		Node("SequenceLength", names("u"), names("n")),
		Node("ConcatFromSequence", names("t"), names("c"), Attr("axis", 1)),
		Node("CastLike", names("n", "x"), names("m")),
		Node("Add", names("c", "m"), names("y")),
	)
	for name, c := range map[string]struct {
		node      Message // its result is y
		constants list
		want      []float32
	}{
		"QuantizeLinear": {
			Node("QuantizeLinear", names("x", "s", "z"), names("y")),
			list{Floats("x", []int{6}, 0, 2, 3, 1000, -254, -1000), Floats("s", scalar, 2), bytes("z", scalar, 128)},
			[]float32{128, 129, 130, 255, 1, 0},
		},
		"DequantizeLinear": {
			Node("DequantizeLinear", names("x", "s", "z"), names("y")),
			list{bytes("x", []int{4}, 0, 3, 128, 255), Floats("s", scalar, 2), bytes("z", scalar, 128)},
			[]float32{-256, -250, 0, 254},
		},
		"DequantizeLinear by axis": {
			Node("DequantizeLinear", names("x", "s", "z"), names("y"), Attr("axis", 0)),
			list{bytes("x", []int{2, 2}, 3, 89, 5, 24), Floats("s", []int{2}, 2, 4), bytes("z", []int{2}, 84, 24)},
			[]float32{-162, 10, -76, 0},
		},
		"DynamicQuantizeLinear": {
			Node("DynamicQuantizeLinear", names("x"), names("y", "s", "z")),
			list{Floats("x", []int{6}, 0, 2, -3, -2.5, 1.34, 0.5)},
			[]float32{153, 255, 0, 26, 221, 179},
		},
		"MatMulInteger": {
			Node("MatMulInteger", names("a", "b", "z"), names("y")),
			list{bytes("a", []int{4, 3}, 11, 7, 3, 10, 6, 2, 9, 5, 1, 8, 4, 0), bytes("b", []int{3, 2}, 1, 4, 2, 5, 3, 6), bytes("z", scalar, 12)},
			[]float32{-38, -83, -44, -98, -50, -113, -56, -128},
		},
		"ConvInteger": {
			Node("ConvInteger", names("x", "w", "z"), names("y")),
			list{bytes("x", []int{1, 1, 3, 3}, 2, 3, 4, 5, 6, 7, 8, 9, 10), bytes("w", []int{1, 1, 2, 2}, 1, 1, 1, 1), bytes("z", scalar, 1)},
			[]float32{12, 16, 24, 28},
		},
		"QLinearMatMul": {
			Node("QLinearMatMul", names("a", "as", "az", "b", "bs", "bz", "ys", "yz"), names("y")),
			list{
				bytes("a", []int{2, 4}, 208, 236, 0, 238, 3, 214, 255, 29), Floats("as", []int{1}, 0.0066), bytes("az", []int{1}, 113),
				bytes("b", []int{4, 3}, 152, 51, 244, 60, 26, 255, 0, 127, 246, 127, 254, 247), Floats("bs", []int{1}, 0.00705), bytes("bz", []int{1}, 114),
				Floats("ys", []int{1}, 0.0107), bytes("yz", []int{1}, 118),
			},
			[]float32{168, 115, 255, 1, 66, 151},
		},
		"Resize linear": {
			Node("Resize", names("x", "", "s"), names("y"), Attr("mode", "linear")),
			list{Floats("x", []int{1, 1, 2, 2}, 1, 2, 3, 4), Floats("s", []int{4}, 1, 1, 2, 2)},
			[]float32{1, 1.25, 1.75, 2, 1.5, 1.75, 2.25, 2.5, 2.5, 2.75, 3.25, 3.5, 3, 3.25, 3.75, 4},
		},
		"Resize nearest": {
			Node("Resize", names("x", "", "s"), names("y"), Attr("mode", "nearest")),
			list{Floats("x", []int{1, 1, 2, 4}, 1, 2, 3, 4, 5, 6, 7, 8), Floats("s", []int{4}, 1, 1, 0.6, 0.6)},
			[]float32{1, 3},
		},
		"Resize aligned": {
			Node("Resize", names("x", "", "s"), names("y"), Attr("mode", "linear"), Attr("coordinate_transformation_mode", "align_corners")),
			list{Floats("x", []int{1, 1, 2, 4}, 1, 2, 3, 4, 5, 6, 7, 8), Floats("s", []int{4}, 1, 1, 0.6, 0.6)},
			[]float32{1, 4},
		},
		"Resize cubic": {
			Node("Resize", names("x", "", "s"), names("y"), Attr("mode", "cubic")),
			list{Floats("x", []int{1, 1, 1, 4}, 1, 2, 3, 4), Floats("s", []int{4}, 1, 1, 1, 2)},
			[]float32{0.89453125, 1.19140625, 1.66796875, 2.296875, 2.703125, 3.33203125, 3.80859375, 4.10546875},
		},
		"CausalConvWithState": {
			Node("CausalConvWithState", names("x", "w", "b", "p"), names("y", "state")),
			list{Floats("x", []int{1, 1, 3}, 1, 2, 3), Floats("w", []int{1, 1, 2}, 10, 1), Floats("b", []int{1}, 100), Floats("p", []int{1, 1, 1}, 5)},
			[]float32{151, 112, 123},
		},
		"HannWindow": {
			Node("HannWindow", names("n"), names("y")),
			list{Ints("n", scalar, 4)},
			[]float32{0, 0.5, 1, 0.5},
		},
		"ReverseSequence": {
			Node("ReverseSequence", names("x", "n"), names("y"), Attr("time_axis", 1), Attr("batch_axis", 0)),
			list{Floats("x", []int{2, 4}, 0, 1, 2, 3, 4, 5, 6, 7), Ints("n", []int{2}, 1, 3)},
			[]float32{0, 1, 2, 3, 6, 5, 4, 7},
		},
		"Sequences": {
			Node("local.f", names("x", "each", "one", "last"), names("y")),
			list{Floats("x", []int{2, 5}, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9), Ints("each", scalar, 2), Ints("one", scalar, 1), Ints("last", scalar, -1)},
			[]float32{3, 4, 7, 8, 9, 12},
		},
		"NonZero": {
			Node("NonZero", names("x"), names("y")),
			list{Floats("x", []int{2, 2}, 1, 0, 1, 1)},
			[]float32{0, 1, 1, 0, 0, 1},
		},
		"Bernoulli of what is certain": {
			Node("Bernoulli", names("x"), names("y")),
			list{Floats("x", []int{6}, 0, 1, 1, 0, 1, 0)},
			[]float32{0, 1, 1, 0, 1, 0},
		},
		"Multinomial of what is certain": {
			Node("Multinomial", names("x"), names("y"), Attr("sample_size", 3)),
			list{Floats("x", []int{2, 3}, -1000, 0, -1000, -1000, -1000, 7)},
			[]float32{1, 1, 1, 2, 2, 2},
		},
		"Compress": {
			Node("Compress", names("x", "c"), names("y"), Attr("axis", 0)),
			list{Floats("x", []int{3, 2}, 1, 2, 3, 4, 5, 6), Raw("c", Bool, []int{3}, []byte{0, 1, 1})},
			[]float32{3, 4, 5, 6},
		},
	} {
		t.Run(name, func(t *testing.T) {
			model := Model(21, Graph(nil, list{Value("out", F32)}, c.constants, c.node, Node("Cast", names("y"), names("out"), Attr("to", F32))), sequences)
			m, err := onnx.Import("model.onnx", model, onnx.Options{
				Evaluate: func(f *ir.Func) ([]*types.Dense, error) { return interp.Literals(t.Context(), f) },
			})
			if err != nil {
				t.Fatal(err)
			}
			checkValues(t, m, nil, [][]float32{c.want})
		})
	}
}
