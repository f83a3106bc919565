package cli

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif"
)

// TestSARIF holds the report against the schema of SARIF 2.1.0, with findings
// and without.
func TestSARIF(t *testing.T) {
	examples, err := filepath.Glob("../examples/*.dmir")
	if err != nil || len(examples) == 0 {
		t.Fatal("no examples:", err)
	}
	for _, c := range []struct {
		name  string
		args  []string
		stdin string
		want  int
	}{
		{"findings", append([]string{"lint", "--output-format", "sarif"}, examples...), "", exitFindings},
		{"errors", []string{"lint", "--output-format", "sarif", "-"}, "func.func @f(%x: tensor<4xf32>) {\n  %y = dm.ad %x\n", exitFindings},
		{"nothing", []string{"lint", "--output-format", "sarif", "-"}, "func.func private @f()\n", exitOK},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out, errs bytes.Buffer
			if got := Main(c.args, strings.NewReader(c.stdin), &out, &errs); got != c.want || errs.Len() > 0 {
				t.Fatalf("exit status %d, want %d\n%s", got, c.want, errs.String())
			}
			report, err := sarif.FromBytes(out.Bytes())
			if err != nil {
				t.Fatal(err)
			}
			if err := report.Validate(); err != nil {
				t.Errorf("%v\n%s", err, out.String())
			}
			if n := len(report.Runs[0].Results); (n > 0) != (c.want == exitFindings) {
				t.Errorf("%d results", n)
			}
		})
	}
}

// SARIF names files by URI references.
func TestAddress(t *testing.T) {
	for path, want := range map[string]string{
		"a/b.dmir": "a/b.dmir", "a b#1.dmir": "a%20b%231.dmir", "/tmp/50%.dmir": "/tmp/50%25.dmir", "n:1.dmir": "./n:1.dmir", "<stdin>": "%3Cstdin%3E",
	} {
		if got := address(path); got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
}
