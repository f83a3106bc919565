package gradient_test

import (
	"fmt"
	"testing"

	"dmir/compile/interp"
	"dmir/dialect/ir"
	"dmir/dialect/onnx"
	"dmir/dialect/types"
	. "dmir/testkit/onnxmodel"
)

// What the importer writes in place of one op of ONNX has the op's gradient.
func TestONNX(t *testing.T) {
	const f64 = 11
	type list = []Message
	type shape = []any
	type imported struct {
		node      Message // of the inputs a, b, c, … of these shapes, and of constants
		shapes    []shape
		constants list
	}
	cases := map[string]imported{
		"RoiAlign": {
			Node("RoiAlign", []string{"a", "b", "of"}, []string{"y"}, Attr("sampling_ratio", 2), Attr("output_height", 2), Attr("output_width", 2), Attr("spatial_scale", 2.0)),
			[]shape{{1, 2, 5, 4}, {2, 4}},
			list{Ints("of", []int{2}, 0, 0)},
		},
		"DeformConv": {
			Node("DeformConv", []string{"a", "b", "c", "d", "e"}, []string{"y"}, Attr("offset_group", 1)),
			[]shape{{1, 2, 4, 4}, {2, 2, 2, 2}, {1, 8, 3, 3}, {2}, {1, 4, 3, 3}},
			nil,
		},
		"Det": {Node("Det", []string{"a"}, []string{"y"}), []shape{{2, 3, 3}}, nil},
		"Col2Im": {
			Node("Col2Im", []string{"a", "size", "block"}, []string{"y"}),
			[]shape{{1, 8, 4}},
			list{Ints("size", []int{2}, 3, 3), Ints("block", []int{2}, 2, 2)},
		},
	}
	for _, mode := range []string{"linear", "nearest", "cubic"} {
		for _, padding := range []string{"zeros", "border", "reflection"} {
			for _, corners := range []int{0, 1} {
				node := Node("GridSample", []string{"a", "b"}, []string{"y"}, Attr("mode", mode), Attr("padding_mode", padding), Attr("align_corners", corners))
				cases[fmt.Sprintf("GridSample %s %s %d", mode, padding, corners)] = imported{node, []shape{{1, 2, 4, 3}, {1, 2, 3, 2}}, nil}
			}
		}
	}
	for _, rule := range []string{"linear", "gated", "delta", "gated_delta"} {
		ins, shapes := []string{"a", "b", "c", "d", "", ""}, []shape{{1, 3, 8}, {1, 3, 4}, {1, 3, 6}, {1, 2, 2, 3}}
		if rule == "gated" || rule == "gated_delta" {
			ins[4], shapes = string(rune('a'+len(shapes))), append(shapes, shape{1, 3, 2})
		}
		if rule == "delta" || rule == "gated_delta" {
			ins[5], shapes = string(rune('a'+len(shapes))), append(shapes, shape{1, 3, 1})
		}
		node := Node("LinearAttention", ins, []string{"y", "z"}, Attr("q_num_heads", 4), Attr("kv_num_heads", 2), Attr("update_rule", rule))
		cases["LinearAttention "+rule] = imported{node, shapes, nil}
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var ins list
			for i, s := range c.shapes {
				ins = append(ins, Value(string(rune('a'+i)), f64, s...))
			}
			model := Model(27, Graph(ins, list{Value("y", f64)}, c.constants, c.node))
			text, _, err := onnx.Text("model.onnx", model, onnx.Options{
				Evaluate: func(f *ir.Func) ([]*types.Dense, error) { return interp.Literals(t.Context(), f) },
			}, "")
			if err != nil {
				t.Fatal(err)
			}
			against(t, text, nil)
		})
	}
}
