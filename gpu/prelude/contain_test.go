package prelude_test

import (
	"bytes"
	"strings"
	"testing"

	"dmir/gpu/artifact"
	"dmir/gpu/prelude"
)

// TestContained verifies that files with the device's half of the prelude can be
// read: nothing in it refers to other files.
func TestContained(t *testing.T) {
	p := &artifact.Program{Name: "f", Source: "#include \"dm.cuh\"\n"}
	for _, f := range prelude.Files() {
		if !strings.HasPrefix(f.Name, "emu") {
			p.Headers = append(p.Headers, f)
		}
	}
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	if _, err := artifact.Read(&b); err != nil {
		t.Error(err)
	}
}
