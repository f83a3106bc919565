package onnx_test

import (
	"fmt"
	"testing"

	"dmir/dialect/onnx"
	. "dmir/testkit/onnxmodel"
)

// What an import allocates for a node does not grow with the number of nodes.
func TestLinear(t *testing.T) {
	perNode := func(n int) float64 {
		nodes := []Message{Node("MatMul", []string{"x", "w"}, []string{"v0"})}
		for i := range n {
			nodes = append(nodes, Node([]string{"Relu", "Softmax", "LayerNormalization"}[i%3], append([]string{fmt.Sprintf("v%d", i)}, [][]string{nil, nil, {"s"}}[i%3]...), []string{fmt.Sprintf("v%d", i+1)}))
		}
		constants := []Message{Floats("w", []int{2, 2}, 1, 2, 3, 4), Floats("s", []int{2}, 1, 2)}
		model := Model(21, Graph([]Message{Value("x", F32, 2, 2)}, []Message{Value(fmt.Sprintf("v%d", n), F32, 2, 2)}, constants, nodes...))
		return testing.AllocsPerRun(1, func() {
			if _, err := onnx.Import("m.onnx", model, onnx.Options{}); err != nil {
				t.Fatal(err)
			}
		}) / float64(n)
	}
	few, many := perNode(300), perNode(3000)
	if many > 1.3*few {
		t.Errorf("%.0f allocations for each of 3,000 nodes, %.0f for each of 300", many, few)
	}
}
