package gradient_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

// Recurrences: cells that people train, and forms of scans and loops. The gradient
// of each is held to differences, in f64.
func TestRecurrences(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "differential", "testdata", "recurrences.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range txtar.Parse(data).Files {
		text := strings.NewReplacer("bf16", "f64", "f32", "f64").Replace(string(f.Data))
		t.Run(f.Name, func(t *testing.T) { against(t, text, nil) })
	}
}

// The step of the example trains: its results are the next step's arguments, and the
// loss falls.
func TestLSTMTrains(t *testing.T) {
	text, err := os.ReadFile("../../examples/lstm_train.dmir")
	if err != nil {
		t.Fatal(err)
	}
	m := read(t, string(text))
	f := m.Func("train")
	args := inputs(t, f, 7, nil)
	var losses []float64
	for step := range 12 {
		out := compute(t, m, f, args)
		losses = append(losses, out[0].Float(0))
		copy(args[2:], out[1:])
		args[len(args)-1].SetInt(0, int64(step+2))
	}
	if first, last := losses[0], losses[len(losses)-1]; !(last < first/2) {
		t.Errorf("the loss does not fall: %v", losses)
	}
}
