package counted

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dmir/dialect/onnx"
	"dmir/gpu/emulator"
	"dmir/testkit/need"
)

// random is how many random programs a test compares; bench/counted takes more.
const random = 8

// For each step of each program of the suite the emulator counts the predicted bytes,
// or the step records why not.
func TestCounted(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles C++")
	}
	need.OK(t, emulator.Check())
	programs, err := Suite("../..", random)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range programs {
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			compare(t, p)
		})
	}
}

// So it does for models that other tools wrote.
func TestModels(t *testing.T) {
	need.Long(t)
	need.OK(t, emulator.Check())
	for _, name := range []string{
		"deeploy/CCT_1_16_16_8/network.onnx", "deeploy/Transformer_Train/network.onnx", "byteir/MLPInference.mlir",
		"iree/fullyconnected.mlir", "iree/mnist_fake_weights.mlir", "iree/unidirectional_lstm.mlir",
	} {
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile(filepath.Join("../../../shared/conformance/models", name))
			need.OK(t, err)
			text := string(data)
			if strings.HasSuffix(name, ".onnx") {
				if text, _, err = onnx.Text(name, data, onnx.Options{}, ""); err != nil {
					t.Fatal(err)
				}
			}
			compare(t, Program{Name: name, Text: text})
		})
	}
}

func compare(t *testing.T, p Program) {
	t.Helper()
	rows, err := Steps(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if problem := r.Problem(); problem != "" {
			t.Error(problem)
		}
	}
}

// Rows without a term, with a known one, and with one that is a bound.
func TestProblem(t *testing.T) {
	for _, c := range []struct {
		name string
		row  Row
		want string
	}{
		{"equal", Row{PredictedRead: 8, CountedRead: 8, PredictedWritten: 4, CountedWritten: 4}, ""},
		{"more is read", Row{PredictedRead: 8, CountedRead: 9}, "no term explains it"},
		{"less is written, more read", Row{PredictedRead: 8, CountedRead: 12, PredictedWritten: 4}, "no term explains it"},
		{"a scratch buffer that nothing predicts", Row{CountedWritten: 4}, "no term explains it"},
		{"an unknown term", Row{Term: "it is what it is"}, "no known term"},
		{"a bound that holds", Row{PredictedRead: 8, CountedRead: 2, Term: "elements that several indices name are read once"}, ""},
		{"a bound that does not", Row{PredictedRead: 8, CountedRead: 10, Term: "elements that several indices name are read once"}, "more than"},
	} {
		if got := c.row.Problem(); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}
