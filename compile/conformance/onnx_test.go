package conformance

import (
	"os"
	"path/filepath"
	"testing"

	"dmir/internal/need"
)

// TestONNX compares the results of ONNX's suites with testdata/onnx.json: what passed
// once must go on to pass.
func TestONNX(t *testing.T) {
	need.Long(t)
	got := map[string]result{}
	for _, suite := range []string{"node", "pytorch-converted", "pytorch-operator"} {
		dir := filepath.Join("..", "..", "..", "shared", "conformance", "onnx", suite)
		_, missing := os.Stat(dir)
		need.OK(t, missing)
		r, err := ONNX(t.Context(), dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		got[suite] = resultOf(r)
		t.Logf("%s: %s", suite, r.Summary())
	}
	compare(t, "testdata/onnx.json", got)
}
