package onnx

import (
	"flag"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the table of ops in docs/CONFORMANCE.md")

// Every op in the table of attributes has a conversion or a reason why it has none, and
// every conversion is in the table.
func TestOps(t *testing.T) {
	for name := range schemas() {
		if _, lacks := lacking[name]; lacks == (conversions[name] != nil) {
			t.Errorf("%s: a conversion: %v, a reason why it has none: %v", name, conversions[name] != nil, lacks)
		}
	}
	for name := range conversions {
		if schemas()[name].inputs == 0 && schemas()[name].attrs == nil {
			t.Errorf("%s is not in schemas.txt", name)
		}
	}
	for _, m := range []map[string]string{lacking, partly} {
		for name := range m {
			if _, known := schemas()[name]; !known {
				t.Errorf("%s is not in schemas.txt", name)
			}
		}
	}
	for name, list := range idle {
		of, known := schemas()[name]
		for _, a := range list {
			if name != "" && (!known || a > "9" && !strings.Contains(" "+strings.Join(of.attrs, " ")+" ", " "+a+" ")) {
				t.Errorf("%s has no attribute %s", name, a)
			}
		}
	}
}

// The table of ops in the documentation is that of the importer.
func TestStatus(t *testing.T) {
	const file, begin, end = "../../docs/CONFORMANCE.md", "<!-- ops of ONNX: go test ./dialect/onnx -run TestStatus -update -->\n", "<!-- end -->\n"
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(data), begin)
	have, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has no table of ops", file)
	}
	want := "\n" + Status() + "\n"
	switch {
	case have == want:
	case *update:
		if err := os.WriteFile(file, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("the table of ops in %s is not current: run this test with -update", file)
	}
}
