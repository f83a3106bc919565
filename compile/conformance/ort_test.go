package conformance

import (
	"archive/zip"
	"os"
	"testing"
)

// Ops whose results no suite has, or that ONNX Runtime defines, give what ONNX Runtime
// computes. testdata/ort_cases.py writes the cases.
func TestONNXRuntime(t *testing.T) {
	z, err := zip.OpenReader("testdata/ort_cases.zip")
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	dir := t.TempDir()
	if err := os.CopyFS(dir, z); err != nil {
		t.Fatal(err)
	}
	r, err := ONNX(t.Context(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range r.Cases {
		if c.Status != Passed {
			t.Errorf("%s: %s: %s", c.Name, c.Status, c.Reason)
		}
	}
	if len(r.Cases) < 120 {
		t.Errorf("%d cases", len(r.Cases))
	}
}
