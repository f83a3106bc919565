package cli

import (
	"os"
	"path/filepath"
	"testing"
)

// A command reads the description of a trace, which holds the text of what was traced, once.
func TestDescriptionIsReadOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "step.json")
	if err := os.WriteFile(path, []byte(`{"dmir_trace": 1, "name": "step", "program": "step.mlir"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	a := &app{ctx: t.Context()}
	first, err := a.trace(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	again, err := a.trace(path)
	if err != nil || again != first {
		t.Fatalf("it is read again: %v", err)
	}
}
