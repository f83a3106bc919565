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
		text := strings.ReplaceAll(string(f.Data), "f32", "f64")
		t.Run(f.Name, func(t *testing.T) { against(t, text, nil) })
	}
}
